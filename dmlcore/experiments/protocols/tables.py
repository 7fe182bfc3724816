"""Results of a protocol as text, next to the values printed in its source."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from dmlcore.experiments.protocols.expansion import PUBLISHED, images
from dmlcore.experiments.protocols.requests import ProtocolRequest
from dmlcore.experiments.protocols.results import ProtocolResults, Spread, baselines, verdict
from dmlcore.experiments.studies import StudyRun
from dmlcore.published import karaman, table_reader
from dmlcore.spec import RunSpec

SHOWN = ("map_at_r", "r_precision", *(f"recall_at_{k}" for k in (1, 2, 4, 8, 10, 20, 30, 100, 1000)), "nmi")
TITLES = {"map_at_r": "MAP@R", "r_precision": "P@R", "nmi": "NMI"}
DATA = {"cub": "CUB-200-2011", "cars": "Cars196", "sop": "SOP", "inshop": "In-shop"}
# Names of the losses in Tables 3.1, 5.1 and 5.2 of Gurbuz 2022.
GURBUZ = {"c1": "C1", "c2": "C2", "ms": "MS", "triplet": "Triplet", "proxy_anchor": "PAnchor", "proxy_nca": "PNCA"}
CCP = {
    "proxy_anchor": "ProxyAnchor",
    "proxy_nca": "ProxyNCA++",
    "soft_triple": "SoftTriple-S/L",
    "c1_ccp": "C1+CCP-L",
    "c2_ccp": "C2+CCP-L",
    "triplet_ccp": "Triplet+CCP-L",
    "ms_ccp": "MS+CCP-L",
    # printed under the same name as the loss without memory; the memory setting of the spec distinguishes them
    "c1_xbm": "C1",
    "c2_xbm": "C2",
}
PSOMAS = {
    "contrastive": "Contrastive",
    "triplet": "Triplet",
    "lifted_structure": "LiftedStructure",
    "npair": "NPair",
    "margin": "Margin",
    "multi_similarity": "MultiSimilarity",
    "proxy_nca": "ProxyNCA",
    "arcface": "ArcFace",
    "soft_triple": "SoftTriple",
    "proxy_anchor": "ProxyAnchor",
}
PSOMAS_TABLES = {
    ("cub", "resnet50"): "6",
    ("cub", "bn_inception"): "7",
    ("cub", "googlenet"): "8",
    ("cars", "bn_inception"): "9",
    ("cars", "resnet50"): "20",
    ("cars", "googlenet"): "21",
    ("sop", "bn_inception"): "10",
}
ZABIHZADEH = {
    "triplet": "Triplet Loss",
    "binomial": "Binomial Loss",
    "proxy_nca": "Proxy-NCA",
    "classification": "Classification Loss",
    "wel": "WEL-DML",
    "wedl": "WEDL-DML",
    "wedl_c": "WEDL-C",
}
# Ablated variants in Table 6, which covers only the Flowers data set.
ZABIHZADEH_ABLATION = {
    "wedl_without_gdfl": "WEDL-DML without GDFL",
    "wedl_c_without_gdfl": "WEDL-C without GDFL",
    "wedl_fixed": "WEDL-DML without coefficient learning",
    "wedl_c_fixed": "WEDL-C without coefficient learning",
}

CAN = {"tuplet": "Proposed Method", "n_pair": "N-pair"}
CAN_RNN = "Proposed Method + RNN"  # printed name of the method of Can 2018, Ch. 4; its scores are transductive
# Ablated or changed variants in Can 2018, Tables 3.2, 3.3, 4.1 and 4.2, which cover only SOP, as (table, method).
CAN_ABLATION = {
    "tuplet_longer": (("4.1", "40000"),),
    "tuplet_rnn_unordered": (("4.2", "Proposed Method + RNN without ordering inputs"),),
    "tuplet_p4": (("3.2", "Proposed Loss + P = 4"),),
    "tuplet_free": (
        ("3.3", "Proposed Loss + Sampling"),
        ("3.3", "Proposed Loss + Sampling by fixing k-nearest neighborhood"),
    ),
}


@dataclass(frozen=True)
class Printed:
    """Row of a published table: `of` names the table and the method, `scores` are in 0..1."""

    of: str
    scores: dict[str, Spread]


def as_text(results: ProtocolResults, printed: Sequence[Printed] = (), remark: str = "") -> str:
    """Format the runs, the summaries and the published values as text for the terminal, with scores in percent."""
    names = [name for name in SHOWN if any(name in summary.scores for summary in results.summaries)]
    head = ["", "n", *(TITLES.get(name, name.replace("recall_at_", "R@")) for name in names)]
    lines = [head]
    for member in results.runs:
        where = f"fold {member.fold}, seed {member.seed}" if member.fold else f"seed {member.seed}"
        chose = "" if member.validation is None else f" (validation {100 * member.validation:.2f})"
        lines.append(
            [where + chose, "", *(_cell((member.scores[n], None) if n in member.scores else None) for n in names)]
        )
    summaries = [*baselines(results), *results.summaries]
    lines += [[s.of, str(s.count), *(_cell(s.scores.get(name)) for name in names)] for s in summaries]
    lines += [[f"published: {row.of}", "", *(_cell(row.scores.get(name)) for name in names)] for row in printed]
    widths = [max(len(line[i]) for line in lines) for i in range(len(head))]
    text = ["  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in lines]
    text += [sentence] if (sentence := verdict(results).text) else []
    text += [f"- {note}" for note in (*results.notes, *([remark] if remark else []))]
    text += (
        ["deviates from the protocol in", *(f"- {line}" for line in results.deviations)] if results.deviations else []
    )
    return "\n".join(text)


def printed_rows(request: ProtocolRequest, entries: Sequence[StudyRun]) -> tuple[list[Printed], str]:
    """Return the published rows for the data set, loss and network of a request, and a remark.

    If our data set has another number of training samples, the list is empty and the remark says so; otherwise the
    remark is "".
    """
    protocol, spec = request.read(), entries[-1].spec
    word = protocol.label(request.loss) if request.loss else protocol.label(spec.loss.name)
    printed_rows = _rows(spec, word)
    whole = PUBLISHED.get(spec.data.name, (0,))[0]
    if printed_rows and whole and (here := images(spec)) != whole:
        return (
            [],
            f"the published numbers are of {whole:,} training samples, but this data set has {here:,}: not comparable",
        )
    return printed_rows, ""


def _rows(spec: RunSpec, word: str) -> list[Printed]:
    family = spec.protocol
    if family in ("karaman-2021", "karaman-2021-toy"):
        return _karaman(spec)
    if family in ("gurbuz-2022-fair", "gurbuz-2022-fair-ccp"):
        return _fair(spec, word)
    if family == "psomas-2020":
        number, size = PSOMAS_TABLES.get((spec.data.name, spec.model.name), ""), str(spec.model.embedding_dim)
        return _of_table("P", number, PSOMAS.get(word, ""), size=size)
    if family == "psomas-2020-folds" and (spec.data.name, spec.model.name) == ("cub", "bn_inception"):
        return _of_table("P", "12", PSOMAS.get(word, ""))
    if family == "zabihzadeh-2021":
        if word in ZABIHZADEH_ABLATION:
            return _of_table("Z", "6", ZABIHZADEH_ABLATION[word]) if spec.data.name == "flowers" else []
        number = {"flowers": "3", "cub": "4", "cars": "5"}.get(spec.data.name, "")
        return _of_table("Z", number, ZABIHZADEH.get(word, ""))
    if family == "can-2018":
        number = {"cub": "3.4", "cars": "3.5", "sop": "3.6"}.get(spec.data.name, "")
        if word == "tuplet_rnn":
            return _of_table("C", {"3.4": "4.3", "3.5": "4.4", "3.6": "4.5"}.get(number, ""), CAN_RNN)
        if word in CAN:
            return _of_table("C", number, CAN[word])
        return [row for pair in CAN_ABLATION.get(word, ()) for row in _of_table("C", *pair) if number == "3.6"]
    return []


def _of_table(letter: str, number: str, method: str, **where: str) -> list[Printed]:
    """Return the rows of a method in a published table whose attributes equal `where`; [] if there is no such table."""
    file = table_reader.files(letter).get(number)
    if file is None:
        return []
    title = f"{table_reader.sources()[letter].title}, Table {number}, {method}"
    return [
        _row(", ".join(filter(None, (title, row.size))), dict(zip(file.columns, row.values, strict=True)), row.spread)
        for row in file.rows
        if row.method == method and all(getattr(row, name) == value for name, value in where.items())
    ]


def _karaman(spec: RunSpec) -> list[Printed]:
    """Return the rows of Karaman 2021 with the hyper-parameters of the spec."""
    dataset = {"cub": "CUB-200-2011", "toy": "toy"}.get(spec.data.name, "")
    given = spec.loss.parameters
    rows = [
        row
        for row in karaman.of_loss(spec.loss.name, dataset)
        if not row.unhinged and row.hyper and all(given.get(k) == v for k, v in row.hyper.items())
    ]
    split = " (training split)" if dataset == "toy" else ""
    return [_row(f"Karaman 2021, Table {row.table}{split}", row.scores) for row in rows]


def _fair(spec: RunSpec, word: str) -> list[Printed]:
    ccp = spec.protocol.endswith("ccp")
    name = (CCP.get(word) if ccp else None) or GURBUZ.get(word, "")
    name += "+XBM-L" if ccp and spec.loss.memory else "+XBM" if spec.loss.memory else ""
    name += "+GSP" if spec.pooling.name == "gsp" and not ccp else ""
    return _of_table("G", "3.1" if ccp else "5.1", name, dataset=DATA.get(spec.data.name, ""))


def _row(subject: str, scores: Mapping[str, float | str], spread: Sequence[float] = ()) -> Printed:
    """Create a row from scores in percent by printed name, and from their deviations if the source prints them."""
    names = {"MAP@R": "map_at_r", "P@R": "r_precision", "NMI": "nmi", "P@1": "recall_at_1"}
    spreads: dict[str, Spread] = {}
    for (title, mean), deviation in itertools.zip_longest(scores.items(), spread):
        short = title.replace("Recall@", "R@")
        if not isinstance(mean, str):  # a string marks a value that is illegible in the source
            name = names.get(short, short.replace("R@", "recall_at_"))
            spreads[name] = mean / 100, None if deviation is None else deviation / 100
    return Printed(subject, spreads)


def _cell(value: Spread | None) -> str:
    if value is None:
        return "-"
    mean, deviation = value
    return f"{100 * mean:.2f}" + ("" if deviation is None else f" ± {100 * deviation:.2f}")
