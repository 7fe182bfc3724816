"""Every published table is stored as printed, and every number of the notes follows from the tables."""

from __future__ import annotations

import re
import statistics

import pytest

from dmlcore import losses
from dmlcore.experiments import protocols
from dmlcore.published import collection, karaman, noise, table_reader
from dmlcore.published.collection import search, table


def value(key: str, method: str, column: str = "R@1", **where: str) -> float:
    """Return the only printed value of a method."""
    (found,) = [
        row.values[column]
        for row in table(key).rows
        if row.method == method and all(getattr(row, k) == v for k, v in where.items())
    ]
    return found


def test_every_table_is_there_in_the_order_of_the_numbers():
    keys = [found.key for found in collection.collection()]
    assert len(keys) == len(set(keys)) == 56
    assert {f"K-4.{n}" for n in range(1, 15)} <= set(keys)
    assert keys.index("K-4.9") < keys.index("K-4.10"), "in numerical, not alphabetical order"


def test_a_file_that_is_no_table_is_named(tmp_path, monkeypatch):
    bad = tmp_path / "karaman-2021" / "9.9.toml"
    bad.parent.mkdir()
    bad.write_text('caption = "x"\ncolumns = ["R@1"]\nrows = [{ loss = "triplet", values = [1.0, 2.0] }]\n')
    table_reader.sources()
    monkeypatch.setattr(table_reader, "_FOLDER", tmp_path)
    with pytest.raises(ValueError, match=r"karaman-2021/9\.9\.toml: .*\n.*rows\.1: there are 1 columns"):
        table_reader.files.__wrapped__("K")


def test_the_rows_of_the_2021_thesis_are_those_of_its_tables():
    rows = [row for found in collection.collection() if found.source == "K" for row in found.rows]
    assert [dict(row.values) for row in rows] != []
    by_table = sorted((row.table, row.loss, tuple(row.scores.values())) for row in karaman.rows())
    ours = sorted(
        (found.number, row.loss or row.method.replace(" ", "_"), tuple(row.values.values()))
        for found in collection.collection()
        if found.source == "K"
        for row in found.rows
    )
    assert ours == by_table


def test_protocols_and_losses_are_known():
    for found in collection.collection():
        assert not found.protocol or found.protocol in protocols.names(), found.key
        for row in found.rows:
            assert not row.loss or row.loss in losses.LOSSES
            assert row.method
    assert table("K-4.1").protocol == "karaman-2021-toy"
    assert {found.key for found in collection.collection() if found.scores and not found.protocol} == set()


def test_search_finds_words_wherever_they_stand():
    assert len(search()) == sum(len(found.rows) for found in collection.collection())
    methods = {row.method for _, row in search("contrastive")}
    assert {"Contrastive", "C1", "C2+GSP"} <= methods, "C1 is a contrastive loss under any name"
    assert "Triplet" not in methods
    assert all(row.dataset == "CUB-200-2011" for _, row in search("CUB", dataset="CUB-200-2011"))
    found = search("RANKING m=0.01 4.2", loss="ranking")
    assert [(one.number, row.values["R@1"]) for one, row in found] == [("4.2", 52.8), ("4.14", 52.8)]
    assert {row.method for _, row in search("512D cub resnet50 xbm", source="G")} == {
        "C1+XBM (512)",
        "C1+XBM+GSP (512)",
    }
    assert {found.source for found, _ in search(protocol="psomas-2020")} == {"P"}
    assert search("no such loss") == []
    assert {row.loss for _, row in search(loss="proxy_anchor")} == {"proxy_anchor"}


def test_what_is_best_within_the_noise():
    rows = table("K-4.2").rows
    marked = {rows[i].setting for i, best in enumerate(noise.best(rows, "R@1", 0.9)) if best}
    assert marked == {"m=0.01"}
    within = noise.best(table("K-4.12").rows, "R@1", 0.9)
    scores = [row.values["R@1"] for row in table("K-4.12").rows]
    assert within == [score >= max(scores) - 0.9 for score in scores]
    assert 5 < sum(within) < 15
    alone = noise.best(table("K-4.12").rows, "R@1")
    assert sum(alone) == 1


def test_printed_deviations_make_rows_equal_where_their_intervals_meet():
    found = table("G-5.1").rows
    marked = {
        row.method
        for row, best in zip(found, noise.best(found, "MAP@R"), strict=True)
        if best and row.alike[0] == "SOP" and row.size == "512D"
    }
    group = {
        row.method: (row.values["MAP@R"], row.spread["MAP@R"])
        for row in found
        if row.dataset == "SOP" and row.size == "512D"
    }
    top = max(group, key=lambda name: group[name][0])
    meets = {m for m, (mean, sd) in group.items() if mean + sd >= group[top][0] - group[top][1] - 1e-9}
    assert marked == meets


def test_a_row_alone_in_its_group_is_not_best():
    rows = [
        collection.PublishedRow("a", {"R@1": 50.0}, "x"),
        collection.PublishedRow("b", {"R@1": 40.0}, "y"),
        collection.PublishedRow("c", {"R@1": None}, "y"),
    ]
    assert noise.best(rows, "R@1", 1.0) == [False, False, False]


def test_the_band_is_what_repeated_and_equal_settings_show():
    by = {(row.table, row.loss, *row.hyper.values()): row.scores for row in karaman.rows()}
    twice = [("distance_sensitive", 1.0, 2.0, 1.0, -2.5, m2) for m2 in (5.0, 10.0)]
    apart = [{c: abs(by["4.10", *k][c] - by["4.11", *k][c]) for c in noise.KARAMAN} for k in twice]
    assert max(d["R@1"] for d in apart) == pytest.approx(0.38)
    assert max(d["MAP@R"] for d in apart) == pytest.approx(0.16)
    free = 40.0, 1000.0
    pairs = (
        (("4.2", "ranking", 40.0), ("4.8", "distance_sensitive", 0.0, 0.0, 0.5, *free)),
        (("4.2", "facenet", 40.0), ("4.8", "distance_sensitive", 1.0, -1.0, 0.5, *free)),
        (("4.4", "angular", 0.79), ("4.8", "distance_sensitive", 1.0, -1.0, 1.0, *free)),
    )
    differ = {c: max(abs(by[a][c] - by[b][c]) for a, b in pairs) for c in noise.KARAMAN}
    assert differ["R@1"] == pytest.approx(0.86)
    assert differ["MAP@R"] == pytest.approx(0.22)
    for column in ("0.38 R@1", "0.16 MAP@R", "0.86 R@1", "0.22 MAP@R"):
        assert column in noise.WHY
    assert noise.band(table("K-4.2")) == {"R@1": 0.9, "MAP@R": 0.2}
    assert noise.band(table("K-4.1")) == noise.band(table("P-6")) == {}


def test_words_about_noise_carry_the_numbers_of_the_tables():
    assert "0.44 to 0.59" in noise.words(table("P-6"))
    assert noise.words(table("K-4.5")) == karaman.NOISE
    for found in collection.collection():
        assert bool(noise.words(found)) == bool(found.scores), found.key


def test_values_from_damaged_text_are_flagged():
    damaged = {
        (shown.key, row.dataset, row.values[column])
        for shown in collection.collection()
        for row in shown.rows
        for column in row.damaged
    }
    assert damaged == {("G-5.2a", "CUB-200-2011", 64.32), ("G-5.2a", "Cars196", 77.63)}
    assert note("G", "5.2a", "damaged") == [64.32, 77.63]


def test_a_damaged_column_must_be_one_of_the_table():
    row = {"values": (1.0,), "loss": "triplet", "damaged": ("R@2",)}
    with pytest.raises(ValueError, match=r"rows\.1: damaged names R@2, which is not a column"):
        table_reader.File.model_validate({"caption": "x", "columns": ("R@1",), "rows": (row,)})


def test_errata_and_flags_stand_beside_their_tables():
    assert [e.number for e in table("K-4.14").errata()] == [42]
    assert [e.number for e in table("K-4.1").errata()] == [38], "Table 4.1, not 4.10 to 4.14"
    assert [e.number for e in table("G-5.1").errata()] == [70, 72]
    assert [e.number for e in table("G-3.1").errata()] == [69, 71]
    assert [e.number for e in table("Z-3").errata()] == [94]
    assert [e.number for e in table("C-4.4").errata()] == [84, 113]
    assert [e.number for e in table("P-10").errata()] == [103]
    assert [e.number for e in table("P-7").errata()] == [106]
    assert table("C-3.1").errata() == []
    assert any("4.4 robust" in note for note in table("K-4.3").notes)
    assert any("collapse on m - rho/2" in note for note in table("K-4.6").notes)
    assert not any("collapse on m - rho/2" in note for note in table("K-4.8").notes)
    assert any("ArcFace" in note for note in table("P-10").notes)


def note(source: str, number: str, word: str) -> list[float]:
    """Return the numbers in the note of a table that contains a word."""
    (text,) = [text for text in table(f"{source}-{number}").notes if word in text]
    return [float(n) for n in re.findall(r"-?\d+\.\d+", text)]


def test_every_number_of_our_notes_is_recomputed():
    gsp = [
        (value("G-5.1", f"{m}+GSP", "MAP@R", dataset=d, size=s) - value("G-5.1", m, "MAP@R", dataset=d, size=s))
        for m in ("C1+XBM", "C1+CCP", "C2", "MS", "Triplet", "PNCA", "PAnchor")
        for d in table("G-5.1").datasets
        for s in ("512D", "128D")
    ]
    assert len(gsp) == 56
    assert note("G", "5.1", "56 cells") == [
        pytest.approx(x, abs=0.005) for x in (statistics.fmean(gsp), min(gsp), max(gsp))
    ]
    over, xbm = [], []
    for d in table("G-3.1").datasets:
        for s in ("512D", "128D"):
            at = lambda m, d=d, s=s: value("G-3.1", m, "MAP@R", dataset=d, size=s)  # noqa: E731
            over += [at(f"{m}+CCP-L") - at(m) for m in ("C1", "C2", "MS", "Triplet")]
            xbm += [at(f"{m}+CCP-L") - at(f"{m}+XBM-L") for m in ("C1", "C2")]
    assert note("G", "3.1", "CCP gains") == [pytest.approx(x, abs=0.005) for x in (min(over), max(over), min(xbm))]
    nmi = [
        value(f"C-3.{n}", "Proposed Method", "NMI") - value(f"C-3.{n}", "DAML with N-pair loss", "NMI")
        for n in (4, 5, 6)
    ]
    assert note("C", "3.4", "margin in NMI")[1] == pytest.approx(max(nmi))
    assert nmi[0] == max(nmi)
    rnn = [
        value(f"C-4.{n}", "Proposed Method + RNN", "NMI") - value(f"C-4.{n}", "Proposed Method", "NMI") for n in (3, 4)
    ]
    assert note("C", "4.4", "recurrent network")[-1] == pytest.approx(max(rnn)) == pytest.approx(rnn[1])
    at_128 = value("P-6", "Margin", size="128") - value("P-6", "NPair", size="128")
    assert note("P", "6", "margin loss and N-pair") == [pytest.approx(at_128)]
    mean = {n: statistics.fmean(row.values["R@1"] for row in table(f"P-{n}").rows) for n in (6, 7, 8)}
    assert note("P", "8", "GoogLeNet")[1:] == [pytest.approx(mean[n] - mean[8], abs=0.005) for n in (7, 6)]
    lead = [value("P-20", "MultiSimilarity", size=s) - value("P-20", "ProxyAnchor", size=s) for s in ("512", "1024")]
    assert note("P", "20", "leads ProxyAnchor") == [pytest.approx(x) for x in lead]
    assert note("P", "11", "103/12") == [8.85, pytest.approx(103 / 12, abs=0.005)]
