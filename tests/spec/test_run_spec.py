import hashlib
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dmlcore.spec import RunSpec, SpecError, keys
from dmlcore.spec.first_defaults import FIRST
from tests.members import in_one_case


def changed(*assignments: str) -> RunSpec:
    return RunSpec().with_overrides(assignments)


@st.composite
def specs(draw: st.DrawFn) -> RunSpec:
    word = st.text(st.characters(categories=["L", "N", "P", "Zs"]), max_size=20).filter(str.isprintable)
    number = st.floats(allow_nan=False).filter(lambda x: x != -math.inf)
    return RunSpec.parse(
        {
            "name": draw(word),
            "seed": draw(st.integers(0, 2**32 - 1)),
            "data": {"root": draw(st.none() | word), "image_size": draw(st.none() | st.integers(32, 512))},
            "model": {"hidden": draw(st.lists(st.integers(1, 4096), max_size=4))},
            "loss": {"parameters": draw(st.dictionaries(st.sampled_from(["m", "m1", "m2", "rho"]), number))},
            "optimiser": {"learning_rate": draw(st.floats(1e-12, 10))},
        }
    )


@given(specs())
def test_toml_and_json_bring_back_the_same_spec(spec: RunSpec) -> None:
    for copy in (RunSpec.from_toml(spec.to_toml()), RunSpec.from_json(spec.to_json())):
        assert copy == spec
        assert copy.digest() == spec.digest()
        assert copy.differences(spec) == []


def test_digest_changes_with_every_key() -> None:
    changes = ["seed=1", "name=x", "loss.m=0.3", "schedule.steps=7", "model.hidden=[3]", "data.image_size=64"]
    assert len({changed(change).digest() for change in changes} | {RunSpec().digest()}) == len(changes) + 1


def test_a_default_that_changes_makes_other_runs() -> None:
    """Stored runs contain all keys and keep their digest; omitting a key later would make it another experiment."""
    before, stored = RunSpec().digest(), RunSpec().to_json()
    code = "from dmlcore.spec import RunSpec, sections; "
    code += "RunSpec.model_fields['schedule'].default = sections.ScheduleSpec(steps=777); "
    code += "RunSpec.model_rebuild(force=True); "
    code += f"print(RunSpec().schedule.steps, RunSpec().digest(), RunSpec.from_json({stored!r}).digest())"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found[0] == "777"
    assert found[1] != before == found[2]


def test_digests_are_those_of_the_first_release() -> None:
    """Studies, protocols and results store digests: add a line for a new key, and never change one."""
    inner = {f"{name}.{key}" for name, value in FIRST.items() if isinstance(value, dict) for key in value}
    assert inner | {name for name, value in FIRST.items() if not isinstance(value, dict)} == set(keys())
    assert RunSpec().digest() == hashlib.sha256(b"{}").hexdigest(), "so far no default has changed"
    stored = "49ce5b8694e81fa8aa7285d8678e5cbc5cae5b43f6a60b5e731bf207a91230d5"
    assert changed("loss.m=0.3", "seed=1", "schedule.steps=7").digest() == stored


def test_integers_and_floats_of_the_same_value_have_one_digest() -> None:
    assert changed("loss.m=1").digest() == changed("loss.m=1.0").digest()


def test_infinity_survives() -> None:
    spec = changed("loss.name=distance_sensitive", "loss.m2=inf")
    assert spec.loss.parameters == {"m2": math.inf}
    assert "m2 = inf" in spec.to_toml()
    assert '"m2":"inf"' in spec.to_json()


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("schedule.step=3", "schedule.step: unknown key; did you mean steps?"),
        ("nonsense=3", "nonsense: unknown key; known keys: batch, compute"),
        ("schedule.steps=0", "schedule.steps: must be at least 1, got 0"),
        ("schedule.steps=true", "schedule.steps: True is not a whole number"),
        ("schedule.steps='100'", "schedule.steps: '100' is not a whole number"),
        ("optimiser.learning_rate=nan", "optimiser.learning_rate: "),
        ("optimiser.learning_rate=inf", "optimiser.learning_rate: "),
        ("loss.m=nan", "loss.parameters.m: must be a number or inf, got nan"),
        ("loss.m=true", "loss.parameters.m: must be a number or a word"),
        ("seed.x=1", "seed.x: seed is a value, not a section"),
        ("seed", "seed: expected key=value"),
        ("name=1\nseed=3", "name: expected one value"),
        ('name="a\\u202eb"', "name: must be printable text on one line"),
        ("model.hidden=[0]", "model.hidden.0: must be at least 1, got 0"),
        ("model.hidden=[1,2,3,4,5,6,7,8,9]", "model.hidden: takes at most 8, got [1, 2, 3"),
        ("data.folds=1", "data.folds: one fold would validate on all classes"),
        ("data.split=half", "data.split: input should be 'classes', 'samples', 'own' or 'none'"),
        pytest.param("ks=" + "[" * 100_000, "ks: lists and tables can be nested at most 8 levels deep", id="brackets"),
        pytest.param("ks=" + "[1," * 3000, "ks: lists and tables can be nested at most 8 levels deep", id="open lists"),
        pytest.param(
            "ks=" + "[1," * 90 + "]" * 90, "ks: lists and tables can be nested at most 8 levels deep", id="closed lists"
        ),
        pytest.param("loss." + "a." * 3000 + "b=1", "loss.a.a.a.a.a.a.a.a: lists and tables can", id="dotted key"),
        pytest.param("seed=" + "9" * 5000, "seed: a number has too many digits", id="digits"),
        pytest.param(
            "loss.m=0x" + "f" * 9000, "loss.parameters.m: a whole number of more than 64 bits", id="hex digits"
        ),
        pytest.param(
            "loss.m=" + "9" * 400, "loss.parameters.m: a whole number of more than 64 bits", id="beyond floats"
        ),
        pytest.param("loss.m=" + "x" * 3000, "loss.parameters.m: must be a number or a word of at most 64", id="word"),
        pytest.param("name=" + "x" * 1_000_001, "name: at most 1,000,000 characters", id="length"),
    ],
)
def test_mistakes_are_refused_by_name(assignment: str, message: str) -> None:
    with pytest.raises(SpecError) as refusal:
        changed(assignment)
    assert str(refusal.value).startswith(message)
    assert "\n" not in str(refusal.value)
    assert len(str(refusal.value)) < 250, "the input must be quoted in truncated form"


def test_more_changes_than_any_spec_has_keys_are_refused() -> None:
    with pytest.raises(SpecError, match="more than 1,000 settings"):
        changed(*["seed=1"] * 1001)


@in_one_case(text=["ks = " + "[" * 50_000, "seed = " + "9" * 5000, "a." * 9 + "b = 1", "#" * 1_000_001])
def test_text_that_no_parser_can_hold_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        RunSpec.from_toml(text)


def test_every_mistake_has_its_line() -> None:
    with pytest.raises(SpecError) as refusal:
        changed("schedule.steps=0", "seed=-1", "batch.classes=1")
    assert {line.partition(":")[0] for line in str(refusal.value).splitlines()} == {
        "schedule.steps",
        "seed",
        "batch.classes",
    }


def test_patience_needs_a_validation_split() -> None:
    with pytest.raises(SpecError, match=r"schedule\.patience: needs a validation split"):
        changed("schedule.patience=3", "data.validation=none")


@in_one_case(text=["", "[1, 2]", "{", "null", '{"seed": 1e999}'])
def test_what_is_no_spec_is_refused(text: str) -> None:
    with pytest.raises(SpecError):
        RunSpec.from_json(text)
    with pytest.raises(SpecError):
        RunSpec.from_toml("seed = [")


def test_a_new_loss_drops_the_parameters_of_the_old_one() -> None:
    spec = changed("loss.m=0.3", "loss.name=angular", "loss.rho=0.5")
    assert spec.loss.parameters == {"rho": 0.5}
    assert changed("loss.m=0.3", "loss.name=ranking").loss.parameters == {"m": 0.3}


def test_a_spec_is_frozen() -> None:
    with pytest.raises(ValueError, match="frozen"):
        RunSpec().seed = 3  # type: ignore[misc]  # the mistake under test


def test_every_key_is_described_and_settable() -> None:
    for key, field in keys().items():
        assert field.description, key
        section, _, name = key.rpartition(".")
        default = getattr(getattr(RunSpec(), section) if section else RunSpec(), name)
        assert RunSpec.parse({section: {name: default}} if section else {name: default}) == RunSpec()


def test_differences_name_the_key() -> None:
    assert RunSpec().differences(changed("schedule.steps=7")) == ["schedule.steps: 400 | 7"]
