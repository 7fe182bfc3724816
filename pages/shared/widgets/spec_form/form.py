"""Sidebar form for a RunSpec: common settings are visible, others are in expanders, inapplicable ones are left out."""

from __future__ import annotations

import importlib.util
from functools import cache

import streamlit as st

from dmlcore import data, losses, mining, pooling
from dmlcore.data import DataError
from dmlcore.models import pretrained
from dmlcore.models.pretrained import PublicWeights
from dmlcore.spec import DataSpec, RunSpec, keys
from dmlcore.storage.runs import RunStore
from dmlcore.training.objective import CATALOGUES, has_proxies_among_samples, joins_learners
from pages.shared.state.spec_link import BASES, presets
from pages.shared.widgets import run_picker
from pages.shared.widgets.forms import Form
from pages.shared.widgets.spec_form import protocol as protocol_form
from pages.shared.widgets.spec_form import training_section
from pages.shared.widgets.spec_form.fields import choice, field, row, slider
from pages.shared.widgets.spec_form.values import (
    A_FILE,
    A_RUN,
    AT_RANDOM,
    IMAGENET,
    WITH_SHARES,
    chooses,
    conditions,
    fill,
    folds_apply,
    gathers,
    image_size_of,
    is_pretrained,
    networks,
    parameter_key,
    shown_parameters,
    takes_memory,
    values_of,
    weights_files,
)
from pages.shared.words import sentences as words
from pages.shared.words.labels import LABELS, WORDS
from pages.shared.words.titles import data_choice, data_choices, label, loss_title

QUICK, PUBLISHED = "Example", protocol_form.PUBLISHED
TCM = "threshold_consistent_margin"  # loss that `loss.tcm` adds to another one
STARTS = {AT_RANDOM: "random initialisation", IMAGENET: "ImageNet weights", A_RUN: "one of your runs", A_FILE: "a file"}


def sidebar(form: Form) -> None:
    """Show the widgets of the whole form in the current container."""
    form.values.setdefault("begin", QUICK)
    if form.switch("begin", "Start from", [QUICK, PUBLISHED]) == PUBLISHED:
        protocol_form.sidebar(form)
    else:
        form.choice(
            "preset",
            "Example",
            list(presets()),
            words=lambda name: presets()[name].name or name,
            help="Fills the whole form with one of the examples of DML Lab.",
            on_change=_use_preset,
            args=(form,),
        )
    info = _data(form)
    loss_fields(form)
    _network(form, info.kind)
    training_section.training(form)


def _data(form: Form) -> data.Description:
    st.subheader("Data", anchor=False)
    name = choice(
        form,
        "data.name",
        data_choices(),
        data_choice,
        help="A data set also sets its usual splits, and network, batch and steps if there is an example for it.",
        on_change=_use_data,
        args=(form,),
    )
    info = data.describe(name)
    if info.needs_files:
        field(form, "data.root")
        _where(info, form.values["data.root"])
    if info.split == "own":
        st.caption("This data set has its own training, validation and test splits.")
    else:
        field(form, "data.split", without=("own", "none"))
        field(form, "data.validation", without=("own",))
    if info.resizes:
        field(form, "data.image_size")
    if info.needs_files and info.kind == "images":
        field(form, "data.damaged")
    if info.grid:
        field(form, "data.fresh")
    if info.kind == "vectors":
        field(form, "data.standardize")
    if folds_apply(form.values, info):
        with st.expander("Folds"):
            _folds(form)
    if info.kind == "images":
        with st.expander("Crops"):
            _crops(form)
    return info


def _folds(form: Form) -> None:
    if not field(form, "data.folds"):
        return
    left, right = st.columns(2)
    with left:
        field(form, "data.fold")
    order = field(form, "data.fold_order")
    if order == "random":
        with right:
            field(form, "data.fold_seed")


def _crops(form: Form) -> None:
    if not field(form, "data.augment"):
        return
    if field(form, "data.crop") == "resized":
        form.range("data.crop_area", LABELS["data.crop_area"], keys()["data.crop_area"], 0.01, 1.0)
        form.range("data.crop_ratio", LABELS["data.crop_ratio"], keys()["data.crop_ratio"], 0.25, 4.0)


def loss_fields(form: Form) -> None:
    """Show the settings of the loss, the miner and the cross-batch memory."""
    st.subheader("Loss", anchor=False)
    sentence = "Triplet losses, then losses of pairs, proxies and classes."
    loss = choice(form, "loss.name", list(losses.LOSSES), loss_title, help=sentence)
    _parameters(form, "loss", loss)
    if loss in losses.names():
        field(form, "loss.reduction")
    info = losses.describe(loss)
    learns = bool(getattr(info, "proxies", False))
    fitting = [name for name in mining.names() if mining.fits(name, info)]
    if learns or len(fitting) > 1 or takes_memory(info):
        with st.expander("Miner and memory" if len(fitting) > 1 else "Loss parameters"):
            _miner(form, fitting, memory=takes_memory(info), learns=learns)
    if has_proxies_among_samples(loss):
        with st.expander("Projections: proxies on samples"):
            _projections(form)
    if not joins_learners(loss):
        with st.expander(f"{losses.describe(TCM).title}: one threshold for all classes"):
            _threshold_consistency(form)


def _threshold_consistency(form: Form) -> None:
    """Show the settings of the threshold-consistent margin as a term that is added to the loss."""
    if not slider(form, "loss.tcm", r"\lambda", 0, 2, step=0.05):
        st.caption(f"{losses.describe(TCM).sentence} Published setting: 1.")
        return
    slider(form, "loss.tcm_m_pos", "m_+", -1, 1)
    slider(form, "loss.tcm_m_neg", "m_-", -1, 1)


def _projections(form: Form) -> None:
    """Show the settings of chance-constrained programming; it applies to losses with proxies in the embedding space."""
    field(form, "loss.batch_pairs", step=0.1)
    if not chooses(form.values):
        st.caption("Projections need a validation score: choose a validation split.")
        return
    if not field(form, "projection.pool"):
        st.caption(
            "Chance-constrained programming: whenever the validation score stops improving, each class gets new "
            "proxies (the samples farthest from the old ones), and the network is kept close to its best weights. "
            "Published setting: 12 candidates for 8 proxies."
        )
        return
    st.caption(
        "With as many candidates as proxies, new proxies are random; with more, the farthest samples come first."
    )
    field(form, "projection.weight")
    field(form, "projection.patience")
    field(form, "projection.first")


def _miner(form: Form, fitting: list[str], *, memory: bool, learns: bool) -> None:
    if len(fitting) > 1:
        miner = choice(form, "miner.name", fitting, lambda name: mining.describe(name).title)
        st.caption(mining.describe(miner).sentence)
        _parameters(form, "miner", miner)
    if memory and field(form, "loss.memory"):
        field(form, "loss.memory_start", step=100)
    if learns:
        field(form, "loss.learning_rate")
        field(form, "loss.proxy_start")


def _network(form: Form, kind: str) -> None:
    st.subheader("Network", anchor=False)
    known = networks(kind)
    if kind == "images" and (_has_timm() or form.values.get("model.name") == "timm"):
        known = [*known, "timm"]
    network = choice(form, "model.name", known, WORDS.__getitem__, on_change=_use_network, args=(form,))
    if network == "timm":
        form.text("model.timm", "Name in timm", placeholder="resnet26")
    if kind == "vectors":
        field(form, "model.hidden", placeholder="none (linear map)")
    if kind == "images":
        _start(form, network)
        size = image_size_of(network)
        if form.values["model.start"] == IMAGENET and size and form.values.get("data.image_size") == size:
            st.caption(f"Image size: {size} pixels, as for the pretrained weights. Smaller images train faster.")
    field(form, "model.embedding_dim")
    if not field(form, "model.normalize"):
        field(form, "model.lipschitz")
    if kind == "images":
        with st.expander("Frozen layers"):
            _frozen(form)
    if conditions(form.values):
        with st.expander("Neighbours: conditioned embedding"):
            _conditioning(form)
    if kind != "vectors":
        with st.expander(f"Pooling: {pooling.describe(form.values.get('pooling.name') or 'gap').title}"):
            _pooling(form)


def _conditioning(form: Form) -> None:
    """Show the settings for conditioning embeddings on neighbours."""
    if not field(form, "conditioning.neighbours"):
        st.caption(
            "Each embedding is computed from a sample and its nearest neighbours. Scores whose neighbours are test "
            "samples are marked as transductive and shown with the scores whose neighbours are training samples. "
            "Published setting: 16."
        )
        return
    read_by = field(form, "conditioning.by")
    if read_by in ("lstm", "concat"):
        field(form, "conditioning.order")
    if read_by == "lstm":
        row(form, "conditioning.layers", "conditioning.hidden")
        field(form, "conditioning.dropout", step=0.1)
    continued = field(form, "conditioning.continued")
    if read_by == "mean" and not continued:
        st.caption(
            "The mean has no parameters: all steps train the network, and its embeddings are averaged afterwards."
        )
    else:
        field(form, "conditioning.after", step=100)
    field(form, "conditioning.among")


def _start(form: Form, network: str) -> None:
    """Show the widget for choosing the initial weights of the backbone."""
    files = weights_files(network)
    offered = {**STARTS, IMAGENET: "CIFAR-10 weights"} if files and not is_pretrained(network) else dict(STARTS)
    if not files and form.values.get("model.start") != IMAGENET:
        del offered[IMAGENET]
    begin = choice(form, "model.start", list(offered), offered.__getitem__)
    if begin == IMAGENET and len(files) > 1:
        form.choice("model.weights", "Weights file", list(files), words=lambda name: _weights_words(files[name]))
    elif begin == IMAGENET:
        form.values["model.weights"] = next(iter(files), IMAGENET)
    if begin == A_RUN:
        known = run_picker.offered(
            RunStore(), lambda name, brief: brief.model == network, [form.values.get("model.run")]
        )
        runs = {name: run for name, run in known.items() if run.embeddings()}
        if not runs:
            st.caption("No finished run has this network.")
        else:
            form.choice("model.run", "Run", list(runs), words=lambda name: label(runs[name]))
    if begin == A_FILE:
        form.text("model.file", "Weights file", placeholder="/path/to/weights.pth or .safetensors")
    if begin != AT_RANDOM:
        field(form, "loss.start_weight", step=0.1)


def _weights_words(weights: PublicWeights) -> str:
    if pretrained.find(weights):
        return f"{weights.file} (on this machine)"
    if weights.package:
        return f"{weights.file} (in the package {weights.package})"
    size = f", {weights.size / 1e6:.0f} MB" if weights.size else ""
    return f"{weights.file} (to be downloaded{size})"


def _frozen(form: Form) -> None:
    """Show the settings for freezing layers of the backbone."""
    field(form, "model.keep_classifier")
    freeze = field(form, "model.freeze")
    if freeze != "backbone":
        field(form, "model.freeze_batch_norm")
    if freeze != "none" and form.values.get("data.augment"):
        field(form, "data.views")


def _pooling(form: Form) -> None:
    if gathers(form.values):
        field(form, "model.gather")
    pool = choice(form, "pooling.name", pooling.names(), lambda name: pooling.describe(name).title)
    _parameters(form, "pooling", pool)
    if pool in WITH_SHARES:
        share = field(form, "pooling.zero_shot", step=0.1)
        if share:
            field(form, "pooling.ridge", step=0.01)
            field(form, "pooling.logit_scale", step=0.5)


def _parameters(form: Form, section: str, name: str) -> None:
    """Show the widgets for the parameters of a loss, pooling or miner; `section` is "loss", "pooling" or "miner"."""
    formula = CATALOGUES[section][name]
    for key in shown_parameters(form, section, formula):
        own = parameter_key(section, name, key)
        form.parameter(own, key, formula.parameters[key], formula.defaults[key], words=True)


def _use_preset(form: Form) -> None:
    fill(form, presets()[st.session_state[form.widget_key("preset")]])


def _use_data(form: Form) -> None:
    """Fill the form with the preset of the chosen data set, but keep loss, miner, seed and device."""
    name = st.session_state[form.widget_key("data.name")]
    spec = next((spec for spec in presets().values() if spec.data.name == name), None)
    if spec is None:
        values = values_of(RunSpec(data=DataSpec(name=name), model=presets()[BASES[data.describe(name).kind]].model))
        form.fill({key: value for key, value in values.items() if key.startswith(("data.", "model.", "pooling."))})
        return
    stays = ("loss.", "miner.", "seed", "device")
    form.fill({key: value for key, value in values_of(spec).items() if not key.startswith(stays)})
    named = next(preset for preset, other in presets().items() if other is spec)
    form.fill({"preset": named})


def _use_network(form: Form) -> None:
    """Set initial weights and image size for the chosen network.

    The initial weights are ImageNet weights if they are published for the network, else random.
    """
    network = st.session_state[form.widget_key("model.name")]
    info = data.describe(form.values["data.name"])
    if is_pretrained(network):
        changes = {"model.start": IMAGENET, "model.weights": next(iter(weights_files(network)))}
        size = image_size_of(network)
    else:
        changes = {"model.start": AT_RANDOM}
        presets_of = (spec.data for spec in presets().values() if spec.data.name == info.name)
        size = next((spec.image_size for spec in presets_of), info.image_size)
    if info.resizes:
        form.fill({"data.image_size": size})
    form.fill(changes)


@cache
def _has_timm() -> bool:
    return importlib.util.find_spec("timm") is not None


def _where(info: data.Description, root: str | None) -> None:
    """Show the path of a data set's files, or a warning that they were not found."""
    try:
        places = data.available(info.name, (root or "").strip() or None)
    except (DataError, OSError, ValueError) as error:
        st.error(words.plain(error))
        return
    if places is None:
        st.warning("The files of this data set were not found.", icon=":material/folder_off:")
    else:
        st.caption(":material/folder: Found:")
        st.code(str(places), language=None, wrap_lines=True)
