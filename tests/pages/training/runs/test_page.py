"""The runs page without a browser: all states in words, buttons that act on real processes, curves and scores."""

from __future__ import annotations

import csv
import json
import os
import signal
from html import escape
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore import losses
from dmlcore.inspection import notes
from dmlcore.jobs import device_queue, launch
from dmlcore.monitoring import comparability, health
from dmlcore.significance.gain import gain
from dmlcore.spec import RunSpec
from dmlcore.storage.metrics_rows import to_line
from dmlcore.storage.run_directory import METRICS
from dmlcore.storage.runs import EXAMPLE, Run, RunStore, scores
from dmlcore.training.loop import train
from pages.shared.words.sentences import called, plain
from pages.training.runs.table import panel as table
from pages.training.runs.table import rows
from pages.training.runs.table.groups import groups
from tests import made_runs
from tests.pages.conftest import load_page
from tests.started import until
from tests.wording import says

TINY = RunSpec().with_overrides(["schedule.steps=12", "schedule.validate_every=4", "schedule.checkpoint_every=5"])
LEAD = ("20.0 ± 0 points", "2 seeds", "significant")
HOSTILE = "<img src=//x/y> $x$ **b** ![a](http://x/y) :red[r]"


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """Return a store with two finished runs and one failed run."""
    store = RunStore(tmp_path_factory.mktemp("finished"))
    made = [
        store.create(TINY.with_overrides(["name=first"])),
        store.create(TINY.with_overrides(["loss.name=facenet", f"name={HOSTILE}", "schedule.steps=8"])),
        store.create(TINY.with_overrides(["data.split=classes", "batch.classes=9"])),
    ]
    for run in made:
        with run.lock():
            train(run)
    assert [run.status() for run in made] == ["done", "done", "failed"]
    return store, made


@pytest.fixture
def open_page(monkeypatch):
    def run(store: RunStore, **query: str) -> AppTest:
        monkeypatch.setenv("DML_RUNS", str(store.root))
        return load_page("runs", **query)

    return run


def texts(app: AppTest, *kinds: str) -> str:
    return "\n".join(str(element.value) for kind in kinds for element in app.get(kind))


def test_without_runs_the_page_leads_to_training_and_shows_the_example(open_page, tmp_path):
    store = RunStore(tmp_path)
    app = open_page(store)
    assert not app.exception
    assert "No runs yet" in texts(app, "markdown")
    assert app.page_link[0].label == "Go to New run"
    assert "Example · Glyphs, unseen alphabets" in texts(app, "html")
    steps = next(line for line in texts(app, "text").splitlines() if "step 400 of 400" in line)
    assert " in " not in steps, "durations on another machine are irrelevant"
    app.button(key=f"delete-for-good-{EXAMPLE}").click().run()
    assert not app.exception
    assert not (tmp_path / EXAMPLE).exists()
    app.button(key="bring-back").click().run()
    assert not app.exception
    assert (tmp_path / EXAMPLE / "spec.json").is_file()
    mine = store.create(TINY)
    app = open_page(store)
    assert [name[-4:] for name in app.dataframe[0].value["run"]] == [mine.id[-4:]], "the example is not in the table"
    assert "The example run" in [link.label for link in app.page_link]


def test_the_table_lists_every_run_and_the_newest_is_shown_with_its_reason(open_page, finished):
    store, made = finished
    app = open_page(store)
    table = app.dataframe[0].value
    assert list(table["status"]) == ["failed", "done", "done"]
    assert [name[-4:] for name in table["run"]] == [run.id[-4:] for run in reversed(made)]
    assert list(table["steps"]) == [0.0, 100.0, 100.0]
    trained = scores(made[0].metrics()[0])["trained"]["map_at_r"]
    assert table["trained"].iloc[-1] == pytest.approx(100 * trained)
    assert any("failed" in error.value for error in app.error)
    assert "a batch needs 9 classes" in texts(app, "code")
    assert app.button(key=f"resume-{made[2].id}")
    assert not any(button.key == f"cancel-{made[2].id}" for button in app.button)


def test_one_run_shows_its_scores_beside_those_without_training_and_its_curves(open_page, finished):
    store, (first, _, _) = finished
    app = open_page(store, run=first.id)
    table = next(frame.value for frame in app.dataframe if "embedding" in frame.value)
    whitened = ["features, PCA-whitened", "features, whitened within classes"]
    assert list(table["embedding"]) == ["raw input", "untrained network", *whitened, "trained network"]
    expected = scores(first.metrics()[0])["trained"]
    assert table["MAP@R"][4] == f"{100 * expected['map_at_r']:.1f} %"
    assert table["R@1"][4] == f"{100 * expected['recall_at']['1']:.1f} %"
    verdict = gain(scores(first.metrics()[0]), started=False)
    assert any(f"**{verdict.words}**" in text.value for text in app.markdown)

    def chart() -> str:
        assert not app.exception
        return app.get("vega_lite_chart")[0].proto.spec

    assert "smoothed" not in chart()
    assert "symlog" not in chart()
    app.slider(key="smooth").set_value(0.9).run()
    assert "loss, smoothed" in chart()
    app.toggle(key="curves-log").set_value(True).run()
    assert "symlog" in chart()
    app.button_group(key="curves-shown").set_value(["effective_rank", "gradient_norm"]).run()
    assert "effective dimensions" in chart()
    assert "validation MAP@R" not in chart()


def test_runs_side_by_side_share_curves_and_show_findings_differences_and_classes(open_page, finished):
    store, (first, second, _) = finished
    app = open_page(store, run=f"{first.id},{second.id}")
    assert not app.exception
    (chart,) = (chart.proto.spec for chart in app.get("vega_lite_chart"))
    assert 0 < chart.index(first.id[-4:]) < chart.index(second.id[-4:])
    assert list(app.dataframe[0].value["curve"].map(list)) == [[], ["2"], ["1"]]
    specs = next(frame.value for frame in app.dataframe if "setting" in frame.value)
    assert set(specs["setting"]) == {"Name", "Loss", "Steps"}
    shown = texts(app, "html")
    for issue in comparability.lint([first, second]):
        assert escape(issue.sentence) in shown
    reached = next(frame.value for frame in app.dataframe if "quantity" in frame.value).set_index("quantity")
    trained = scores(second.metrics()[0])["trained"]
    assert reached.loc["tested checkpoint"].iloc[1] == f"step {trained['step']}"
    assert reached.loc["NMI"].iloc[1] == f"{100 * trained['nmi']:.1f} %"
    classes = next(frame.value for frame in app.dataframe if "class" in frame.value)
    assert sorted(classes["class"]) == list(range(10))
    assert classes["difference"].abs().is_monotonic_decreasing
    assert f"python -m dmlcore lint {first.id} {second.id}" in texts(app, "code")


def write_rows(run: Run, rows: list[dict]) -> None:
    (run.path / METRICS).write_bytes(b"".join(map(to_line, rows)))


def test_weights_and_losses_of_an_ensemble_are_drawn_by_the_name_of_the_loss(open_page, tmp_path):
    store = RunStore(tmp_path)
    run = store.create(TINY.with_overrides(["loss.name=wedl", "schedule.steps=60"]))
    row = {"kind": "step", "loss": 0.5, "loss_triplet": 0.1, "weight_triplet": 0.25, "diversity": 1.9}
    write_rows(run, [row | {"step": step} for step in range(1, 61)])
    app = open_page(store, run=run.id)
    chart = app.get("vega_lite_chart")[0].proto.spec
    assert "weights of the losses" in chart
    assert "losses of the ensemble" not in chart
    app.button_group(key="curves-shown").set_value(["member_losses", "diversity"]).run()
    assert not app.exception
    chart = app.get("vega_lite_chart")[0].proto.spec
    assert "losses of the ensemble" in chart
    assert "distance of the learners" in chart
    assert "triplet" in json.loads(chart)["vconcat"][0]["layer"][0]["encoding"]["color"]["scale"]["domain"]


def test_one_run_shows_what_the_monitor_finds_its_distances_and_its_commands(open_page, tmp_path):
    store = RunStore(tmp_path)
    run = store.create(TINY.with_overrides(["schedule.steps=60"]))
    rows = [{"kind": "step", "step": step, "loss": 0.5, "active": 1.0} for step in range(1, 61)]
    measure = {"kind": "measure", "spread": 0.001, "histogram_to": 2.0}
    measure |= {"positive_histogram": [3] * 20, "negative_histogram": [1] * 20}
    rows += [measure | {"step": step} for step in range(10, 61, 10)]
    write_rows(run, rows)
    app = open_page(store, run=run.id)
    assert not app.exception
    (warning, *_) = health.watch(rows, run.spec)
    assert f"**{plain(warning.sentence)}**" in texts(app, "markdown")
    assert all(plain(remedy) in texts(app, "markdown") for remedy in warning.remedies)
    assert "at step 60" in texts(app, "caption")
    write_rows(run, [*rows, measure | {"step": 70}])  # training continues, and the latest step is shown
    app.run()
    assert "at step 70" in texts(app, "caption")
    margin = losses.create(run.spec.loss.name, **run.spec.loss.parameters).margin
    assert f"at most {margin:.3g} farther" in texts(app, "caption")
    app.toggle(key=f"distances-{run.id}-follow").set_value(False).run()
    slider = app.select_slider(key=f"distances-{run.id}")
    assert (slider.value, len(slider.options)) == (70, 7)
    slider.set_value(20).run()
    assert "at step 20" in texts(app, "caption")
    assert f"dmlcore events {run.id}" in texts(app, "code")


def test_a_waiting_run_shows_its_place_and_may_begin_at_once(open_page, tmp_path, monkeypatch):
    monkeypatch.setenv("DML_CPU_RUNS", "1")
    store = RunStore(tmp_path)
    long = TINY.with_overrides(["schedule.steps=1000000", "device=cpu"])
    first, second, third = (store.open(launch.launch(spec, store)) for spec in (long, long, long))
    try:
        # Their order is undefined. The one that holds the device is read first, as it waits until then.
        until(lambda: device_queue.running_on(store, "cpu") and len(device_queue.waiting_runs(store)) == 2)
        (working,) = device_queue.running_on(store, "cpu")
        after = list(device_queue.waiting_runs(store))
        app = open_page(store, run=after[1])
        told = f"number 2 in the queue for the CPU; running: “{called(store.open(working))}”"
        assert any(told in bar.proto.text for bar in app.get("progress"))
        launch.cancel(store.open(after[0]))
        until(lambda: store.open(after[0]).status() == "cancelled")
        assert store.open(after[0]).state().step == 0
        app.run()
        assert any("next in the queue" in bar.proto.text for bar in app.get("progress"))
        app.button(key=f"hurry-{after[1]}").click().run()
        until(lambda: store.open(after[1]).status() == "running")
    finally:
        for run in (first, second, third):
            launch.cancel(run)
        until(lambda: not any(run.is_alive() for run in (first, second, third)))


def test_a_name_is_shown_literally(open_page, finished):
    store, (_, hostile, _) = finished
    app = open_page(store, run=hostile.id)
    assert not app.exception
    assert "&lt;img src=//x/y&gt;" in texts(app, "html")
    interpreted = texts(app, "markdown", "caption", "subheader", "title", "badge", "warning", "error", "html")
    assert "<img src=//x" not in interpreted  # other images are neighbours of a validation
    assert "![a]" not in texts(app, "markdown", "caption", "subheader")


@pytest.mark.parametrize(("bad", "warnings"), [("../x", 1), ("," * 100_000, 0)])
def test_a_senseless_link_gives_a_plain_message_and_the_newest_run(open_page, finished, bad, warnings):
    app = open_page(finished[0], run=bad)
    assert not app.exception
    assert len(app.warning) == warnings
    assert app.button(key=f"resume-{finished[1][2].id}")


def test_a_resume_that_does_not_go_back_to_its_cluster_says_so(open_page, tmp_path, monkeypatch):
    store = RunStore(tmp_path)
    run = store.create(TINY)
    with run.lock():
        run.update(state="failed", backend="ray:10.0.0.1:6379")
    monkeypatch.setattr(launch, "start_process", lambda *_: None)
    app = open_page(store, run=run.id)
    app.button(key=f"resume-{run.id}").click().run()
    (said,) = [error.value for error in app.error if "recorded backend" in error.value]
    assert "'ray:10.0.0.1:6379': it is neither in DML_BACKENDS nor" in said
    assert run.state().backend == ""


def test_cancel_resume_kill_and_delete(open_page, tmp_path):
    store = RunStore(tmp_path)
    run = store.open(launch.launch(TINY.with_overrides(["schedule.steps=1000000"]), store))
    try:
        _live(open_page, store, run)
    finally:
        if run.path.exists() and run.is_alive():
            os.kill(run.state().pid, signal.SIGKILL)


def _live(open_page, store: RunStore, run: Run) -> None:
    app = open_page(store, run=run.id)
    until(lambda: run.state().step > 10)
    app.run()
    assert "running" in texts(app, "badge", "markdown")
    assert any("of 1,000,000" in bar.proto.text and "left" in bar.proto.text for bar in app.get("progress"))
    assert "Explore and Neighbours open after the final test, at step 1,000,000." in texts(app, "caption")

    app.button(key=f"cancel-{run.id}").click().run()
    until(lambda: run.status() == "cancelled" and not run.is_alive())
    at = run.state().step
    assert any(link.label.startswith("Evaluate the last checkpoint") for link in app.run().page_link)
    app.button(key=f"resume-{run.id}").click().run()
    assert not app.error
    until(lambda: run.status() == "running" and run.state().step > at)

    os.kill(run.state().pid, signal.SIGKILL)
    until(lambda: run.status() == "lost")
    app.run()
    assert "up to the last checkpoint is kept" in texts(app, "warning")
    assert app.button(key=f"resume-{run.id}")

    app.button(key=f"delete-for-good-{run.id}").click().run()
    assert not app.exception
    assert not run.path.exists()
    assert "run" not in app.query_params
    assert "No runs yet" in texts(app, "markdown")


def test_of_many_runs_the_newest_are_listed_and_the_others_found(open_page, tmp_path, monkeypatch):
    monkeypatch.setattr("pages.shared.widgets.run_status.MOST_LISTED", 3)
    store = RunStore(tmp_path)
    made = [store.create(TINY.with_overrides([f"name={name}"])) for name in ("first", "second", "third", "fourth")]
    made.append(store.create(TINY.with_overrides(["loss.name=facenet", "name=other"])))
    app = open_page(store)
    assert not app.exception
    assert [name[-4:] for name in app.dataframe[0].value["run"]] == [run.id[-4:] for run in made[:1:-1]]
    assert says(texts(app, "caption"), "3", "5")
    app.text_input(key="find").input("SECOND digits").run()
    assert [name[-4:] for name in app.dataframe[0].value["run"]] == [made[1].id[-4:]]
    assert says(texts(app, "caption"), "1", "5")
    app.text_input(key="find").input("no such words").run()
    assert not app.exception
    assert app.info
    # the selected run is shown below the table if the table does not list it
    linked = open_page(store, find="facenet", run=made[0].id)
    assert len(linked.dataframe[0].value) == 1
    assert made[0].id[-4:] in texts(linked, "html")


def test_the_link_keeps_the_smoothing(open_page, finished):
    store, (first, *_) = finished
    assert open_page(store, run=first.id, smooth="0.9").slider(key="smooth").value == 0.9
    assert open_page(store, run=first.id, smooth="7").slider(key="smooth").value <= 0.99


@pytest.fixture(scope="module")
def sweep(tmp_path_factory):
    """Return a store and its runs: two learning rates with two seeds each, and one run on another data set."""
    store = RunStore(tmp_path_factory.mktemp("sweep"))
    made = [
        made_runs.make_finished_run(
            store, [f"optimiser.learning_rate={rate}", f"seed={seed}", f"name=r{rate}s{seed}"], score
        )
        for rate, seed, score in ((0.1, 0, 0.30), (0.1, 1, 0.32), (0.01, 0, 0.50), (0.01, 1, 0.52))
    ]
    return store, [*made, made_runs.make_finished_run(store, ["data.name=moons", "name=moons"], 0.9)]


def names(app: AppTest) -> list[str]:
    """Return the names of the runs in the table, from top to bottom."""
    table = next(frame.value for frame in app.dataframe if "status" in frame.value)
    return [str(name).split(" ")[0] for name in table["run"]]


def test_the_table_shows_settings_that_vary_and_those_of_ones_choice(open_page, sweep):
    app = open_page(sweep[0])
    assert {"Seed", "Learning rate", "Data set"} < set(app.dataframe[0].value)
    app.multiselect(key="runs-columns").set_value(["optimiser.name", "R@1", "seed"]).run()
    assert app.query_params["columns"] == "optimiser.name,R@1,seed"
    linked = open_page(sweep[0], columns="optimiser.name,R@1,no.such,seed")
    for page in (app, linked):
        table = page.dataframe[0].value
        assert list(table)[7:-1] == ["Optimiser", "R@1", "Seed"]
        assert table["Optimiser"].tolist() == ["Adam"] * 5
        assert table["R@1"].tolist() == pytest.approx([90, 52, 50, 32, 30])
    linked.button(key="runs-as-vary").click().run()
    assert "columns" not in linked.query_params
    assert "Learning rate" in linked.dataframe[0].value
    assert list(open_page(sweep[0], columns="none").dataframe[0].value)[7:] == ["started"]


def test_the_table_is_sorted_by_any_setting_and_the_link_says_so(open_page, sweep):
    app = open_page(sweep[0], columns="validation")
    assert names(app) == ["moons", "r0.01s1", "r0.01s0", "r0.1s1", "r0.1s0"]
    assert app.dataframe[0].value["best validation"].tolist() == pytest.approx([90, 52, 50, 32, 30])
    app.selectbox(key="runs-sort").set_value("optimiser.learning_rate").run()
    assert names(app)[:2] == ["r0.1s1", "r0.1s0"]
    app.toggle(key="runs-up").set_value(True).run()
    assert (app.query_params["sort"], app.query_params["up"]) == ("optimiser.learning_rate", "1")
    assert names(app)[-2:] == ["r0.1s1", "r0.1s0"]
    assert names(open_page(sweep[0], sort="trained", up="1"))[0] == "r0.1s0"
    assert names(open_page(sweep[0], sort="no.such", group="<b>", columns="%", up="x", baseline="../x"))[0] == "moons"


def test_columns_at_first_say_what_no_other_column_says(tmp_path):
    store = RunStore(tmp_path)

    def line(*overrides: str) -> rows.Line:
        return rows.line(made_runs.make_finished_run(store, [*overrides, "name=x"], 0.3))

    of = {"ranking": ["loss.parameters.m=0.2"], "contrastive": [], "facenet": []}
    lines = [line(f"loss.name={name}", *more, f"seed={seed}") for name, more in of.items() for seed in range(2)]
    assert len(rows.varying_keys(lines)) > 2
    assert rows.default_columns(lines) == ["loss.name", "seed"], "margins are determined by the loss"
    assert {group.name for group in groups(lines, "variant")} == {"Ranking", "Contrastive", "FaceNet"}
    wider = line("loss.name=ranking", "loss.parameters.m=0.9")
    assert rows.default_columns([*lines, wider]) == ["loss.name", "loss.parameters.m", "seed"]
    assert rows.values("loss.parameters.divisor", lines)[0] is None, "ranking has no such setting"
    moons = line("data.name=moons", "optimiser.learning_rate=0.5")
    assert rows.default_columns([*lines, moons])[:2] == ["data.name", "loss.name"]
    assert "optimiser.learning_rate" not in rows.default_columns([*lines, moons]), "determined by the data set here"


@pytest.fixture
def select(monkeypatch):
    """Return a function that applies selected rows of the table and returns the runs of the address."""

    def apply(run: str, orders: list[list[str]], selected: list[int], find: str = "") -> str:
        state = {table.KEY: SimpleNamespace(selection=SimpleNamespace(rows=selected)), table.ORDERS: orders}
        page = SimpleNamespace(session_state=state | {"find": find}, query_params={"run": run})
        monkeypatch.setattr(table, "st", page)
        table._select()
        return page.query_params["run"]

    return apply


def test_what_was_chosen_keeps_its_place_and_a_search_hides_it_only(select):
    assert select("hidden,c,b", [["a", "b", "c"]], [0, 2], find="ranking") == "hidden,c,a"
    assert select("hidden,c,a", [["a", "b", "c"]], [0, 2]) == "c,a"


@pytest.mark.parametrize(
    ("selected", "chosen"),
    [([1, 3], "d,b"), ([2, 4], "d,b"), ([1, 2, 3], "d,b,c"), ([0, 2, 4], "d,b,new"), ([4], "d"), ([1], "b")],
    ids=["sent before", "sent after", "a click before", "a click after", "one less after", "one less before"],
)
def test_rows_sent_before_another_run_joined_are_those_of_the_table_then(select, selected, chosen):
    assert select("d,b", [["a", "b", "c", "d"], ["new", "a", "b", "c", "d"]], selected) == chosen


def test_runs_are_grouped_by_a_setting_and_groups_have_curves(open_page, sweep):
    store, made = sweep
    app = open_page(store, group="optimiser.learning_rate", find="r0")
    groups = app.dataframe[0].value
    assert groups["Learning rate"].tolist() == ["0.01", "0.1"]
    assert groups["after"].tolist() == pytest.approx([51, 31])
    assert groups["deviation"].tolist() == pytest.approx([2**0.5, 2**0.5])
    assert (groups["runs"].tolist(), groups["seeds"].tolist()) == ([2, 2], [2, 2])
    assert groups["curve"].map(list).tolist() == [["1"], ["2"]]
    assert names(app) == ["r0.01s1", "r0.01s0", "r0.1s1", "r0.1s0"]
    (chart,) = (chart.proto.spec for chart in app.get("vega_lite_chart"))
    assert "0.01, 2 runs" in chart
    assert made[0].id[-4:] not in chart
    app.selectbox(key="runs-group").set_value("variant").run()
    assert app.query_params["group"] == "variant"
    assert app.dataframe[0].value["settings"].tolist() == ["Learning rate 0.01", "Learning rate 0.1"]
    chosen = open_page(store, group="optimiser.learning_rate", run=made[0].id)  # then the curves of this run are shown
    assert made[0].id[-4:] in chosen.get("vega_lite_chart")[0].proto.spec
    assert not any(chosen.dataframe[0].value["curve"].map(list))


def test_a_pinned_baseline_shows_differences_beside_their_noise(open_page, sweep):
    store, made = sweep
    app = open_page(store, run=made[0].id)
    app.button(key=f"pin-{made[0].id}").click().run()
    assert app.query_params["baseline"] == made[0].id
    table = next(frame.value for frame in app.dataframe if "different settings" in frame.value).set_index("run")
    assert names(app)[:2] == ["r0.1s0", "moons"], "pinned runs come first"
    rows = {str(name).split(" ")[0]: table.loc[name] for name in table.index}
    assert rows["r0.01s1"]["against the baseline"] == pytest.approx(22)
    assert says(rows["r0.01s1"]["over the seeds"], *LEAD)
    assert rows["r0.01s1"]["different settings"] == "Seed: 0 → 1; Learning rate: 0.1 → 0.01"
    assert rows["r0.1s1"]["different settings"] == "Seed: 0 → 1"
    assert rows["r0.1s0"]["different settings"] == "the baseline"
    assert str(rows["moons"]["against the baseline"]) == "nan", "runs with another test must not be compared"
    grouped = open_page(store, baseline=made[0].id, group="variant").dataframe[0].value.set_index("settings")
    lead, pinned = grouped["against the baseline"].iloc[1:]
    assert says(lead, *LEAD)
    assert pinned == "the baseline"
    app.button(key="unpin").click().run()
    assert "baseline" not in app.query_params
    gone = open_page(store, baseline="20200101-0000-digits-ranking-dead")
    assert not gone.exception
    assert gone.button(key="unpin").label == "Unpin the missing baseline"


def test_a_note_is_kept_shown_and_found(open_page, tmp_path):
    store = RunStore(tmp_path)
    run, _ = (made_runs.make_finished_run(store, [f"name={name}"], 0.4) for name in ("one", "two"))
    app = open_page(store, run=run.id)
    app.text_area(key=f"note-{run.id}").input(f"collapsed early\n{HOSTILE}").run()
    app.button(key=f"note-{run.id}-keep").click().run()
    assert not app.exception
    assert notes.read(run) == f"collapsed early\n{HOSTILE}"
    assert escape(HOSTILE) in texts(app, "html")
    assert "<img" not in texts(app, "html", "markdown", "caption")
    assert app.dataframe[0].value["note"].tolist() == ["", notes.read(run)]
    app.text_input(key="find").input("COLLAPSED one").run()
    assert names(app) == ["one"]
    notes.keep(run, "theirs", before=notes.read(run))
    app.run()
    assert app.text_area(key=f"note-{run.id}").value == "theirs", "without user input the box follows"
    app.text_area(key=f"note-{run.id}").input("mine").run()
    notes.keep(run, "theirs again", before="theirs")
    app.run()
    assert "changed elsewhere" in texts(app, "warning")
    assert app.text_area(key=f"note-{run.id}").value == "mine", "user input must be kept"
    app.button(key=f"note-{run.id}-over").click().run()
    assert notes.read(run) == "mine"
    (run.path / notes.FILE).write_bytes(b"\xff")
    app.run()
    assert "note.txt in its folder is damaged" in texts(app, "error")


def test_the_table_is_taken_away_as_it_stands(sweep):
    lines = rows.sort_lines([rows.line(run) for run in sweep[1]], "trained", up=False)
    text = table._csv(table._table(lines, ["optimiser.learning_rate"], None), lines)
    (heading, *read) = csv.reader(text.splitlines())
    assert heading[:4] + heading[7:] == ["id", "status", "run", "progress", "Learning rate", "started"]
    assert [row[0] for row in read] == [each.run.id for each in lines]
    assert [float(row[6]) for row in read] == pytest.approx([90, 52, 50, 32, 30])


def test_which_settings_mattered_and_how_much_that_is_worth(open_page, tmp_path):
    store = RunStore(tmp_path)
    for k in range(8):
        overrides = [f"optimiser.learning_rate={(0.01, 0.001)[k % 2]}", f"seed={k // 2}"]
        made_runs.make_finished_run(store, overrides, 0.5 - 0.2 * (k % 2) + k / 1000)
    app = open_page(store, below="mattered")
    assert not app.exception
    assert "**Learning rate mattered most: " in texts(app, "markdown")
    assert says(texts(app, "markdown"), "2 different settings", "unreliable")
    assert says(texts(app, "caption"), "8 finished runs", "Digits")
    (figure,) = (json.loads(figure.proto.spec) for figure in app.get("plotly_chart"))
    ticks = [tick["text"] for tick in figure["layout"]["annotations"] if tick["x"] == 0]
    assert len(set(ticks)) == len(ticks) > 2
    app.button_group(key="mattered-score").set_value("test").run()
    assert "test MAP@R" in app.get("plotly_chart")[0].proto.spec
    app.text_input(key="find").input("no such words").run()
    assert not app.exception
    for run in store.list()[2:]:
        run.delete()
    app = open_page(store, below="mattered")  # two runs are too few
    assert not app.exception
    assert not app.get("plotly_chart")
    assert says(app.info[0].value, "6 runs")
