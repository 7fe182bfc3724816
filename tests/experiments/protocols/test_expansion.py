"""Expansion of protocols: numbers from the tables of the sources, deviations, and rejected input."""

import pytest
import torch

from dmlcore import losses, mining
from dmlcore.data import DataError
from dmlcore.experiments import protocols
from dmlcore.experiments.protocols import ProtocolRequest
from dmlcore.experiments.protocols.expansion import PUBLISHED, deviations, images, specify
from dmlcore.experiments.protocols.spec import Protocol
from dmlcore.spec import RunSpec, SpecError, flat
from dmlcore.training import objective, optimisers
from tests.members import in_one_case


@pytest.fixture(autouse=True)
def _published_counts(monkeypatch):
    """Simulate a machine without the large data sets, so that no test depends on folders next to the repository."""
    monkeypatch.setattr("dmlcore.data.files.locate.find", lambda *_: None)


def specs(protocol, data="", loss="", *overrides, **more):
    return [
        entry.spec
        for entry in ProtocolRequest(protocol=protocol, data=data, loss=loss, overrides=overrides, **more).entries()
    ]


def has(spec, **wanted):
    values = flat(spec)
    return {k.replace("__", "."): values.get(k.replace("__", ".")) for k in wanted} == {
        k.replace("__", "."): v for k, v in wanted.items()
    }


@pytest.mark.parametrize(
    ("protocol", "data", "runs", "folds", "seeds"),
    [
        ("karaman-2021", "cub", 4, {1, 2, 3, 4}, {0}),
        ("karaman-2021-toy", "toy", 4, {1, 2, 3, 4}, {0}),
        ("psomas-2020", "cub", 1, {1}, {0}),
        ("psomas-2020-folds", "cub", 10, set(range(1, 11)), {0}),
        ("psomas-2020-fixed", "cub", 1, {1}, {0}),
        ("gurbuz-2022-fair", "cub", 12, {1, 2, 3, 4}, {0, 1, 2}),
        ("gurbuz-2022-fair-ccp", "cub", 4, {1, 2, 3, 4}, {0}),
        ("gurbuz-2022-conventional", "cub", 3, {1}, {0, 1, 2}),
        ("gurbuz-2022-ablation", "cub", 3, {1}, {0, 1, 2}),
        ("zabihzadeh-2021", "flowers", 1, {1}, {0}),
        ("can-2018", "sop", 1, {1}, {0}),
    ],
)
def test_folds_times_repeats(protocol, data, runs, folds, seeds):
    found = specs(protocol, data)
    assert len(found) == runs
    assert {spec.data.fold for spec in found} == folds
    assert {spec.seed for spec in found} == seeds
    assert {spec.protocol for spec in found} == {protocol}


@pytest.mark.parametrize(
    ("network", "data", "batch", "rate", "every", "factor", "frozen", "warm_up"),
    [  # Psomas 2020, Table 3 and Sec. 4.1; 5864, 8054 and 59551 training images
        ("resnet50", "cub", 100, 1e-4, 5, 0.1, True, 5),
        ("bn_inception", "cub", 180, 1e-4, 10, 0.1, True, 1),
        ("googlenet", "cub", 180, 1e-4, 10, 0.1, True, 1),
        ("resnet50", "cars", 100, 1e-4, 10, 0.1, True, 5),
        ("bn_inception", "cars", 180, 1e-4, 20, 0.1, True, 1),
        ("resnet50", "sop", 100, 6e-4, 10, 0.25, False, 5),
        ("googlenet", "sop", 180, 6e-4, 20, 0.25, False, 1),
    ],
)
def test_psomas_is_as_table_3(network, data, batch, rate, every, factor, frozen, warm_up):
    (spec,) = specs("psomas-2020", data, "", f"model.name={network}")
    epoch = PUBLISHED[data][0] // batch
    assert spec.batch.classes * spec.batch.samples == batch
    assert has(
        spec,
        optimiser__name="adamw",
        optimiser__learning_rate=rate,
        optimiser__weight_decay=1e-4,
        optimiser__clip_value=10,
        schedule__decay="step",
        schedule__decay_every=every * epoch,
        schedule__decay_factor=factor,
        schedule__steps=100 * epoch,
        schedule__validate_every=epoch,
        schedule__warm_up=warm_up * epoch,
        schedule__monitor="recall_at_1",
        schedule__monitor_part="test",
        model__freeze_batch_norm=frozen,
        pooling__name="gap_gmp",
    )
    assert protocols.deviations(spec, PUBLISHED[data][0]) == []


def test_folds_of_psomas_train_on_nine_tenths():
    found = specs("psomas-2020-folds", "cub", "multi_similarity")
    assert all(has(s, data__fold_order="random", data__fold_seed=0, batch__sampler="balanced") for s in found)
    assert {s.schedule.steps for s in found} == {100 * ((5864 - 586) // 180)}
    assert {s.schedule.monitor_part for s in found} == {"validation"}


@pytest.mark.parametrize(
    ("data", "loss", "parameters"),
    [  # Gurbuz 2022: losses-and-settings table of the chapter on pooling
        ("cub", "C1", {"m_neg": 0.5, "m_pos": 1e-5, "distance": "cosine", "divisor": "anchors"}),
        ("CUB", "C2", {"m_pos": 0.0, "m_neg": 0.3841}),
        ("Cars196", "C2", {"m_pos": 0.2652, "m_neg": 0.5409}),
        ("In-shop", "contrastive", {"m_pos": 0.2858, "m_neg": 0.5130}),
        ("SOP", "c2", {"m_pos": 0.2858, "m_neg": 0.5130}),
        ("cub", "triplet", {"m": 0.0961, "distance": "euclidean"}),
        ("cars", "triplet", {"m": 0.1190}),
        ("inshop", "triplet", {"m": 0.0451}),
        ("sop", "triplet", {"m": 0.0451}),
        ("cub", "MS", {"alpha": 2.0, "beta": 40.0, "m": 0.5}),
        ("cars", "MS", {"alpha": 14.35, "beta": 75.83, "m": 0.66}),
        ("inshop", "multi_similarity", {"alpha": 8.49, "beta": 57.38, "m": 0.41}),
        ("sop", "MS", {"alpha": 2.0, "beta": 40.0, "m": 0.5}),
        ("sop", "proxy_anchor", {"delta": 0.1, "alpha": 32.0}),
        ("cub", "proxy_nca", {"temperature": 0.11}),
        ("cub", "soft_triple", {"centres": 10.0, "la": 20.0, "gamma": 0.1, "tau": 0.2, "delta": 0.01}),
        ("cars", "soft_triple", {"centres": 10.0, "la": 17.69, "gamma": 19.18, "tau": 0.0669, "delta": 0.3588}),
        ("inshop", "soft_triple", {"centres": 4.0, "la": 20.0, "gamma": 0.1, "tau": 0.2, "delta": 0.01}),
        ("sop", "soft_triple", {"centres": 4.0, "la": 100.0, "gamma": 47.9, "tau": 0.2, "delta": 0.3145}),
    ],
)
def test_losses_of_gurbuz(data, loss, parameters):
    spec = specs("gurbuz-2022-fair", data, loss)[0]
    assert {k: spec.loss.parameters[k] for k in parameters} == parameters
    large = spec.data.name in ("sop", "inshop")
    proxies = loss in ("proxy_anchor", "proxy_nca", "soft_triple")
    slow = (spec.data.name, loss) == ("sop", "proxy_anchor")
    assert (spec.schedule.validate_every, spec.schedule.patience) == ((1000, 10) if large else (100, 15))
    assert (spec.batch.classes, spec.batch.samples) == ((32, 1) if proxies else (8, 4))
    assert spec.optimiser.learning_rate == (5e-6 if slow else 1e-5)
    assert spec.loss.learning_rate == ((5e-4 if slow else 1e-3) if proxies else None)
    kept = PUBLISHED[spec.data.name][0] * 3 // 4
    assert abs(spec.schedule.warm_up - (kept / 32 if proxies else 0)) <= 1
    assert (spec.optimiser.weight_decay, spec.optimiser.decay_batch_norm) == (1e-4, False)
    assert (spec.model.embedding_dim, spec.data.image_size, spec.data.folds) == (128, 227, 4)
    assert protocols.deviations(spec, PUBLISHED[spec.data.name][0]) == []


@pytest.mark.parametrize(
    ("data", "network", "batch", "rate", "decay", "every", "patience"),
    [
        ("cub", "bn_inception", (32, 4), 1e-5, 1e-4, 25, 15),
        ("cars", "resnet50", (28, 4), 1e-4, 4e-4, 25, 15),
        ("sop", "bn_inception", (32, 4), 1e-4, 1e-4, 250, 10),
    ],
)
def test_gurbuz_conventional_is_selected_on_the_test_split(data, network, batch, rate, decay, every, patience):
    spec = specs("gurbuz-2022-conventional", data, "C1", f"model.name={network}")[0]
    assert (spec.batch.classes, spec.batch.samples) == batch
    assert has(
        spec,
        optimiser__learning_rate=rate,
        optimiser__weight_decay=decay,
        schedule__validate_every=every,
        schedule__patience=patience,
        schedule__plateau=4,
        schedule__plateau_factor=0.5,
        schedule__monitor="recall_at_1",
        schedule__monitor_part="test",
        data__validation="none",
        data__folds=0,
        model__embedding_dim=512,
        pooling__name="gap_gmp",
    )
    assert "TEST" in protocols.read("gurbuz-2022-conventional").selection


def test_batch_sizes_of_gurbuz_are_varied_under_the_fair_set_up():
    """Gürbüz 2022, Fig. 3.8: four samples per class; folds, patience and schedule of the fair evaluation."""
    found = specs("gurbuz-2022-batch-ccp", "cub", "C2-CCP", "batch.classes=16")
    assert [(s.data.folds, s.data.fold, s.seed) for s in found] == [(4, fold, 0) for fold in (1, 2, 3, 4)]
    assert (found[0].batch.samples, found[0].schedule.patience, found[0].schedule.validate_every) == (4, 60, 25)
    assert deviations(found[0], 5864) == []


def test_can_trains_both_stages_in_one_run():
    (spec,) = specs("can-2018", "cub")
    assert has(spec, batch__sampler="neighbourhood", batch__classes=64, batch__samples=2, batch__neighbours=16)
    assert has(spec, batch__balanced_steps=10_000, batch__refresh=0, schedule__steps=20_000, model__dropout=0.2)
    assert has(spec, optimiser__learning_rate=1e-5, optimiser__head_factor=10, optimiser__weight_decay=0.01)
    assert has(spec, loss__start_weight=0.3)
    assert spec.loss.parameters == {"form": "cross_entropy", "norm_weight": 0.02}
    free, alone, pairs = (specs("can-2018", "sop", word)[0] for word in ("tuplet_free", "tuplet_n_pair", "n_pair"))
    assert has(free, loss__start_weight=0, batch__balanced_steps=10_000, loss__name="tuplet")
    assert free.loss.parameters["norm_weight"] == 0
    assert has(alone, batch__sampler="balanced", loss__start_weight=0.3, schedule__steps=20_000)
    assert has(pairs, batch__sampler="balanced", loss__start_weight=0, model__dropout=0)
    assert pairs.loss.parameters == {"form": "one", "norms": "mean"}
    assert has(specs("can-2018", "sop", "tuplet_p4")[0], batch__classes=32, batch__samples=4)


def test_a_protocol_may_pretrain_in_a_run_of_its_own(tmp_path):
    path = tmp_path / "two-runs.toml"
    path.write_text('extends = "can-2018"\n[pretraining]\noverrides = ["batch.sampler=balanced", "schedule.steps=7"]\n')
    first, second = ProtocolRequest(protocol=str(path), data="cub").entries()
    assert first.spec == second.starts
    assert has(first.spec, batch__sampler="balanced", schedule__steps=7)
    assert second.after("a-run").model.start == "a-run"


@pytest.mark.parametrize(
    ("word", "wide", "deep", "fixed", "gather"),
    [
        ("wel", 64, 64, False, "attention"),
        ("wedl", 256, 256, False, "attention"),
        ("wedl_c", 256, 64, False, "attention"),
        ("wedl_fixed", 256, 256, True, "attention"),
        ("wedl_c_fixed", 256, 64, True, "attention"),
        ("wedl_without_gdfl", 256, 256, False, "none"),
        ("wedl_c_without_gdfl", 256, 64, False, "none"),
    ],
)
def test_ensembles_of_zabihzadeh_have_64_dimensions_a_learner_and_the_rates_of_the_paper(
    word, wide, deep, fixed, gather
):
    (spec,) = specs("zabihzadeh-2021", "flowers", word)
    assert (spec.model.embedding_dim, spec.model.gather) == (wide, gather)
    loss = objective.metric_loss(spec, classes=51, pooled_dim=3712)
    assert loss.members[0].proxies.shape == (51, 3712 if word == "wel" else 64)
    embedded = loss.embed(torch.randn(2, wide)) if hasattr(loss, "embed") else torch.randn(2, wide)
    assert embedded.shape == (2, deep)
    assert loss.members[3].proxies.shape == (51, 64)
    model = torch.nn.Module()
    model.conditioning = None
    model.new, model.old = torch.nn.Linear(2, 2), torch.nn.Linear(2, 2)
    model.head_parameters = lambda: list(model.new.parameters())
    rates = {id(p): g["lr"] for g in optimisers.create(spec, model, loss).param_groups for p in g["params"]}
    assert rates[id(model.old.weight)] == 1e-4
    assert rates[id(model.new.weight)] == pytest.approx(1e-3)
    assert rates[id(loss.members[3].proxies)] == 0.015
    assert isinstance(loss.coefficients.roots, torch.nn.Parameter) != fixed
    if fixed:
        assert loss.coefficients.weights.tolist() == pytest.approx([0.25] * 4)
    else:
        assert rates[id(loss.coefficients.roots)] == 1e-4
        assert loss.coefficients.weights.tolist() == pytest.approx([0.25, 0.125, 0.25, 0.375])
    assert deviations(spec, 3493) == []


@in_one_case(name=protocols.names())
def test_every_loss_and_miner_of_a_protocol_exists_and_takes_its_parameters(name):
    protocol = protocols.read(name)
    for loss in {*protocol.losses, protocol.base.loss.name}:
        spec = specify(protocol, name, protocol.data, loss, [], training=0)
        losses.for_training(spec.loss.name, classes=3, embedding_dim=4, pooled_dim=4, **spec.loss.parameters)
        assert spec.miner.name in mining.names()
    assert protocol.open
    assert protocol.decided


def test_small_data_are_allowed_and_the_deviation_is_told():
    found = specs("gurbuz-2022-fair", "digits", "ms", "schedule.steps=30", "data.folds=2", "batch.samples=2")
    assert len(found) == 6
    spec = found[0]
    assert (spec.model.name, spec.model.start, spec.data.image_size) == ("mlp", None, None)
    told = dict(line.split(": ", 1) for line in protocols.deviations(spec))
    assert told["schedule.steps"] == "30 instead of 200000"
    assert told["data.folds"] == "2 instead of 4"
    assert told["model.name"] == "mlp instead of bn_inception"
    assert told["batch.samples"] == "2 instead of 4"
    assert "seed" not in told
    assert "data.fold" not in told


def test_what_the_protocol_leaves_free_is_no_deviation():
    spec = specs("gurbuz-2022-fair", "cub", "C1", "pooling.name=gsp", "loss.memory=25", "device=cpu")[0]
    assert protocols.deviations(spec) == []
    assert protocols.deviations(spec.with_overrides(["loss.m_neg=0.4"])) == [
        "loss.parameters.m_neg: 0.4 instead of 0.5"
    ]
    assert protocols.deviations(RunSpec()) == []
    assert protocols.deviations(RunSpec(protocol="of another release")) == []


def test_a_key_without_value_takes_it_back_to_its_default():
    spec = specs("gurbuz-2022-fair", "cub", "C1", "model.start=", "data.image_size=64")[0]
    assert (spec.model.start, spec.data.image_size) == (None, 64)
    with pytest.raises(SpecError, match=r"model\.strat=: a value is missing"):
        specs("gurbuz-2022-fair", "cub", "C1", "model.strat=")


def test_chosen_folds_and_seeds():
    found = specs("gurbuz-2022-fair", "cub", "C1", folds=(2, 4), seeds=(7,))
    assert [(s.data.fold, s.seed) for s in found] == [(2, 7), (4, 7)]
    with pytest.raises(SpecError, match="no fold 5; gurbuz-2022-fair has 4"):
        specs("gurbuz-2022-fair", "cub", "C1", folds=(5,))
    with pytest.raises(SpecError, match="no fold 1; psomas-2020 has none"):
        specs("psomas-2020", "cub", folds=(1,))


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"protocol": "gurbuz-2022-fiar"}, "did you mean gurbuz-2022-fair"),
        ({"protocol": "karaman-2021", "data": "CUBE"}, "unknown data set 'CUBE'"),
        ({"protocol": "karaman-2021", "overrides": ("schedule.step=3",)}, "did you mean steps"),
        ({"protocol": "karaman-2021", "overrides": ("data.name=toy",)}, "name the data set with --data"),
    ],
)
def test_bad_requests_name_the_remedy(request_, message):
    with pytest.raises(SpecError, match=message):
        ProtocolRequest(**request_).entries()


def test_data_that_nobody_has_counted():
    with pytest.raises(DataError):
        images(RunSpec().with_overrides(["data.name=cub", "data.root=/nowhere"]))


def test_bad_protocols_are_refused_by_name():
    good = {"title": "t", "sentence": "s", "source": "s", "data": "digits", "report": ["mean"], "base": {}}
    assert Protocol.parse(good).repeats == 1
    for change, message in (
        ({"repeat": 3}, "repeat: unknown key; did you mean repeats"),
        ({"base": {"schedule": {"step": 1}}}, "base.schedule.step: unknown key"),
        ({"report": ["collections"]}, "needs folds"),
        ({"folds": [2]}, "there is no fold 2"),
        ({"settings": [{"overrides": ["schedule.step=1"]}]}, "settings.1: schedule.step"),
        ({"settings": [{"lost": ["a"]}]}, "did you mean loss"),
    ):
        with pytest.raises(SpecError, match=message):
            Protocol.parse(good | change)
