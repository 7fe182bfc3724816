"""Hyper-parameter search: parsing, trials, resuming, concurrent workers, killed workers, real runs."""

import subprocess
import sys

import pytest

from dmlcore.experiments import search
from dmlcore.experiments.search import Dimension, parse, prepare, ready
from dmlcore.jobs.backends.side_by_side import Pause
from dmlcore.published import karaman
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.home import HOME
from dmlcore.storage.runs import MetricsWriter, RunStore
from tests.members import in_one_case


def made(best=0.3, fail=()):
    """Write the rows of a run whose validation MAP@R falls with the distance of loss.m from `best`."""

    def work(run, stopped):
        with run.lock():
            run.mark_running()
            value = run.spec.loss.parameters["m"]
            with MetricsWriter(run, 0) as rows:
                for step, share in ((1, 0.5), (2, 1.0), (3, 0.7)):
                    score = share * (1 - abs(value - best))
                    rows.append({"kind": "validation", "step": step, "map_at_r": score, "recall_at_1": 0.0})
                rows.append({"kind": "validation", "part": "test", "step": 3, "map_at_r": 1.0, "recall_at_1": 1.0})
                rows.append({"kind": "scores", "of": "trained", "step": 3, "map_at_r": 1 - score})  # not read
            bad = any(abs(value - x) < 1e-9 for x in fail)
            run.update(state="failed" if bad else "done", message="it broke" if bad else "")

    return work


class Here:
    """A backend that makes a run immediately, in this process."""

    max_concurrent = 1

    def __init__(self, train):
        self.train = train

    def begin(self, run, task, settings=""):
        self.train(run, None)
        return Pause(lambda: True)


def test_ranges_choices_and_fixed_values_are_told_apart():
    fixed, space = parse(
        ["loss.m=0.01..1:log:7", "batch.samples=2,4,8", "schedule.steps=3", "model.hidden=[8, 4]", "batch.classes=2..9"]
    )
    assert fixed == ["schedule.steps=3", "model.hidden=[8, 4]"]
    assert space == (
        Dimension("loss.m", 0.01, 1.0, log=True, points=7),
        Dimension("batch.samples", choices=("2", "4", "8")),
        Dimension("batch.classes", 2.0, 9.0, whole=True),
    )
    assert space[0].grid() == pytest.approx([0.01, 0.0215443, 0.0464159, 0.1, 0.2154435, 0.4641589, 1.0], rel=1e-5)
    assert space[2].grid() == [2, 4, 6, 7, 9]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["loss.m"], "expected key=low..high"),
        (["loss.m=1..0.1"], "needs low < high"),
        (["loss.m=0..1:log"], "start above 0"),
        (["loss.m=a..b"], r"expected low\.\.high"),
        (["loss.m=0..1:1"], "at least two points"),
        (["batch.classes=2.5..4"], "whole numbers"),
        (["batch.samples=2,2"], "must be distinct"),
        (["loss.m=0..1", "loss.m=1,2"], "searched twice"),
        (["schedule.steps=3"], "no key is searched"),
        (["optimiser.learning_rat=1..2"], "did you mean learning_rate"),
        (["batch.classes=1..4"], "batch.classes"),
        (["loss.m=0..1", "loss.nonsense=1"], "ranking has no hyper-parameter nonsense"),
        (["loss.m=1,abc"], "m must be a number, got 'abc'"),
        (["loss.m=0..1", "data.validation=none"], "needs scores of the validation split"),
        (["loss.m=0..1", "schedule.monitor_part=test"], "needs scores of the validation split"),
        (["data.validation=none,classes"], "cannot be searched"),
    ],
)
def test_bad_searches_are_refused_before_anything_is_made(arguments, message):
    with pytest.raises(SpecError, match=message):
        prepare(RunSpec(), arguments, "x")


@pytest.mark.parametrize("method", ["random", "tpe", "gp"])
def test_a_search_finds_a_good_point_and_goes_on_where_it_ended(method, tmp_path):
    most = 4 if method == "random" else 11  # TPE and GP draw ten random points before they use results
    store = RunStore(tmp_path)
    first = prepare(RunSpec(), ["loss.m=0..1"], "margin", method=method, trials=2)
    assert search.conduct(first, store, where=Here(made()))
    more = prepare(RunSpec(), ["loss.m=0..1"], "margin", method=method, trials=most)
    assert search.conduct(more, store, where=Here(made()))
    rows = search.trials(more, store)
    assert [row.number for row in rows] == list(range(1, most + 1))
    assert len({row.values["loss.m"] for row in rows}) == most
    assert len(store.list()) == most
    for row in rows:
        assert store.open(row.run).spec.loss.parameters["m"] == row.values["loss.m"]
        assert row.value == pytest.approx(1 - abs(row.values["loss.m"] - 0.3))  # the best validation, no test score
    best = search.best(more, rows)
    assert abs(best.loss.parameters["m"] - 0.3) == min(abs(row.values["loss.m"] - 0.3) for row in rows)
    path = search.write_best(best, more, store)
    assert RunSpec.from_toml(path.read_text()) == best
    assert search.as_text(rows).splitlines()[1].split()[0] == str(max(rows, key=lambda row: row.value).number)
    assert search.conduct(more, store, where=Here(None))  # nothing left to run


def test_a_grid_visits_every_point_once(tmp_path):
    wanted = prepare(RunSpec(), ["loss.m=0.1..0.5:3", "batch.samples=2,4"], "grid", method="grid")
    assert wanted.trials == 6
    assert search.conduct(wanted, RunStore(tmp_path), where=Here(made()))
    found = {(row.values["loss.m"], row.values["batch.samples"]) for row in search.trials(wanted, RunStore(tmp_path))}
    assert found == {(m, n) for m in (0.1, 0.3, 0.5) for n in ("2", "4")}


def test_one_key_at_a_time_and_the_best_of_each_together_at_the_end(tmp_path):
    """Psomas 2020, Sec. 4.3: the other keys keep their base values, and the base is tried too."""
    base = RunSpec().with_overrides(["loss.m=0.9", "batch.samples=4"])
    wanted = prepare(base, ["loss.m=0.1..0.5:3", "batch.samples=2,4", "seed=5"], "each", method="each")
    store = RunStore(tmp_path)

    def work(run, stopped):
        made(best=0.3 if run.spec.batch.samples == 4 else 0.2)(run, stopped)

    first = prepare(base, ["loss.m=0.1..0.5:3", "batch.samples=2,4", "seed=5"], "each", method="each", trials=3)
    assert search.conduct(first, store, where=Here(work))  # continues from there
    assert search.conduct(wanted, store, where=Here(work))
    assert search.conduct(wanted, store, where=Here(None))  # nothing left to run
    rows = search.trials(wanted, store)
    assert [row.values for row in rows] == [
        *({}, {"loss.m": 0.1}, {"loss.m": 0.3}, {"loss.m": 0.5}, {"batch.samples": "2"}, {"batch.samples": "4"}),
    ]
    specs = [store.open(row.run).spec for row in rows]
    assert [(s.loss.parameters["m"], s.batch.samples, s.seed) for s in specs] == [
        *((0.9, 4, 5), (0.1, 4, 5), (0.3, 4, 5), (0.5, 4, 5), (0.9, 2, 5), (0.9, 4, 5)),
    ]
    assert rows[0].run == rows[5].run  # no second run of one spec
    # with two samples it is worse than the base, so no combination is tried
    assert search.optima(rows) == {"loss.m": 0.3}


def test_the_best_of_each_key_together_is_one_more_trial_that_has_to_win_by_its_own_score(tmp_path):
    def work(run, stopped):
        made(best={4: 0.6, 2: 0.8, 3: 0.1}[run.spec.batch.samples])(run, stopped)

    wanted = prepare(RunSpec().with_overrides(["loss.m=1", "batch.samples=4"]),
                     ["loss.m=0.2,0.6", "batch.samples=2,3"], "each", method="each")  # fmt: skip
    assert search.conduct(wanted, RunStore(tmp_path), where=Here(work))
    rows = search.trials(wanted, RunStore(tmp_path))
    assert len(rows) == wanted.trials
    assert rows[-1].values == search.optima(rows) == {"loss.m": "0.6", "batch.samples": "2"}
    assert rows[-1].value == pytest.approx(0.8)
    assert search.best(wanted, rows).batch.samples == 4  # m = 0.6 alone scored 1


@in_one_case(name=[name for name in ready.names() if not name.startswith("karaman")])
def test_a_ready_search_fits_any_spec_and_has_the_points_of_its_source(name):
    found = ready.build_space(ready.read(name), RunSpec().with_overrides(["miner.name=semi_hard"]), ["seed=3"], "x")
    # Table 15: margins, epsilon and tau 0, .1, ..., 1; scales 2, 4, ..., 100; learning rates and gamma ten each
    points = {"multi-similarity": 123, "soft-triple": 93, "proxy-anchor": 62, "gsp": 28, "ccp": 16, "ccp-batch": 5}
    assert len(list(found.points())) == points[name.split("-2020-")[-1].split("-2022-")[-1]]
    assert found.spec({}).seed == 3
    assert found.spec({}).miner.name == "all"
    for dimension in found.space:
        steps = [float(value) for value in dimension.grid()]
        assert dimension.key != "loss.alpha" or steps == list(range(2, 101, 2))
        assert dimension.key not in ("loss.m", "loss.delta") or steps == pytest.approx([k / 10 for k in range(11)])
        if name.startswith("gurbuz-2022-ccp"):
            assert found.spec({}).projection.pool == 12
            assert found.spec({}).loss.name == "contrastive_proxy"
        assert dimension.key != "loss.gamma" or [round(1 / x) for x in steps] == list(range(10, 101, 10))


@pytest.mark.parametrize(
    ("name", "tables", "more"),
    [
        ("ranking", ["4.2"], 0),
        ("facenet", ["4.2"], 0),
        ("ratio", ["4.3"], 0),
        ("angular", ["4.3"], 0),
        ("angular-no-hinge", ["4.4"], 0),
        ("moving", ["4.5", "4.6", "4.7"], 0),
        ("forces", ["4.8"], 4),  # (s, r) = (0, -1)
        ("location-aware", ["4.9"], 0),
        ("metu-rho", ["4.10"], 0),
        ("metu-margins", ["4.11", "4.12"], 0),
    ],
)
def test_the_searches_of_karaman_have_the_rows_of_the_printed_tables(name, tables, more):
    """The rows are those of `dmlcore.published`, which was transcribed from the source separately."""
    found = ready.build_space(ready.read(f"karaman-2021-{name}"), RunSpec(), [], "x")
    specs = [found.spec(point) for point in found.points()]
    keys = [dimension.key.removeprefix("loss.") for dimension in found.space]
    fixed = found.base.loss.parameters.keys()
    rows = [row for row in karaman.rows() if row.table in tables and row.loss == specs[0].loss.name]
    printed = {tuple(round(float(row.hyper[key]), 6) for key in keys) for row in rows}
    points = {tuple(round(float(spec.loss.parameters[key]), 6) for key in keys) for spec in specs}
    assert printed <= points
    assert len(points) - len(printed) == more
    assert all(row.hyper[key] == specs[0].loss.parameters[key] for row in rows for key in fixed if key in row.hyper)


def test_keys_that_are_given_replace_those_of_a_ready_search():
    chosen = ready.read("psomas-2020-proxy-anchor")
    found = ready.build_space(chosen, RunSpec(), ["loss.alpha=8..32:4", "loss.delta=0.2"], "x", trials=3)
    assert [(d.key, len(d.grid())) for d in found.space] == [("loss.alpha", 4)]
    assert found.base.loss.parameters == {"alpha": 32.0, "delta": 0.2}
    assert found.base.loss.learning_rate == 0.01
    assert found.trials == 3
    with pytest.raises(SpecError, match="choose one of: gurbuz-2022-ccp"):
        ready.read("nonsense")


def test_another_search_of_the_same_name_is_refused(tmp_path):
    store = RunStore(tmp_path)
    search.conduct(prepare(RunSpec(), ["loss.m=0..1"], "x", trials=1), store, where=Here(made()))
    for other, what in ((["loss.m=0..2"], "space"), (["loss.m=0..1", "seed=3"], "base")):
        with pytest.raises(SpecError, match=f"started with a different {what}"):
            search.conduct(prepare(RunSpec(), other, "x", trials=1), store, where=Here(made()))


def test_a_run_that_fails_costs_its_trial_and_its_reason_is_told(tmp_path):
    wanted = prepare(RunSpec(), ["loss.m=0.1..0.5:3"], "x", method="grid")
    assert search.conduct(wanted, RunStore(tmp_path), where=Here(made(fail=[0.3])))
    rows = search.trials(wanted, RunStore(tmp_path))
    assert sorted((row.values["loss.m"], row.state, row.message) for row in rows) == [
        (0.1, "complete", ""),
        (0.3, "fail", "it broke"),
        (0.5, "complete", ""),
    ]


def test_stopped_between_two_steps_the_same_point_goes_on_in_the_same_run(tmp_path):
    store, wanted = RunStore(tmp_path), prepare(RunSpec(), ["loss.m=0..1"], "x", trials=2)
    asked: list[bool] = []

    def stops(run, stopped):
        with run.lock():
            run.mark_running()
            run.update(state="cancelled", message="stopped after step 1")
        asked.append(True)

    assert not search.conduct(wanted, store, where=Here(stops), stop=lambda: bool(asked))
    assert search.conduct(wanted, store, where=Here(lambda run, stopped: finish(run)))
    rows = search.trials(wanted, store)
    assert [(row.state, row.message) for row in rows] == [
        ("fail", "stopped, queued again"),
        ("complete", ""),
        ("complete", ""),
    ]
    assert rows[0].run == rows[1].run
    assert len(store.list()) == 2


def finish(run):
    with run.lock():
        if run.state().state == "cancelled":
            run.update(state="queued")
    made()(run, None)


WORKER = """
import sys, time
from dmlcore.experiments import search
from dmlcore.storage.runs import RunStore
from dmlcore.spec import RunSpec
from tests.experiments.search.test_search import Here

def hangs(run, stopped):
    with run.lock():
        run.mark_running()
    print("begun", flush=True)
    time.sleep(120)

search.conduct(search.prepare(RunSpec(), ["loss.m=0..1"], "x", trials=3), RunStore(sys.argv[1]), where=Here(hangs))
"""


OTHER = """
import sys
from dmlcore.experiments import search
from dmlcore.storage.runs import RunStore
from dmlcore.spec import RunSpec
from tests.experiments.search.test_search import Here, made

search.conduct(search.prepare(RunSpec(), ["loss.m=0..1"], "x", trials=4), RunStore(sys.argv[1]), where=Here(made()))
"""


def start(code, folder):
    command = [sys.executable, "-c", code, str(folder)]
    return subprocess.Popen(command, cwd=HOME, stdout=subprocess.PIPE, text=True)


def killed_worker(folder):
    with start(WORKER, folder) as process:
        assert process.stdout.readline() == "begun\n"
        process.kill()


@pytest.mark.processes
def test_a_killed_worker_costs_nothing_but_is_tried_only_once_more(tmp_path):
    store, wanted = RunStore(tmp_path), prepare(RunSpec(), ["loss.m=0..1"], "x", trials=3)
    killed_worker(tmp_path)
    (lost,) = store.list()
    killed_worker(tmp_path)  # another worker had the point
    assert [run.id for run in store.list()] == [lost.id]
    assert search.conduct(wanted, store, where=Here(made()))
    rows = search.trials(wanted, store)
    assert [(row.state, row.message) for row in rows] == [
        ("fail", "its worker was killed, queued again"),
        ("fail", "its worker was killed again"),
        ("complete", ""),
        ("complete", ""),
    ]
    assert rows[0].run == rows[1].run == lost.id


@pytest.mark.processes
def test_two_workers_share_the_trials(tmp_path):
    store, wanted = RunStore(tmp_path), prepare(RunSpec(), ["loss.m=0..1"], "x", trials=4)
    with start(OTHER, tmp_path) as other:
        assert search.conduct(wanted, store, where=Here(made()))
    assert other.returncode == 0
    rows = search.trials(wanted, store)
    assert [row.state for row in rows] == ["complete"] * 4
    assert len({row.values["loss.m"] for row in rows}) == len({row.run for row in rows}) == 4


def test_trials_are_ordinary_trainings(tmp_path):
    from dmlcore.training.loop import train  # imported late, because workers import this module and need no torch

    arguments = [
        "loss.m=0.1,0.5",
        "schedule.steps=2",
        "schedule.validate_every=1",
        "model.hidden=[4]",
        "batch.classes=4",
    ]
    wanted = prepare(RunSpec(), arguments, "real", method="grid")

    def here(run, stopped):
        with run.lock():
            train(run)

    store = RunStore(tmp_path)
    assert search.conduct(wanted, store, where=Here(here))
    rows = search.trials(wanted, store)
    assert [row.state for row in rows] == ["complete", "complete"]
    for row in rows:
        run = store.open(row.run)
        validated = [x["map_at_r"] for x in run.metrics()[0] if x["kind"] == "validation"]
        assert (run.state().state, row.value) == ("done", max(validated))
