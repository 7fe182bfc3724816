"""Data page: the available data sets, their splits and samples, and their missing or damaged files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal

import streamlit as st

from dmlcore import data
from dmlcore.data import DataError, Dataset, report
from dmlcore.data.files import sources
from dmlcore.data.report import Report
from dmlcore.spec import RunSpec
from pages.shared.widgets.chart import chart
from pages.shared.widgets.error_boundary import refusal
from pages.shared.widgets.forms import Bounds, Form, number
from pages.shared.widgets.spec_form import folders
from pages.shared.words import sentences as words
from pages.shared.words.titles import OWN
from pages.training.new_run import launch_panel
from pages.training.new_run.data import offer as offer_view
from pages.training.new_run.data import overview as overview_view
from pages.training.new_run.data import samples
from pages.training.new_run.data import service as data_service
from pages.training.new_run.data import tasks as tasks_view
from pages.training.new_run.data.links import command, link, linked_spec, splits_like
from pages.training.new_run.data.service import DataKey, SplitSettings
from pages.training.new_run.settings import steps

INVALID = "Data cannot be used"
NOT_READY = "The data set is not ready. Follow the steps on this page."
NO_SETTINGS = "Choose the settings in step 2."


def page() -> None:
    head = steps.StepHead(
        "data",
        "Data",
        "Choose training data and whether to test on unseen classes.",
    )
    form = steps.form()
    steps.begin(form, "data", "data-set")
    first = st.container()
    left, right = st.container(key="data-columns").columns([5, 6], gap="large")
    with left:
        name = overview_view.choose(form.values["data.name"])
    if offer_view.fits(name, steps.spec_of(form)[0]):
        with first:
            offer_view.show()
    read, query = None, {"data": name}
    spec, obstacles = None, [NOT_READY]
    with right:
        at, cut = _choose_data(form, name)
        if at:
            with st.spinner("Reading the data set; an archive is unpacked the first time …"):
                read = data_service.split_report(at, cut)
            _show_splits(at, read)
    if at and read:
        with st.container(key="shown"):
            _show(at, cut, read)
        spec, settings = _next_run(form, at, cut, read.dataset)
        query |= settings
        obstacles = list(read.problems) or (steps.examine(spec)[1] if spec else [NO_SETTINGS])
    steps.write_address(form, "data", query)
    head.row(query)
    head.lead("settings", "Next: settings", query, ready=read is not None and not read.problems)
    steps.start(spec, pressed=launch_panel.show(spec, obstacles, key="start-data"))


def _choose_data(form: Form, name: str) -> tuple[DataKey | None, SplitSettings]:
    """Show the data set and the controls of its split; return its cache key and the settings of the split.

    If the data set is missing or cannot be read, the cache key is None and instructions are shown instead.
    """
    info = data.describe(name)
    st.subheader(info.title, anchor=False)
    source = sources.source_of(name)
    st.markdown(info.sentence)
    st.caption(info.citation + (f" Terms: {source.terms}" if source and name != OWN else ""))
    settings = form.values if form.values["data.name"] == name else {}
    root = _choose_folder(name, settings) if info.needs_files else None
    try:
        place = data.available(name, root)
    except (DataError, OSError, ValueError) as error:
        refusal(INVALID, words.plain(error))
        return None, SplitSettings()
    if place is None:
        _show_absent(name, root)
        return None, SplitSettings()
    if name == OWN:
        if wrong := data_service.not_class_folders(place):
            refusal("No class folders", wrong)
            tasks_view.layouts(name)
            return None, SplitSettings()
    elif info.needs_files:
        st.caption(":material/folder: Found:")
        st.code(str(place), language=None, wrap_lines=True)
    if report.is_packed(place) and st.session_state.get("data-unpack") != str(place):
        st.markdown("The archive is still packed. Unpacking it may take minutes.")
        st.button("Unpack and read", key="unpack", on_click=_unpack, args=(place,), icon=":material/unarchive:")
        return None, SplitSettings()
    cut, seed = _choose_split(name, settings)
    return data_service.data_key(name, root, place, seed), cut


def _next_run(
    form: Form, at: DataKey, cut: SplitSettings, made: Dataset | None
) -> tuple[RunSpec | None, dict[str, str]]:
    """Return the spec that the start button trains, and the URL query parameters of the Settings page.

    Both hold the settings in the form if these use the selected data set and split, otherwise the default settings for
    the data set. The spec is None if no link can express the selected data set and split.
    """
    spec, _ = steps.spec_of(form)
    if spec and splits_like(spec, at, cut):
        return spec, steps.carried(form, spec)
    steps.forget_addresses(form)
    return linked_spec(at, cut, made), link(at, cut, made)


def _choose_folder(name: str, settings: Mapping[str, Any]) -> str | None:
    given = st.text_input(
        "Data folder",
        settings.get("data.root") or "",
        key=f"data-root-{name}",
        on_change=_allow_folder,
        args=(name,),
        placeholder="default folders",
        help="Folder that contains the data set or its archive. Empty: $DML_DATA and the default folders",
        width=420,
    )
    return (given or "").strip() or None


def _allow_folder(name: str) -> None:
    """Allow links opened in this session to read the folder that the visitor entered."""
    if root := (st.session_state[f"data-root-{name}"] or "").strip():
        folders.choose_folder(root)


def _unpack(place: Path) -> None:
    st.session_state["data-unpack"] = str(place)


def _show_absent(name: str, root: str | None) -> None:
    if name != OWN or root is not None:
        st.badge("Not on this machine", icon=":material/folder_off:", color="orange")
        try:
            data.locate(name, root)
        except DataError as error:
            st.text(words.plain(error))
    tasks_view.download(name)


def _choose_split(name: str, settings: Mapping[str, Any]) -> tuple[SplitSettings, int]:
    """Show the controls of the split, initialised from `settings`; return the split settings and the seed."""
    info = data.describe(name)
    drawn = not info.needs_files
    if info.split == "own":
        st.caption("This data set has its own training, validation and test splits.")
        return SplitSettings(), _choose_seed(name, settings) if drawn else 0
    shown: dict[str, Any] = {"format_func": partial(words.value, "data.fold_order"), "width": 210}
    splits, held = ["classes", "samples"], ["classes", "samples", "none"]
    orders: list[Literal["contiguous", "random"]] = ["contiguous", "random"]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        given = settings.get("data.split", info.split)
        first = splits.index(given) if given in splits else 0
        split = st.selectbox("Test split", splits, first, key=f"data-split-{name}", **shown)
        first = held.index(settings.get("data.validation", info.validation))
        validation = st.selectbox("Validation split", held, first, key=f"data-validation-{name}", **shown)
        folds, fold = 0, 1
        order = orders[0]
        if validation == "classes":
            first = settings.get("data.folds", 0)
            folds = _integer(
                "Class folds",
                f"data-folds-{name}",
                Bounds(0, 50),
                first,
                130,
                help="0: the last quarter of the classes validates",
            )
        if folds > 1:
            first = min(settings.get("data.fold", 1), folds)
            fold = _integer("Validation fold", f"data-fold-{name}-{folds}", Bounds(1, folds), first, 150)
            first = orders.index(settings.get("data.fold_order", orders[0]))
            order = st.selectbox("Fold order", orders, first, key=f"data-order-{name}", **shown)
        seed = 0
        if drawn or "samples" in (split, validation) or order == "random":
            seed = _choose_seed(name, settings)
    return SplitSettings(split, validation, folds if folds > 1 else 0, fold, order), seed


def _choose_seed(name: str, settings: Mapping[str, Any]) -> int:
    return _integer("Seed", f"data-seed-{name}", Bounds(0, 2**32 - 1), settings.get("seed", 0), 130)


def _integer(label: str, key: str, bounds: Bounds, default: int, width: int, **shown: Any) -> int:
    """Show a number input; return its integer, or `default` if the input is invalid and the widget shows an error."""
    value, fault = number(label, key, bounds, start=default, whole=True, width=width, **shown)
    return default if fault else value


def _show_splits(at: DataKey, report: Report) -> None:
    """Show errors, missing files and, if the data set can be used, its splits."""
    refusal(INVALID, *report.problems)
    if report.problems:
        st.button("Check again", key="again", icon=":material/refresh:", on_click=data_service.clear_caches)
    if report.located.missing:
        with st.expander(f"{len(report.located.missing):,} missing files", icon=":material/hide_image:"):
            st.code("\n".join(map(str, report.located.missing[:200])), language=None, height=240)
    if report.dataset is not None:
        samples.show_splits(at, report)
        for note in report.notes:
            st.text(note)


def _show(at: DataKey, cut: SplitSettings, report: Report) -> None:
    """Show classes, samples, the data check and the download of the split.

    If the data set has problems or its split sizes deviate from the published ones, also explain how to complete it.
    """
    made = report.dataset
    if made is not None:
        chosen = _classes(report)
        if not report.located.missing or len(report.located.missing) < len(made.labels):
            _samples(at, made, chosen)
            st.markdown("#### Data check")
            tasks_view.check(at, made)
        _save(at, cut, made)
    if report.problems or (made is not None and any(split.deviation for split in report.compared)):
        if at.name == OWN:
            tasks_view.layouts(at.name)
        else:
            with st.expander("How to get the complete data set", icon=":material/download:"):
                tasks_view.download(at.name)


def _classes(report: Report) -> list[int]:
    """Show the table of classes and a histogram of their sizes; return the indices of the selected classes."""
    made, classes = report.dataset, report.classes
    assert made is not None
    sizes = samples.histogram(made)
    left, right = st.columns([3, 2]) if sizes else (st.container(), None)
    with left:
        st.markdown("#### Classes")
        table = st.dataframe(
            {
                "number": [one.number for one in classes],
                "class": [one.name for one in classes],
                "split": [one.split for one in classes],
                "samples": [one.samples for one in classes],
            },
            key=f"classes-{made.name}-{made.settings.get('split')}",
            height=280,
            hide_index=True,
            on_select="rerun",
            selection_mode="multi-row",
            column_config={
                "number": st.column_config.NumberColumn(width="small"),
                "split": st.column_config.TextColumn(width="small"),
                "samples": st.column_config.NumberColumn(width="small"),
            },
        )
        if sizes is None:
            counts = sorted({one.samples for one in classes})
            st.caption(f"Every class has {' or '.join(f'{count:,}' for count in counts)} samples.")
    if sizes and right:
        with right:
            st.markdown("#### Samples per class")
            chart("sizes", sizes, "Histogram of samples per class")
    rows = table["selection"]["rows"]
    return [int(row) for row in rows if row < len(classes)]


def _samples(at: DataKey, made: Dataset, chosen: Sequence[int]) -> None:
    kind = data.describe(at.name).kind
    if kind == "vectors":
        st.markdown("#### Vectors")
        drawn = samples.scatter(at, made)
        chart("plane", drawn, "Vectors on two principal components")
        st.caption(
            f"{len(drawn[1]['class']):,} of {len(made.labels):,} samples on the first two principal components of "
            f"their {made.inputs.shape[1]} values."
        )
    if made.image is None:
        if kind == "tokens":
            st.caption(f"A sample is a bag of {made.inputs.shape[1]} tokens without an image.")
        return
    st.markdown("#### Images")
    splits = [split for split, rows in made.splits.items() if len(rows)]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        split = st.segmented_control("Split", splits, default=splits[0], key=f"data-shown-{at.name}", required=True)
        st.button("Other samples", key="others", icon=":material/shuffle:", on_click=_draw_others)
        st.caption(f"{len(chosen)} classes selected." if chosen else "Select classes in the table to see their images.")
    st.html(samples.images(at, made, split or splits[0], st.session_state.get("data-draw", 0), chosen))


def _draw_others() -> None:
    st.session_state["data-draw"] = st.session_state.get("data-draw", 0) + 1


def _save(at: DataKey, cut: SplitSettings, made: Dataset) -> None:
    st.markdown("#### Save the split")
    with st.container(horizontal=True, vertical_alignment="center"):
        for form in ("json", "csv"):
            st.download_button(
                f"Split as {form.upper()}",
                partial(report.split_text, made, form),
                f"{at.name}-split.{form}",
                "application/json" if form == "json" else "text/csv",
                key=f"save-{form}",
                icon=":material/download:",
                on_click="ignore",
            )
    st.caption("Lists every sample with its split, class and file. On the command line:")
    st.code(command(at, cut), language="bash", wrap_lines=True)


page()
