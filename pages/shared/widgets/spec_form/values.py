"""Conversion between form values and specs; the spec omits settings that do not apply."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dmlcore import data, losses, mining, pooling
from dmlcore.data import DataError
from dmlcore.models import backbones, pretrained
from dmlcore.models.pretrained import PublicWeights
from dmlcore.spec import RunSpec, SpecError, keys
from dmlcore.storage.runs import RUN_ID
from dmlcore.training.objective import CATALOGUES, has_proxies_among_samples, joins_learners
from pages.shared.widgets.forms import Form

WITH_SHARES = [
    name for name in pooling.names() if issubclass(pooling.describe(name).layer, pooling.GeneralizedSumPooling)
]
TIMM = "timm:"
# values of the form key "model.start": source of the backbone's initial weights
AT_RANDOM, IMAGENET, A_RUN, A_FILE = "random", "imagenet", "run", "file"


def fill(form: Form, spec: RunSpec) -> None:
    """Replace all form values with those of a spec, and store the spec as the base from which `spec_of` starts."""
    form.fill(values_of(spec) | {"base": spec})


def values_of(spec: RunSpec) -> dict[str, Any]:
    """Return the form values that represent a spec."""
    plain: dict[str, Any] = spec.model_dump()
    values: dict[str, Any] = {}
    for key in keys():
        section, _, name = key.rpartition(".")
        values[key] = plain[section][name] if section else plain[name]
    values["ks"] = ", ".join(map(str, spec.ks))
    values["model.hidden"] = ", ".join(map(str, spec.model.hidden))
    values["data.root"] = spec.data.root or ""
    if spec.data.name in data.names():
        info = data.describe(spec.data.name)
        values |= {"data.split": spec.data.split or info.split}
        values |= {"data.validation": spec.data.validation or info.validation}
    values |= _network_values(spec)
    del values["method.name"], values["method.parameters"]  # not part of the form: `spec_of` keeps those of the base
    for section in CATALOGUES:
        del values[f"{section}.parameters"]
        formula = _formula(section, plain[section]["name"])
        if formula is not None:
            given = {**formula.defaults, **plain[section]["parameters"]}
            for key, parameter in formula.parameters.items():
                own = parameter_key(section, formula.name, key)
                values |= {own: given[key], f"{own}-open": given[key] == math.inf}
                values |= {f"{own}-{word}": given[key] == word for word in getattr(parameter, "words", ())}
    return values


def _network_values(spec: RunSpec) -> dict[str, Any]:
    """Return the form values for the network and the initial weights in a spec.

    A timm network and the initial weights of a backbone each use two form values: the kind, and the name or file.
    """
    name, start = spec.model.name, spec.model.start or ""
    timm = {"model.name": "timm", "model.timm": name.removeprefix(TIMM)} if name.startswith(TIMM) else {}
    if not start:
        begin = AT_RANDOM
    elif start == IMAGENET or start in [checkpoint.file for checkpoint in pretrained.published(name)]:
        begin = IMAGENET
    else:
        begin = A_RUN if RUN_ID.fullmatch(start) else A_FILE
    return timm | {
        "model.start": begin,
        "model.weights": start if begin == IMAGENET else None,
        "model.run": start if begin == A_RUN else None,
        "model.file": start if begin == A_FILE else "",
    }


def spec_of(form: Form) -> RunSpec:
    """Return the spec that the form represents. Raises SpecError that lists invalid values."""
    values = form.values
    nested: dict[str, Any] = {}
    for key in keys():
        section, _, name = key.rpartition(".")
        if name != "parameters":
            (nested.setdefault(section, {}) if section else nested)[name] = values.get(key)
    info = data.describe(values["data.name"])
    nested["ks"] = _numbers(values["ks"])
    nested["method"] = values["base"].method.model_dump()
    _data_of(nested, values, info)
    _model_of(nested, values, info)
    loss = losses.describe(values["loss.name"])
    nested["loss"]["parameters"] = _given_parameters(form, "loss", loss)
    if values["loss.name"] not in losses.names():
        del nested["loss"]["reduction"]
    if not takes_memory(loss):
        nested["loss"]["memory"] = 0
    if not nested["model"]["start"]:
        nested["loss"]["start_weight"] = 0.0
    if not has_proxies_among_samples(values["loss.name"]):
        nested["loss"]["batch_pairs"] = 0.0
    if not getattr(losses.describe(values["loss.name"]), "proxies", False):
        nested["loss"]["proxy_start"] = "random"
    if joins_learners(values["loss.name"]) or not values["loss.tcm"]:
        for key in ("tcm", "tcm_m_pos", "tcm_m_neg"):
            del nested["loss"][key]
    if not projects(values):
        del nested["projection"]
    if not conditions(values):
        del nested["conditioning"]
    elif values["conditioning.by"] == "mean" and not values["conditioning.continued"]:
        nested["conditioning"]["after"] = values["schedule.steps"]
    if not mining.fits(values["miner.name"], loss):
        nested["miner"]["name"] = mining.ALL
    miner = mining.describe(nested["miner"]["name"])
    nested["miner"]["parameters"] = _given_parameters(form, "miner", miner)
    if info.kind == "vectors":
        del nested["pooling"]
    else:
        nested["pooling"]["parameters"] = _given_parameters(form, "pooling", pooling.describe(values["pooling.name"]))
        if values["pooling.name"] not in WITH_SHARES:
            del nested["pooling"]["zero_shot"]
    if not chooses(values):
        nested["schedule"] |= {"patience": 0, "plateau": 0}
    return RunSpec.parse(nested)


def _data_of(nested: dict[str, Any], values: Mapping[str, Any], info: data.Description) -> None:
    section = nested["data"]
    section["root"] = (values["data.root"] or "").strip() or None if info.needs_files else None
    if info.split == "own":
        # not None, which no link can put in place of a preset's value
        section |= {"split": "own", "validation": "own"}
    if not folds_apply(values, info):
        section |= {"folds": 0, "fold": 1}
    section["image_size"] = values["data.image_size"] if info.resizes else None
    section["fresh"] = bool(values["data.fresh"]) if info.grid else False


def _model_of(nested: dict[str, Any], values: Mapping[str, Any], info: data.Description) -> None:
    section = nested["model"]
    section["hidden"] = _numbers(values["model.hidden"])
    section["lipschitz"] = bool(values["model.lipschitz"]) and not values["model.normalize"]
    if values["model.name"] == "timm":
        section["name"] = f"{TIMM}{(values.get('model.timm') or '').strip()}"
        if section["name"] == TIMM:
            raise SpecError("model.name: enter the name of a timm network, for example resnet26")
    section["start"] = _start_of(values) if info.kind == "images" else None
    if info.kind != "images":
        section |= {"keep_classifier": False, "freeze_batch_norm": False, "freeze": "none"}
    if values["model.name"] == "tokens":
        section |= {"dropout": 0.0, "embedding_start": "random", "embedding_scale": 1.0}
    if info.kind != "images" or not gathers(values):
        section["gather"] = "none"
    if section["freeze"] != "none":
        nested["data"]["fresh"] = False
    if section["freeze"] == "none" or not values["data.augment"]:
        nested["data"]["views"] = 0


def _start_of(values: Mapping[str, Any]) -> str | None:
    """Return the initial weights of the backbone as a spec writes them; None for random weights.

    Raises SpecError if a run or a file is required but not chosen.
    """
    begin = values["model.start"]
    if begin == IMAGENET:
        return values.get("model.weights") or IMAGENET
    chosen = {A_RUN: values.get("model.run"), A_FILE: (values.get("model.file") or "").strip()}
    if begin in chosen and not chosen[begin]:
        raise SpecError(f"model.start: choose {'a run' if begin == A_RUN else 'a file of weights'}, or other weights")
    return chosen.get(begin)


def weights_files(network: str) -> dict[str, PublicWeights]:
    """Return the published weights of a network by their names in a spec; already downloaded ones come first."""
    default = pretrained.pinned(network)
    named = {IMAGENET if each == default else each.file: each for each in pretrained.published(network)}
    return dict(sorted(named.items(), key=lambda item: pretrained.find(item[1]) is None))


def is_pretrained(network: str) -> bool:
    """Return True if ImageNet weights are published for a network."""
    return pretrained.pinned(network) is not None


def image_size_of(network: str) -> int | None:
    """Return the side in pixels of the images with which a network was published; None without ImageNet weights."""
    weights = pretrained.pinned(network)
    return weights.image_size if weights else None


def takes_memory(loss: Any) -> bool:
    """Return True if the loss supports a cross-batch memory."""
    return bool(getattr(loss, "pairs", False))


def gathers(values: Mapping[str, Any]) -> bool:
    """Return True if the model can add features of earlier layers to those of the backbone's last layer.

    This requires a backbone that provides these features and is trained or frozen as a whole, and a pooling that does
    not project features before pooling.
    """
    kept = values["model.keep_classifier"] or values["model.freeze"] == "early"
    first = pooling.describe(values["pooling.name"]).layer.projects_first
    return backbones.gives_depths(values["model.name"]) and not kept and not first


def conditions(values: Mapping[str, Any]) -> bool:
    """Return True if embeddings can be conditioned on neighbours.

    This cannot be combined with a cross-batch memory, the projection of proxies onto samples, or ensembles.
    """
    remembers = takes_memory(losses.describe(values["loss.name"])) and values["loss.memory"]
    placed = projects(values) and values["projection.pool"]
    return not (remembers or placed or joins_learners(values["loss.name"]))


def projects(values: Mapping[str, Any]) -> bool:
    """Return True if the loss's proxies can be projected onto samples.

    This requires a loss with proxies in the embedding space, and scores during training.
    """
    return has_proxies_among_samples(values["loss.name"]) and chooses(values)


def folds_apply(values: Mapping[str, Any], info: data.Description) -> bool:
    """Return True if class folds are possible, that is, if the validation split consists of held-out classes."""
    return info.split != "own" and values.get("data.validation") == "classes"


def chooses(values: Mapping[str, Any]) -> bool:
    """Return True if the model is scored during training, so that the best weights can be selected."""
    return bool(values.get("schedule.monitor_part") == "test" or values.get("data.validation") != "none")


def networks(kind: str) -> list[str]:
    """Return the names of the networks for a kind of input ("vectors", "images" or "tokens"), excluding timm models.

    Among the networks for which ImageNet weights are published, those whose weights are on this machine come first.
    """
    return {"vectors": ["mlp"], "tokens": ["tokens"]}.get(kind) or sorted(backbones.names(), key=_lacks_weights)


def _lacks_weights(network: str) -> int:
    """Return 0 for a network without ImageNet weights, 1 if its weights are on this machine, else 2."""
    if not is_pretrained(network):
        return 0
    return 1 if any(map(pretrained.find, pretrained.published(network))) else 2


def parameter_key(section: str, name: str, key: str) -> str:
    """Return the form key of a parameter of a loss, pooling or miner.

    The key contains `name` (e.g. of the loss), so that the values of one loss are kept while another is chosen.
    """
    return f"{section}.{name}.{key}"


def shown_parameters(form: Form, section: str, formula: Any) -> list[str]:
    """Return the names of the parameters to show: those with sliders, and those set in the spec that filled the form.

    `formula` is the catalogue entry of a loss, pooling or miner.
    """
    base = getattr(form.values["base"], section)
    given: Mapping[str, Any] = base.parameters if base.name == formula.name else {}
    panel = getattr(formula, "sliders", formula.parameters)
    return [key for key in formula.parameters if key in panel or key in given]


def _formula(section: str, name: str) -> Any:
    """Return the catalogue entry of a loss, a pooling or a miner; None if this release does not know the name."""
    try:
        return CATALOGUES[section][name]
    except (KeyError, DataError):
        return None


def _given_parameters(form: Form, section: str, formula: Any) -> dict[str, float | str]:
    """Return the shown parameters with their values, so that the spec does not depend on future defaults.

    A parameter is omitted if it has its default value and the spec that filled the form omits it, too; an unchanged
    form thus returns the same spec.
    """
    base = getattr(form.values["base"], section)
    values: dict[str, float | str] = {}
    for key in shown_parameters(form, section, formula):
        name = parameter_key(section, formula.name, key)
        opened = form.values.get(f"{name}-open", False)
        words = (w for w in getattr(formula.parameters[key], "words", ()) if form.values.get(f"{name}-{w}"))
        value = math.inf if opened else next(words, form.values.get(name, formula.defaults[key]))
        if base.name != formula.name or key in base.parameters or value != formula.defaults[key]:
            values[key] = value
    return values


def _numbers(text: str) -> list[Any]:
    """Return the integers in a text; words that are not integers stay strings, which spec validation then reports."""
    parts = (text or "").replace(",", " ").split()
    return [int(part) if part.isdecimal() else part for part in parts]
