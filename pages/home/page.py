"""Home page: the purpose of the app in three linked figures, and a link to the last run."""

from __future__ import annotations

from dataclasses import replace

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from dmlcore.experiments import example
from dmlcore.inspection.failure.one_step import failures
from dmlcore.storage.arrays import Unreadable
from dmlcore.storage.runs import EXAMPLE, Run, RunStore
from pages.home import birds, living_map
from pages.shared.plane import service
from pages.shared.plane.state import Scene
from pages.shared.server import thumbnails
from pages.shared.state import run_reader
from pages.shared.widgets import first_loss, menu, neighbour_grid, own_embeddings, run_picker, run_status
from pages.shared.widgets.live_component import mount
from pages.shared.widgets.shown_run import ShownRun
from pages.shared.widgets.test_neighbours import learned, naming
from pages.shared.words import glossary, titles

NEAREST = 5
RECENT = 50  # number of newest runs that are searched for one to link to
FIELD = Scene(view=(0.25, 0.0, 1.85))  # holds the arrows of the negative on its way around the pair
BIRDS = frozenset({"birds", "cub"})  # data sets whose run is preferred for the figures
# Three cards of equal height, next to each other, or stacked if they would be narrower than 300 pixels. The heading of
# a card is its link.
STYLE = """<style>
[data-testid="stMainBlockContainer"]:has(.st-key-doors) { padding-bottom: 10px; }  /* fits 1440 x 900 pixels */
.st-key-doors [data-testid="stHorizontalBlock"] { flex-wrap: wrap; align-items: stretch; }
.st-key-doors [data-testid="stColumn"] { flex: 1 1 300px; min-width: min(300px, 100%); padding: .6rem 1rem .8rem;
  border: 1px solid var(--hair); border-radius: var(--corner-large); transition: border-color .15s; }
.st-key-doors [data-testid="stColumn"]:is(:hover, :focus-within) { border-color: var(--hover); }
.st-key-doors .stVerticalBlock { gap: .6rem; }
[class*="st-key-door_"] > .stElementContainer { width: 100% !important; }
[class*="st-key-door_"] .stPageLink a { padding: .2rem 0; background: none; }
[class*="st-key-door_"] .stPageLink a :is(p, span) { color: var(--link); font-weight: 700; font-size: 1.2rem; }
[class*="st-key-door_"] .stPageLink a p::after { content: " \\2192" / ""; }
.st-key-doors [class*="st-key-door_"] + .stElementContainer { min-height: 3rem; }
.st-key-doors .neighbours .row { flex-direction: column; align-items: center; gap: 10px; padding: 0; margin: auto;
  max-width: 420px; }
.st-key-doors .neighbours .query { width: 30%; }
.st-key-doors .neighbours .found { width: 100%; grid-template-columns: repeat(3, 1fr); }
.st-key-doors .neighbours .found figure { max-width: none; }
@media (min-width: 780px) and (max-width: 1100px) {  /* the third card is below the others and as wide as both */
  .st-key-doors .neighbours .row { flex-direction: row; align-items: start; max-width: none; }
  .st-key-doors .neighbours .query { width: 20%; }
  .st-key-doors .neighbours .found { grid-template-columns: repeat(6, 1fr); }
}
</style>"""


def page() -> None:
    if st.query_params.keys() - {"socket"}:  # URL of an older release, in which the Fields page was at the root
        menu.go("fields", st.query_params.to_dict())
    st.html(STYLE)
    st.title("See what a loss does, train with it, look at what was learned", anchor=False)
    st.markdown(
        "Deep metric learning places images so that images of one class are close together, even for unseen classes. "
        "A loss **pulls** samples of one class together and **pushes** samples of different classes apart.",
        help=glossary.explain("embedding", "unseen classes"),
    )
    menu.link("lessons", "New here? Take a short lesson", into=own_embeddings.show_link())
    store = RunStore()
    _continue(store)
    with st.container(key="doors"):
        play, train, look = st.columns(3, gap="medium")
    runs = store.newest(RECENT)
    shown = next((run for run in runs if run.spec.data.name in BIRDS and run.embeddings()), None) or example.find(store)
    forces = "Drag **A**, **P** or **N**: the arrows are the forces of the METU loss."
    _door(play, "fields", "Play with a loss", forces)
    _door(
        train,
        "data",
        "Train a network",
        "In training, images of one class (one colour) gather.",
    )
    look_at = next((run for run in runs if run.embeddings()), shown)
    whom = "See nearest neighbours, failures, and what one step of each loss would change."
    _door(look, "explore", "Look at what it learned", whom, {"run": look_at.id} if look_at else None)
    with play:
        _field()
        first_loss.caption()
    if shown is None:
        with train:
            st.caption("No run yet. A first training run takes seconds.")
        return
    try:
        _learned(shown, example.find(store), train, look)
    except (Unreadable, ValueError):  # the Inspection pages show the error message
        look.caption("The example cannot be read. Open it to see why.")


def _door(into: DeltaGenerator, page: str, label: str, sentence: str, query: menu.Query | None = None) -> None:
    with into:
        with st.container(key=f"door_{page}"):
            menu.link(page, label, query)
        st.markdown(sentence)


@st.fragment
def _field() -> None:
    mount("home", FIELD, service.answer, key="home", name="scene", idle=True, grid=None)


def _continue(store: RunStore) -> None:
    """Link to the last run opened in this session, else to the newest run, and state whether its training gained.

    Failed and unreadable runs are skipped.
    """
    runs = [run_picker.last(store), *store.newest(RECENT)]
    run = next((run for run in runs if run and run.status() not in ("failed", "unreadable")), None)
    if run is None:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="continue"):
        st.markdown("**Continue**", width="content")
        with st.container(width="content"):
            run_status.literal(titles.label(run))
        run_status.badge(run.status())
        menu.link("runs", "Open the run", {"run": run.id})
        if run.embeddings():
            menu.link("explore", "See what it learned", {"run": run.id})
    if gained := run_reader.reader().gain(run):
        st.caption(gained.short, help="Test MAP@R, with its 95 % interval over test classes")


def _learned(run: Run, example_run: Run | None, train: DeltaGenerator, look: DeltaGenerator) -> None:
    """Show how samples of a run moved in training in `train`, and its worst retrieval failure in `look`.

    `example_run` replaces a run that recorded no movement in `train`, for example an embedding set.

    Raises:
        Unreadable: If a file of the run cannot be read.
        ValueError: If a file of the run is malformed.
    """
    source = run.embeddings()
    if source is None:
        return
    test = learned(source)
    with train:
        if movement := living_map.read_movement(run, test):
            _show_movement(run, movement)
        elif example_run and (other := example_run.embeddings()):
            _show_movement(example_run, living_map.read_movement(example_run, learned(other)))
    with look:
        _failure(ShownRun(run, source, test, naming(run)))


def _show_movement(run: Run, movement: living_map.Movement | None) -> None:
    """Show the map of a run during training: images of its birds, or dots and a row of birds to train on."""
    birds_move = run.spec.data.name in BIRDS and thumbnails.readable(run.spec)
    if movement:
        images = (thumbnails.address(run), naming(run)) if birds_move else ()
        st.html(living_map.html(movement, *images))
        unseen = "unseen " if movement.split == "test" and run.spec.data.split != "samples" else ""
        st.caption(
            f"{len(movement.sheet.group):,} {movement.split} images of {len(movement.sheet.labels)} {unseen}classes; "
            f"{living_map.legend(movement.sheet, images=birds_move)}."
        )
    if not birds_move:
        row = birds.row()
        st.html(row.html)
        menu.link("data", row.words, {"data": row.data}, icon="flutter_dash")


def _failure(shown: ShownRun) -> None:
    """Show the query with the worst retrieval failure, its neighbours, and a link to the Failures page."""
    run, test = shown.run, shown.test
    worst = failures(test)
    if not len(worst):
        return
    row, at = int(worst[0]), thumbnails.address(run)
    rank = int(test.positives.rank[row])
    query, nearest = shown.tile(row), shown.near(row, NEAREST, forces=False)
    if rank > NEAREST:
        nearest.append(shown.neighbour(int(test.positives.nearest[row]), True, f"rank {rank:,}"))
    query = replace(query, src=f"{at}{query.index}")
    nearest = [replace(tile, src=f"{at}{tile.index}") for tile in nearest]
    st.html(neighbour_grid.html([(query, nearest)], at, str))
    whose = " of the shipped example" if run.id == EXAMPLE else ""
    st.caption(
        f"A failure{whose}: ✗ marks other classes; the first neighbour of its own class, ✓, has rank {rank:,}. "
        "Numbers below the names are distances to the first image."
    )
    menu.link("failures", "See its forces for each loss", {"run": run.id, "query": int(test.indices[row])})


page()
