"""All pages that show scores of a conditioned embedding say that they are transductive."""

from __future__ import annotations

import json

import pytest

from dmlcore.cli import workers
from dmlcore.experiments import studies
from dmlcore.experiments.protocols import results as protocol_results
from dmlcore.inspection.failure import true_step
from dmlcore.monitoring import comparability
from dmlcore.significance.transductive import mark_transductive
from dmlcore.spec import RunSpec, SpecError
from dmlcore.storage.runs import Run, RunError, RunStore
from dmlcore.training.loop import train
from pages.library.published_results import service as published
from pages.shared.widgets.score_context import beside
from pages.shared.words import titles
from tests.pages.conftest import load_page

TINY = RunSpec().with_overrides(
    [
        *("loss.name=tuplet", "schedule.steps=12", "schedule.validate_every=4", "schedule.checkpoint_every=20"),
        *("conditioning.neighbours=4", "conditioning.after=6", "conditioning.by=average"),
    ]
)


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[RunStore, dict[str, Run]]:
    """Return a transductive run, the same run without conditioning, and a run without neighbours."""
    store = RunStore(tmp_path_factory.mktemp("transductive"))
    specs = {"own": TINY, "train": TINY.with_overrides(["conditioning.among=train"])}
    specs["none"] = TINY.with_overrides(["conditioning.neighbours=0"])
    made = {name: store.create(spec) for name, spec in specs.items()}
    for run in made.values():
        with run.lock():
            assert train(run).state == "done"
    return store, made


def test_runs_say_so_in_name_table_and_curves(trained, monkeypatch):
    store, made = trained
    monkeypatch.setenv("DML_RUNS", str(store.root))
    app = load_page("runs", run=made["own"].id)
    assert not app.exception
    table = next(frame.value for frame in app.dataframe if "embedding" in frame.value)
    assert list(table["embedding"])[-3:] == [
        "trained network (transductive)",
        "network alone, without neighbours",
        "neighbours from the training split (inductive)",
    ]
    names = list(app.dataframe[0].value["run"])
    assert [name.endswith("(transductive)") for name in names] == [False, False, True]
    chart = next(c.proto.spec for c in app.get("vega_lite_chart") if "validation MAP@R" in c.proto.spec)
    legend = json.loads(chart)["vconcat"][0]["layer"][0]["encoding"]["color"]["scale"]["domain"]
    assert {"network alone", "inductive"} <= set(legend)
    assert any(name.endswith("(transductive)") for name in legend)


def test_inspection_and_messages_say_so(trained, capsys):
    _, made = trained
    assert [titles.label(run).endswith("(transductive)") for run in made.values()] == [True, False, False]
    sentence = beside(made["own"])
    assert "**Transductive**" in sentence
    assert "The network alone R@1" in sentence
    assert "neighbours from the training split R@1" in sentence
    assert "Inductive:" in beside(made["train"])
    assert "ransductive" not in beside(made["none"])
    said = [run.state().message.startswith("test MAP@R (transductive)") for run in made.values()]
    assert said == [True, False, False]
    with made["own"].lock():
        assert workers.evaluate(made["own"]).startswith("test MAP@R (transductive) ")
    with made["none"].lock():
        assert workers.evaluate(made["none"]).startswith("test MAP@R ")


def test_runs_that_saw_the_test_samples_are_not_comparable_with_those_that_did_not(trained):
    _, made = trained
    issues = comparability.lint([made["own"], made["train"]])
    assert any(issue.severity == "incomparable" and "transductive" in issue.sentence for issue in issues)
    assert not any("transductive" in issue.sentence for issue in comparability.lint([made["train"], made["none"]]))


def test_failures_ask_for_no_step_of_single_samples(trained, monkeypatch):
    store, made = trained
    monkeypatch.setenv("DML_RUNS", str(store.root))
    for name, refused in (("own", True), ("none", False)):
        app = load_page("failures", run=made[name].id)
        assert not app.exception
        assert sum("Choose a run without conditioning" in each.value for each in app.info) == (2 if refused else 0)
        assert any(button.key in ("influence", "true_step") for button in app.button) != refused
    with pytest.raises(RunError, match="without conditioning"):
        true_step._state(made["own"])


def test_published_rows_and_protocols_say_so(trained):
    _, made = trained
    for name, is_marked in (("own", True), ("train", False)):
        ours = published._group([(made[name], {"R@1": (50.0, None)})])
        assert (ours.what == "one run (transductive)") == is_marked
        protocol = type("P", (), {"report": ["mean"]})()
        member = protocol_results.Member(
            fold=0, seed=0, run="", digest="", weights="", validation=None, scores={"map_at_r": 0.5}, train={},
            baselines={}, steps=1, seconds=0.0, device="",
        )  # fmt: skip
        (summary,) = protocol_results.summarise(protocol, made[name].spec, [member], [])
        assert summary.of.endswith("(transductive)") == is_marked


def test_a_study_names_its_transductive_variants():
    text = """
        title = "T"
        question = "Q"
        source = "S"
        claim = "C"
        minutes = 1
        [base.conditioning]
        neighbours = 4
        after = 10
        [[variants]]
        name = "NAME"
        """
    with pytest.raises(SpecError, match=r"variants\.LSTM: its scores are transductive; mark this in the name"):
        studies.Study.from_toml(text.replace("NAME", "LSTM"))
    assert studies.Study.from_toml(text.replace("NAME", "LSTM, transductive"))
    assert studies.Study.from_toml(text.replace("NAME", "LSTM") + 'overrides = ["conditioning.among=train"]')
    assert mark_transductive("LSTM, Transductive", True) == "LSTM, Transductive"
