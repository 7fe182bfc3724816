"""The form of a RunSpec: presets, the sidebar, and the command line that trains the same."""

from __future__ import annotations

import math
import shlex
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import streamlit as st
import tomli_w
import torch

from dmlcore import data, losses, pooling
from dmlcore.data import DataError
from dmlcore.spec import DataSpec, RunSpec, SpecError, keys
from pages._ui.forms import Form

SPECS = Path(__file__).resolve().parents[2] / "assets" / "specs"
FIRST = "digits"
NETWORKS = {"vectors": ["mlp"], "pictures": ["resnet20", "resnet18", "resnet50"], "tokens": ["tokens"]}
WITH_SHARES = [
    name for name in pooling.names() if issubclass(pooling.describe(name).layer, pooling.GeneralizedSumPooling)
]
WITH_PARAMETERS = {"loss": losses.describe, "pooling": pooling.describe}
WORDS = {
    "samples": "new samples of known classes",
    "classes": "classes never seen",
    "none": "nothing",
    "mean_valid": "mean over all triplets",
    "mean_nonzero": "mean over triplets that cost something",
    "mean_raw": "mean without clamps",
    "mlp": "MLP, for vectors",
    "resnet20": "ResNet20, for small pictures",
    "resnet18": "ResNet-18",
    "resnet50": "ResNet-50",
    "tokens": "Table of token vectors, for bags",
    "rmsprop": "RMSprop",
    "adam": "Adam",
    "cpu": "CPU",
    "cuda": "CUDA",
}


@cache
def presets() -> dict[str, RunSpec]:
    """The specs in assets/specs by name, the default first."""
    found = {path.stem: RunSpec.from_toml(path.read_text()) for path in sorted(SPECS.glob("*.toml"))}
    return {FIRST: found.pop(FIRST)} | found


@cache
def cuda() -> bool:
    """Whether this machine has a CUDA device that torch can use."""
    return torch.cuda.is_available()


def fill(form: Form, spec: RunSpec) -> None:
    """Put a spec into the form."""
    form.fill(_values(spec) | {"base": spec})


def _values(spec: RunSpec) -> dict[str, Any]:
    plain: dict[str, Any] = spec.model_dump()
    values: dict[str, Any] = {}
    for key in keys():
        section, _, name = key.rpartition(".")
        values[key] = plain[section][name] if section else plain[name]
    values["model.hidden"] = ", ".join(map(str, spec.model.hidden))
    values["data.root"] = spec.data.root or ""
    if spec.data.name in data.names():
        info = data.describe(spec.data.name)
        values |= {"data.split": spec.data.split or info.split}
        values |= {"data.validation": spec.data.validation or info.validation}
    values["model.start"] = spec.model.start or ""
    for section in WITH_PARAMETERS:
        del values[f"{section}.parameters"]
        formula = _formula(section, plain[section]["name"])
        if formula is not None:
            given = {**formula.defaults, **plain[section]["parameters"]}
            values |= {_parameter(section, formula.name, key): value for key, value in given.items()}
            values |= {
                f"{_parameter(section, formula.name, key)}-open": value == math.inf for key, value in given.items()
            }
    return values


def sidebar(form: Form) -> None:
    """All fields of the form."""
    form.choice(
        "preset",
        "Start from",
        list(presets()),
        words=lambda name: presets()[name].name or name,
        help="Fills the whole form with one of the specs in assets/specs.",
        on_change=_use_preset,
        args=(form,),
    )
    _field(form, "name", "Name")
    info = _data(form)
    _loss(form)
    _network(form, info.kind)
    if info.kind != "vectors":
        _pooling(form)
    _training(form)


def _field(form: Form, key: str, label: str, **shown: Any) -> Any:
    """The widget of a key of the spec."""
    return form.field(key, label, keys()[key], words=lambda value: WORDS.get(value, value), **shown)


def _data(form: Form) -> data.Description:
    st.subheader("Data", anchor=False)
    name = form.choice(
        "data.name",
        "Data set",
        data.names(),
        words=lambda name: data.describe(name).title,
        help="Choosing one takes over its usual parts, and network, batch and steps where a spec has them.",
        on_change=_use_data,
        args=(form,),
    )
    info = data.describe(name)
    if info.needs_files:
        _field(form, "data.root", "Folder of the data", placeholder="the usual places")
        _where(info, form.values["data.root"])
    if info.split == "own":
        st.caption("This data set brings its own parts for training, validation and test.")
    else:
        _field(form, "data.split", "Test on", without=("own",))
        _field(form, "data.validation", "Validate on", without=("own",))
    if info.resizes:
        _field(form, "data.image_size", "Picture size", placeholder="as stored")
    return info


def _loss(form: Form) -> None:
    st.subheader("Loss", anchor=False)
    loss = form.choice(
        "loss.name",
        "Loss",
        [*losses.names(), *losses.batch_names()],
        words=lambda name: losses.describe(name).title,
        help="Triplet losses, then losses of pairs, proxies and classes.",
    )
    _parameters(form, "loss", loss)
    if loss in losses.names():
        _field(form, "loss.reduction", "Reduction")


def _network(form: Form, kind: str) -> None:
    st.subheader("Network", anchor=False)
    form.choice(
        "model.name",
        "Network",
        NETWORKS[kind],
        words=lambda name: WORDS[name],
        help=keys()["model.name"].description,
    )
    if kind == "vectors":
        _field(form, "model.hidden", "Hidden layers", placeholder="none: a linear map")
    _field(form, "model.embedding_dim", "Embedding dimension")
    _field(form, "model.normalize", "Normalise embeddings")
    if kind == "pictures":
        _field(form, "model.start", "Backbone from", placeholder="at random")
        _field(form, "data.augment", "Flip and shift pictures")


def _pooling(form: Form) -> None:
    st.subheader("Pooling", anchor=False)
    pool = form.choice(
        "pooling.name",
        "Pooling",
        pooling.names(),
        words=lambda name: pooling.describe(name).title,
        help=keys()["pooling.name"].description,
    )
    _parameters(form, "pooling", pool)
    if pool in WITH_SHARES:
        share = _field(form, "pooling.zero_shot", "Zero-shot share", step=0.1)
        if share:
            _field(form, "pooling.ridge", "Ridge", step=0.01)
            _field(form, "pooling.logit_scale", "Logit scale", step=0.5)


def _training(form: Form) -> None:
    st.subheader("Training", anchor=False)
    left, right = st.columns(2)
    with left:
        _field(form, "batch.classes", "Batch classes")
        _field(form, "schedule.steps", "Steps", step=50)
        _field(form, "optimiser.name", "Optimiser")
        _field(form, "seed", "Seed")
    with right:
        _field(form, "batch.samples", "Samples each")
        _field(form, "schedule.validate_every", "Validate every", step=10)
        _field(form, "optimiser.learning_rate", "Learning rate")
        _field(form, "schedule.patience", "Patience")
    device = {"auto": f"auto: {'CUDA' if cuda() else 'CPU'} on this machine"}
    form.field("device", "Device", keys()["device"], words=lambda value: (device | WORDS).get(value, value))
    with st.expander("More"):
        _field(form, "optimiser.weight_decay", "Weight decay")
        _field(form, "schedule.plateau", "Plateau")
        _field(form, "schedule.checkpoint_every", "Checkpoint every", step=10)


def _formula(section: str, name: str) -> losses.TripletFormula | losses.BatchFormula | pooling.PoolingInfo | None:
    """What is known of a loss or a pooling; None for a name that there is not."""
    try:
        return WITH_PARAMETERS[section](name)
    except KeyError:
        return None


def _parameters(form: Form, section: str, name: str) -> None:
    """The sliders of a loss or a pooling."""
    formula = WITH_PARAMETERS[section](name)
    for key in _shown_parameters(form, section, formula):
        form.parameter(_parameter(section, name, key), key, formula.parameters[key], formula.defaults[key])


def spec_of(form: Form) -> RunSpec:
    """The spec that the form shows; raises SpecError naming what cannot be used."""
    values = form.values
    nested: dict[str, Any] = {}
    for key in keys():
        section, _, name = key.rpartition(".")
        if name != "parameters":
            (nested.setdefault(section, {}) if section else nested)[name] = values.get(key)
    info = data.describe(values["data.name"])
    nested["data"]["root"] = (values["data.root"] or "").strip() or None if info.needs_files else None
    if info.split == "own":
        nested["data"] |= {"split": None, "validation": None}
    nested["data"]["image_size"] = values["data.image_size"] if info.resizes else None
    nested["model"]["hidden"] = _widths(values["model.hidden"])
    nested["model"]["start"] = (values["model.start"] or "").strip() or None if info.kind == "pictures" else None
    nested["loss"]["parameters"] = _given_parameters(form, "loss", losses.describe(values["loss.name"]))
    if values["loss.name"] not in losses.names():
        del nested["loss"]["reduction"]
    if info.kind == "vectors":
        del nested["pooling"]
    else:
        nested["pooling"]["parameters"] = _given_parameters(form, "pooling", pooling.describe(values["pooling.name"]))
        if values["pooling.name"] not in WITH_SHARES:
            del nested["pooling"]["zero_shot"]
    return RunSpec.parse(nested)


def command(spec: RunSpec) -> str | None:
    """The command line that trains exactly this, starting from the preset with the fewest changes; None without one."""
    tries = [(name, changes) for name, preset in presets().items() if (changes := overrides(preset, spec)) is not None]
    if not tries:
        return None
    name, changes = min(tries, key=lambda found: len(found[1]))
    return shlex.join(["python", "-m", "dmlcore", "train", name, *changes])


def link(spec: RunSpec) -> str:
    """The query under which the Train page opens with this spec; of the default where a spec has no spelling."""
    tries = [(name, changes) for name, preset in presets().items() if (changes := overrides(preset, spec)) is not None]
    name, changes = min(tries, key=lambda found: len(found[1]), default=(FIRST, []))
    return urlencode({"base": name, "set": ";".join(changes)})


def linked(query: Mapping[str, str]) -> RunSpec | None:
    """The spec of a link, from a query never trusted; None if it names none that can be used."""
    base = presets().get(query.get("base", ""))
    if base is None:
        return None
    try:
        return base.with_overrides(change for change in query.get("set", "")[:4000].split(";") if change)
    except SpecError:
        return None


def overrides(base: RunSpec, spec: RunSpec) -> list[str] | None:
    """The key=value that turn `base` into `spec`; None where that takes removing a key, which has no spelling."""
    changes = []
    plain, before = spec.model_dump(), base.model_dump()
    for key in keys():
        section, _, name = key.rpartition(".")
        mine, theirs = (values[section][name] if section else values[name] for values in (plain, before))
        if name == "parameters":
            kept = theirs if plain[section]["name"] == before[section]["name"] else {}
            changes += [f"{section}.{k}={_toml(v)}" for k, v in mine.items() if kept.get(k) != v]
        elif mine != theirs and mine is not None:
            changes.append(f"{key}={_toml(mine)}")
    try:
        return changes if base.with_overrides(changes) == spec else None
    except SpecError:
        return None


def _toml(value: Any) -> str:
    if isinstance(value, str) and value.isidentifier() and value not in ("true", "false", "inf", "nan"):
        return value  # a bare word is read as a string
    if isinstance(value, tuple):
        return f"[{', '.join(map(_toml, value))}]"
    return tomli_w.dumps({"value": value}).removeprefix("value = ").strip()


def _parameter(section: str, name: str, key: str) -> str:
    """Each loss and pooling remembers its own values."""
    return f"{section}.{name}.{key}"


def _shown_parameters(form: Form, section: str, formula: Any) -> list[str]:
    """The parameters of its panel, and what the spec we started from sets beyond them."""
    base = getattr(form.values["base"], section)
    given: Mapping[str, Any] = base.parameters if base.name == formula.name else {}
    panel = getattr(formula, "sliders", formula.parameters)
    return [key for key in formula.parameters if key in panel or key in given]


def _given_parameters(form: Form, section: str, formula: Any) -> dict[str, float | str]:
    """Every parameter shown, spelled out: a spec means the same even if a default changes one day."""
    values: dict[str, float | str] = {}
    for key in _shown_parameters(form, section, formula):
        name = _parameter(section, formula.name, key)
        opened = form.values.get(f"{name}-open", False)
        values[key] = math.inf if opened else form.values.get(name, formula.defaults[key])
    return values


def _widths(text: str) -> list[Any]:
    parts = (text or "").replace(",", " ").split()
    return [int(part) if part.isdecimal() else part for part in parts]


def _use_preset(form: Form) -> None:
    fill(form, presets()[st.session_state[form.widget_key("preset")]])


def _use_data(form: Form) -> None:
    """Take over what suits another data set; loss, seed and device stay."""
    name = st.session_state[form.widget_key("data.name")]
    spec = next((spec for spec in presets().values() if spec.data.name == name), None)
    if spec is None:
        values = _values(RunSpec(data=DataSpec(name=name)))
        form.fill({key: value for key, value in values.items() if key.startswith("data.")})
        return
    stays = ("loss.", "seed", "device")
    form.fill({key: value for key, value in _values(spec).items() if not key.startswith(stays)})
    named = next(preset for preset, other in presets().items() if other is spec)
    form.fill({"preset": named})


def _where(info: data.Description, root: str | None) -> None:
    """Whether the files of a data set are there, and where."""
    try:
        found = data.available(info.name, (root or "").strip() or None)
    except (DataError, OSError, ValueError) as error:
        st.error(str(error))
        return
    if found is None:
        st.warning("Its files were not found.", icon=":material/folder_off:")
    else:
        st.caption(":material/folder: Found:")
        st.code(str(found), language=None, wrap_lines=True)
