"""Checks of the errata to Psomas (2020) that concern counts or tables."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping

from dmlcore.data.published_counts import PUBLISHED
from dmlcore.published import tournament
from dmlcore.published.checks.number import Check, Decision, Number, Outcome
from dmlcore.published.checks.printed_tables import cell, printed
from dmlcore.published.table_reader import files

SCORES = ("R@1", "R@10", "R@100", "R@1000")


def _classes() -> Iterable[Outcome]:
    referee = sum(PUBLISHED["cars"][split].classes for split in ("train", "test"))
    yield Decision("classes of Cars196", 96 + 96, 98 + 98, referee, "the published split")


def _images() -> Iterable[Outcome]:
    referee = sum(PUBLISHED["cars"][split].samples for split in ("train", "test"))
    yield Decision("images of Cars196", 16_815, 16_185, referee, "the published split")


def _monotony() -> Iterable[Outcome]:
    first, tenth = (cell("P-10", "ArcFace", column, size="128") for column in ("R@1", "R@10"))
    yield Decision("R@10 of the row, which R@1 cannot exceed", tenth, first, first, "its R@1", bound=True)
    rows = [[float(row.values[column] or 0) for column in SCORES] for row in printed("P-10").rows]
    falling = sum(row != sorted(row) for row in rows)
    yield Number(f"rows of {len(rows)} in which recall falls", "1", falling)


def _average_rank() -> Iterable[Outcome]:
    competition = tournament.COMPETITIONS["psomas-cub"]
    ranks = {each.name: each for each in tournament.compete(tournament.scores(competition)).standings}
    mean = cell("P-11", "Triplet", "Average Ranking")
    yield Decision("average rank of Triplet", mean, 103 / 12, ranks["Triplet"].mean_rank, "the ranks of Tables 6 to 8")
    totals = sum(cell("P-11", name, "Total Rankings") == round(sum(each.ranks)) for name, each in ranks.items())
    yield Number("totals, of ten, that agree", "10", totals)


def _margin_over_n_pair() -> Iterable[Outcome]:
    lead = cell("P-6", "Margin", "R@1", size="128") - cell("P-6", "NPair", "R@1", size="128")
    yield Decision(
        "lead of margin loss over N-pair, 128 dimensions", 4.0, 4.09, lead, "Table 6", bound=True, tolerance=1e-6
    )


def _mean(table: str, *sizes: str) -> float:
    return statistics.fmean(
        float(row.values["R@1"] or 0) for row in printed(table).rows if not sizes or row.size in sizes
    )


def _goog_le_net() -> Iterable[Outcome]:
    for name, table, stated, everywhere, at_512 in (
        ("BN-Inception", "P-7", 3.5, 4.07, 4.15),
        ("ResNet50", "P-6", 5.0, 5.83, 5.80),
    ):
        for what, sizes, true in (("all sizes", (), everywhere), ("512 dimensions", ("512",), at_512)):
            lead = _mean(table, *sizes) - _mean("P-8", *sizes)
            yield Decision(
                f"lead of {name} over GoogLeNet, {what}", stated, true, lead, "Tables 6 to 8", tolerance=0.005 / 6
            )


def _quoted_table() -> Iterable[Outcome]:
    wanted = (59.57, 61.16)
    holding = [
        int(number)
        for number in files("P")
        for values in [{value for row in printed(f"P-{number}").rows for value in row.values.values()}]
        if set(wanted) <= values
    ]
    yield Decision("table that holds 59.57 and 61.16", 21, 8, holding[0], f"search of {len(files('P'))} tables")
    yield Number("tables that hold both numbers", "1", len(holding))


def _lead_over_proxy_anchor() -> Iterable[Outcome]:
    lead = {
        s: cell("P-20", "MultiSimilarity", "R@1", size=s) - cell("P-20", "ProxyAnchor", "R@1", size=s)
        for s in ("512", "1024")
    }
    yield Decision("smaller of the leads at 512 and 1024", 1.0, 0.94, min(lead.values()), "Table 20", tolerance=1e-6)
    yield Number("lead at 512", "1.62", lead["512"])


def _validation_classes() -> Iterable[Outcome]:
    for row in printed("P-14").rows:
        kept, held = (int(part) for part in row.method.split("/"))
        classes = PUBLISHED["cub"]["train"].classes
        if held != 10:
            yield Decision(
                f"validation classes at {row.method}",
                10,
                classes - classes * kept // 100,
                held * classes // 100,
                "share of the 100 classes",
            )


CHECKS: Mapping[int, Check] = {
    101: _classes,
    102: _images,
    103: _monotony,
    104: _average_rank,
    105: _margin_over_n_pair,
    106: _goog_le_net,
    107: _quoted_table,
    108: _lead_over_proxy_anchor,
    109: _validation_classes,
}
