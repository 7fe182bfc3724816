"""Results of protocols: 81 collections, concatenated embeddings, the best of folds, means; tables and files."""

import itertools
import statistics

import numpy as np
import pytest

from dmlcore import data
from dmlcore.data.identities import identities
from dmlcore.experiments import protocols
from dmlcore.experiments.protocols import Member, ProtocolRequest
from dmlcore.experiments.protocols.results import collections, summarise
from dmlcore.experiments.protocols.tables import as_text, printed_rows
from dmlcore.metrics import retrieval
from dmlcore.spec import SpecError
from dmlcore.storage.runs import RunStore
from dmlcore.training.loop import train
from tests.wording import says

LABELS = np.repeat(np.arange(6), 5)


def member(fold, seed, *, validation=None, value=0.5, **more):
    scores = {"map_at_r": value, "recall_at_1": value / 2}
    return Member(
        fold=fold, seed=seed, run=f"f{fold}s{seed}", digest="", weights="", validation=validation, scores=scores,
        steps=1, seconds=1.0, device="", **more,
    )  # fmt: skip


def file_of(found, labels=LABELS, **more):
    """Return embeddings of arbitrary length, a different set for each run."""
    random = np.random.default_rng([found.fold, found.seed])
    centres = random.normal(size=(6, 4))[labels]
    noisy = (centres + 1.5 * random.normal(size=(len(labels), 4))) * random.uniform(0.1, 9, (len(labels), 1))
    indices = np.arange(len(labels))
    content = np.repeat(indices[:, None], 8, axis=1)
    return {"embeddings": noisy.astype(np.float32), "labels": labels, "indices": indices, "content": content, **more}


def unit(rows):
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


def test_three_repeats_of_four_folds_are_81_collections_of_512_dimensions_side_by_side():
    members = [member(f, s, value=0.1 * f + 0.01 * s) for f, s in itertools.product((1, 2, 3, 4), (0, 1, 2))]
    found = collections(members, file_of, (1, 2))
    assert len(found) == len({c.runs for c in found}) == 81
    by_run = {m.run: m for m in members}
    for one in (found[0], found[40], found[80]):
        assert [by_run[run].fold for run in one.runs] == [1, 2, 3, 4]
        chosen = [by_run[run] for run in one.runs]
        assert one.separated["map_at_r"] == pytest.approx(statistics.fmean(m.scores["map_at_r"] for m in chosen))
        side_by_side = unit(np.hstack([unit(file_of(m)["embeddings"]) for m in chosen]))
        expected = retrieval(side_by_side.astype(np.float32), LABELS, ks=(1, 2))
        assert one.concatenated["map_at_r"] == pytest.approx(expected.map_at_r)
        assert one.concatenated["recall_at_1"] == pytest.approx(expected.recall_at[1])
    summary = summarise(protocols.read("gurbuz-2022-fair"), protocols.read("gurbuz-2022-fair").base, members, found)
    assert [(s.of, s.count) for s in summary] == [
        ("separated, 128-D, mean of 4 models", 81),
        ("concatenated, 512-D", 81),
        ("mean of 4 folds x 3 repeats", 12),
    ]
    assert summary[0].scores["map_at_r"][0] == pytest.approx(0.26)
    values = [c.concatenated["map_at_r"] for c in found]
    assert summary[1].scores["map_at_r"] == (pytest.approx(np.mean(values)), pytest.approx(np.std(values, ddof=1)))


def test_a_gallery_is_searched_by_its_queries_only():
    searched = np.arange(30) % 5 > 1
    members = [member(1, 0), member(2, 0)]
    (found,) = collections(members, lambda m: file_of(m, is_gallery=searched), (1,))
    both = np.hstack([unit(file_of(m)["embeddings"]) for m in members]).astype(np.float32)
    expected = retrieval(
        both[~searched], LABELS[~searched], gallery=both[searched], gallery_labels=LABELS[searched], ks=(1,)
    )
    assert found.concatenated["recall_at_1"] == pytest.approx(expected.recall_at[1])


def test_only_models_of_the_same_test_samples_are_put_together():
    members = [member(f, s) for f, s in itertools.product((1, 2), (0, 1))]
    drawn = collections(members, lambda m: file_of(m, indices=np.arange(30) + 100 * m.seed), (1,))
    assert [c.runs for c in drawn] == [("f1s0", "f2s0"), ("f1s1", "f2s1")]
    with pytest.raises(SpecError, match="not tested on the same samples"):
        collections(members, lambda m: file_of(m, np.roll(LABELS, m.fold)), (1,))


def test_drawn_data_of_another_seed_are_other_test_samples_though_numbers_and_labels_agree():
    members = [member(f, s) for f, s in itertools.product((1, 2), (0, 1))]
    drawn = {seed: data.load("toy", seed=seed) for seed in (0, 1)}
    test = drawn[0].splits["test"][:30]
    assert np.array_equal(test, drawn[1].splits["test"][:30])
    assert np.array_equal(drawn[0].labels[test], drawn[1].labels[test])
    found = collections(members, lambda m: file_of(m, content=identities(drawn[m.seed], test)), (1,))
    assert [c.runs for c in found] == [("f1s0", "f2s0"), ("f1s1", "f2s1")]
    assert found[0].tested_on != found[1].tested_on


def test_the_fold_that_validates_best_is_tested_not_the_one_that_tests_best():
    protocol = protocols.read("karaman-2021")
    members = [member(f, 0, validation=v, value=t) for f, v, t in ((1, 0.1, 0.9), (2, 0.4, 0.3), (3, 0.2, 0.8))]
    assert [s.of for s in summarise(protocol, protocol.base, members, [])] == ["mean of 3 folds"]  # one is missing
    members.append(member(4, 0, validation=0.3, value=0.7, train={"map_at_r": 0.6}))
    best, mean = summarise(protocol, protocol.base, members, [])
    assert best.of == "best of 4 folds by validation (fold 2)"
    assert best.scores["map_at_r"] == (0.3, None)
    assert mean.scores["map_at_r"] == (pytest.approx(0.675), pytest.approx(statistics.stdev([0.9, 0.3, 0.8, 0.7])))


def test_the_best_repeat_of_the_conventional_protocol_is_named_as_chosen_on_the_test_split():
    protocol = protocols.read("gurbuz-2022-conventional")
    best, mean = summarise(protocol, protocol.base, [member(0, s, value=v) for s, v in enumerate((0.4, 0.6, 0.5))], [])
    assert (best.of, best.scores["map_at_r"]) == ("best of 3 repeats by TEST R@1", (0.6, None))
    assert mean.of == "mean of 3 repeats"


PRINTED = [
    ("gurbuz-2022-fair", "cub", "C2", (), "Gürbüz 2022, Table 5.1, C2, 512D", "map_at_r", 0.2595, 0.0021),
    ("gurbuz-2022-fair-ccp", "cub", "MS", (), "Gürbüz 2022, Table 3.1, MS, 512D", "map_at_r", 0.2415, None),
    ("gurbuz-2022-fair-ccp", "sop", "C1_XBM", (), "Gürbüz 2022, Table 3.1, C1+XBM-L, 512D", "map_at_r", 0.5182, None),
    (
        "psomas-2020",
        "cub",
        "contrastive",
        ("model.embedding_dim=64",),
        "Psomas 2020, Table 6",
        "recall_at_8",
        0.8707,
        None,
    ),
    ("psomas-2020-folds", "cub", "proxy_anchor", (), "Psomas 2020, Table 12", "recall_at_1", 0.6632, 0.0044),
    ("karaman-2021", "cub", "ranking", ("loss.m=0.01",), "Karaman 2021, Table 4.", "recall_at_1", 0.5280, None),
    ("zabihzadeh-2021", "cub", "triplet", (), "Zabihzadeh 2021, Table 4, Triplet Loss", "nmi", 0.5817, None),
    ("zabihzadeh-2021", "flowers", "wedl", (), "Zabihzadeh 2021, Table 3, WEDL-DML", "recall_at_1", 0.9423, None),
    ("zabihzadeh-2021", "flowers", "wedl_without_gdfl", (), "Zabihzadeh 2021, Table 6", "recall_at_1", 0.9172, None),
    ("can-2018", "cub", "", (), "Can 2018, Table 3.4, Proposed Method", "recall_at_1", 0.554, None),
    ("can-2018", "sop", "n_pair", (), "Can 2018, Table 3.6, N-pair", "recall_at_1", 0.664, None),
    ("can-2018", "cub", "tuplet_rnn", (), "Can 2018, Table 4.3, Proposed Method + RNN", "nmi", 0.640, None),
    ("can-2018", "sop", "tuplet_rnn_unordered", (), "Can 2018, Table 4.2, Proposed", "recall_at_1", 0.702, None),
    ("can-2018", "sop", "tuplet_longer", (), "Can 2018, Table 4.1, 40000", "recall_at_1", 0.730, None),
    ("can-2018", "sop", "tuplet_p4", (), "Can 2018, Table 3.2", "recall_at_1", 0.634, None),
]


@pytest.mark.parametrize(("protocol", "data", "loss", "overrides", "of", "score", "mean", "deviation"), PRINTED)
def test_what_the_source_printed(protocol, data, loss, overrides, of, score, mean, deviation, monkeypatch):
    monkeypatch.setattr("dmlcore.data.files.locate.find", lambda *_: None)
    request = ProtocolRequest(protocol=protocol, data=data, loss=loss, overrides=overrides)
    rows, remark = printed_rows(request, request.entries())
    (row,) = [row for row in rows if row.of.startswith(of)]
    assert row.scores[score] == (pytest.approx(mean), deviation and pytest.approx(deviation))
    assert remark == ""


def test_part_of_a_data_set_is_not_compared_with_what_was_printed(monkeypatch):
    monkeypatch.setattr("dmlcore.experiments.protocols.tables.images", lambda _: 450)
    request = ProtocolRequest(protocol="gurbuz-2022-fair", data="cub", loss="C2")
    rows, remark = printed_rows(request, request.entries())
    assert rows == []
    assert says(remark, "5,864 training samples", "450", "not comparable")


def test_a_protocol_from_end_to_end_on_digits(tmp_path, monkeypatch):
    """Two folds of three steps each run in this process; the second pass reads what the first one wrote."""
    store = RunStore(tmp_path)

    class Here:
        def __init__(self, run, task):
            with run.lock():
                train(run)

        def poll(self):
            return 0

        wait = poll

    monkeypatch.setattr("dmlcore.jobs.launch.start_process", Here)
    request = ProtocolRequest(
        protocol="gurbuz-2022-fair",
        data="Digits",
        loss="triplet",
        overrides=(
            "schedule.steps=3", "schedule.validate_every=2", "data.folds=2", "data.split=classes", "batch.classes=2",
            "model.hidden=[8]", "model.embedding_dim=4", "optimiser.learning_rate=0.01",
        ),
        seeds=(0,),
    )  # fmt: skip
    said: list[str] = []
    assert protocols.conduct(request, store, report=said.append).state == "done", said
    entries = request.entries()
    results = protocols.collect(request, entries, store)
    assert [(m.fold, m.seed, m.steps) for m in results.runs] == [(1, 0, 3), (2, 0, 3)]
    rows = store.open(results.runs[0].run).metrics()[0]
    validated = [row["map_at_r"] for row in rows if row["kind"] == "validation"]
    assert results.runs[0].validation == max(validated)
    (one,) = results.collections
    files = [np.load(store.open(m.run).path / "embeddings" / f"{m.weights}.npz") for m in results.runs]
    both = np.hstack([unit(arrays["embeddings"]) for arrays in files]).astype(np.float32)
    assert one.concatenated["map_at_r"] == pytest.approx(retrieval(both, files[0]["labels"]).map_at_r, abs=1e-6)
    assert "data.folds: 2 instead of 4" in results.deviations

    place = protocols.place_of(request, store)
    protocols.write(results, place.path)
    before = protocols.load(place.path)
    assert before == results
    monkeypatch.setattr("dmlcore.experiments.protocols.results.collections", None)  # not scored again
    assert protocols.collect(request, entries, store, before=before) == results
    monkeypatch.undo()
    old = before.model_copy(update={"collections": (one.model_copy(update={"tested_on": "", "concatenated": {}}),)})
    assert protocols.collect(request, entries, store, before=old) == results, "scores of earlier releases may be wrong"
    for member_, arrays in zip(results.runs, files, strict=True):  # format of an earlier release
        kept = {name: arrays[name] for name in arrays.files if name != "content"}
        np.savez(store.open(member_.run).path / "embeddings" / f"{member_.weights}.npz", **kept)
    assert protocols.collect(request, entries, store) == results
    text = as_text(results, [], "a remark")
    for words in (
        "raw inputs ",
        "untrained network ",
        "separated, 4-D, mean of 2 models",
        "With a single seed, the noise is unknown.",
        "concatenated, 8-D",
        "- a remark",
        "deviates from the protocol in",
    ):
        assert words in text
    assert len(store.list()) == 2
