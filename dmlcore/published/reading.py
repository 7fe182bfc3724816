"""The files of published tables read as rows, as printed: whatever their shape, nothing is added or left out."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from dmlcore import losses
from dmlcore.published import tables
from dmlcore.published.rows import Entry, Table, Value, loss_title

# What the sources call data sets and networks, at the beginning or within of a caption.
DATA = {"CUB": "CUB-200-2011", "Cars": "Cars196", "CARS": "Cars196", "SOP": "SOP", "In-shop": "In-shop"}
DATA |= {"Oxford Flowers": "Flowers-102", "Flowers": "Flowers-102", "MNIST": "MNIST", "Cars196": "Cars196"}
NETWORKS = ("ResNet50", "BN-Inception", "GoogLeNet")
# The beginning of a method's name -> the loss of our catalogue; names of proposals and of other works have none.
LOSSES: Mapping[str, Mapping[str, str]] = {
    "G": {
        "ProxyNCA++": "proxy_nca",
        "PNCA": "proxy_nca",
        "ProxyAnchor": "proxy_anchor",
        "PAnchor": "proxy_anchor",
        "SoftTriple": "soft_triple",
        "Triplet": "triplet",
        "Margin": "margin",
        "MS": "multi_similarity",
        "C1": "contrastive",
        "C2": "contrastive",
    },
    "C": {
        "Contrastive": "contrastive",
        "Triplet": "triplet",
        "Lifted": "lifted_structure",
        "N-pair": "n_pair",
        "Facility": "facility_location",
        "Angular": "angular",
        "Proposed": "tuplet",
    },
    "Z": {
        "Triplet": "triplet",
        "Binomial": "binomial_deviance",
        "Proxy-NCA": "proxy_nca_smoothed",
        "Classification": "cross_entropy",
        "WEL-": "wel",
        "WEDL-": "wedl",
    },
    "P": {
        "Contrastive": "contrastive",
        "Triplet": "triplet",
        "LiftedStructure": "lifted_structure",
        "NPair": "n_pair",
        "ProxyNCA": "proxy_nca",
        "Margin": "margin",
        "ArcFace": "arcface",
        "MultiSimilarity": "multi_similarity",
        "SoftTriple": "soft_triple",
        "ProxyAnchor": "proxy_anchor",
        "OurLoss": "proxy_push",
    },
}
# The protocol, as `RunSpec.protocol` names it, under which a table was made; those of settings and counts have none.
PROTOCOLS = {
    "G": {
        "3.1": "gurbuz-2022-fair-ccp",
        "5.1": "gurbuz-2022-fair",
        "5.3": "gurbuz-2022-ablation",
        "5.4": "gurbuz-2022-ablation",
        **dict.fromkeys(("3.2a", "3.2b", "5.2a", "5.2b"), "gurbuz-2022-conventional"),
    },
    "C": dict.fromkeys(("3.1", "3.2", "3.3", "3.4", "3.5", "3.6", "4.1", "4.2", "4.3", "4.4", "4.5"), "can-2018"),
    "Z": dict.fromkeys(("3", "4", "5", "6"), "zabihzadeh-2021"),
    "P": {
        **dict.fromkeys(("6", "7", "8", "9", "10", "17", "18", "19", "20", "21"), "psomas-2020"),
        **dict.fromkeys(("12", "13"), "psomas-2020-folds"),
        **dict.fromkeys(("14", "16"), "psomas-2020-fixed"),
    },
}


# ---- Karaman 2021


def karaman() -> Iterator[Table]:
    """Tables 4.1 to 4.14 of the 2021 thesis."""
    data = json.loads(files(__package__).joinpath("karaman-tables.json").read_text("utf-8"))
    known = {*losses.names(), *losses.batch_names()}
    for number, about in data["tables"].items():
        found = [row for row in tables.rows() if row.table == number]
        toy = about["dataset"] == "toy"
        flags = [
            f"{flag['row']}: {flag['flag']}" if "row" in flag else flag["flag"]
            for flag in data["flags"]
            if _covers(flag["table"], number)
        ]
        queries = f"{about['n_queries']:,} queries"
        if about["n_queries_origin"] == "inferred":
            queries += ", a number inferred from the scores"
        yield Table(
            "K",
            number,
            f"{about['content']} ({queries})",
            data["source"],
            tuple(_karaman_row(row, known) for row in found),
            part="train" if toy else "test",
            protocol="karaman-2021-toy" if toy else "karaman-2021",
            notes=(*flags, *_more_notes("K", number)),
        )


def _karaman_row(row: tables.Row, known: set[str]) -> Entry:
    method = loss_title(row.loss) if row.loss in known else row.loss.replace("_", " ")
    quoted = f"quoted from Table {row.quoted_from}" if row.quoted_from else ""
    hyper = ", ".join(f"{'ρ' if k == 'rho' else k}={_number(v)}" for k, v in row.hyper.items())
    setting = "; ".join(filter(None, (hyper, "without clamp" if row.unhinged else "", quoted)))
    loss = row.loss if row.loss in known else ""
    return Entry(row.label or method, dict(row.scores), row.dataset, "", "", setting, loss, dict(row.hyper))


def _number(value: float) -> str:
    return "12/7" if abs(value - 12 / 7) < 1e-9 else f"{value:g}"


def _covers(tables_: str, number: str) -> bool:
    """Whether "4.10 / 4.11", "4.5-4.7" or "all" covers a table."""
    if tables_ == "all":
        return True
    for piece in tables_.split(" / "):
        first, _, last = piece.partition("-")
        low, high, wanted = (int(n.split(".")[1]) for n in (first, last or first, number))
        if low <= wanted <= high:
            return True
    return False


# ---- the four others


def others() -> Iterator[Table]:
    """All tables of other-tables.json, each shape of it as rows."""
    data = json.loads(files(__package__).joinpath("other-tables.json").read_text("utf-8"))
    for source, citation in data["sources"].items():
        for number, raw in data[source].items():
            if number.endswith("_recomputed"):  # no table of the source; see tournament.py
                continue
            rows = tuple(_rows(source, number, raw))
            notes = [*raw.get("notes", ()), *([f"Transcription: {raw['confidence']}"] if "confidence" in raw else ())]
            if "learned_coefficients" in raw:
                learned = ", ".join(f"{name} {value:g}" for name, value in raw["learned_coefficients"].items())
                notes.append(f"Learned coefficients: {learned}.")
            yield Table(
                source,
                number,
                raw["what"],
                citation,
                rows,
                protocol=PROTOCOLS[source].get(number, ""),
                notes=(*notes, *_more_notes(source, number)),
            )


def _rows(source: str, number: str, raw: Mapping[str, Any]) -> Iterator[Entry]:
    where = {"dataset": _named(raw["what"], DATA), "network": next((n for n in NETWORKS if n in raw["what"]), "")}
    columns: Sequence[str] = raw.get("columns", ())
    if "by_embedding_size" in raw:
        for size, methods in raw["by_embedding_size"].items():
            for method, values in methods.items():
                yield _entry(source, method, dict(zip(columns, values, strict=True)), **where, size=size)
    elif (source, number) in _SHAPES:
        yield from _SHAPES[source, number](source, raw, where)
    elif isinstance(raw["rows"], dict):
        for method, values in raw["rows"].items():
            yield _entry(source, method, dict(zip(columns, values, strict=True)), **where)
    else:
        for method, *values in raw["rows"]:
            yield _entry(source, str(method), dict(zip(columns[1:], values, strict=True)), **where)


Where = Mapping[str, str]
Shape = Callable[[str, Mapping[str, Any], Where], Iterator[Entry]]


def _by_data_and_size(source: str, raw: Mapping[str, Any], where: Where) -> Iterator[Entry]:
    for method, by_data in raw["rows"].items():
        for name, by_size in by_data.items():
            for size, cell in by_size.items():
                more = {"dataset": DATA[name], "network": where["network"], "size": size}
                if isinstance(cell, dict):  # [mean, deviation] of each
                    values = {metric: pair[0] for metric, pair in cell.items()}
                    spread = {metric: pair[1] for metric, pair in cell.items() if pair[1] is not None}
                    yield _entry(source, method, values, **more, spread=spread)
                else:
                    yield _entry(source, method, dict(zip(raw["metrics"], cell, strict=True)), **more)


def _by_data(source: str, raw: Mapping[str, Any], where: Where) -> Iterator[Entry]:
    for method, cells in raw["rows"].items():
        stated = re.search(r"\((\d+)", method)
        size = f"{stated[1]}D" if stated else "512D" if "512D" in raw["what"] else ""
        for name, cell in zip(raw["columns"], cells, strict=True):
            values = dict(zip(("R@1", "MAP@R"), cell if isinstance(cell, list) else [cell], strict=False))
            if any(value is not None for value in values.values()):
                yield _entry(source, method, values, dataset=DATA[name], network=where["network"], size=size)


def _components(source: str, raw: Mapping[str, Any], where: Where) -> Iterator[Entry]:
    for method, values in raw["rows"].items():
        for column, value in zip(raw["columns"], values, strict=True):
            name, size = column.split()
            yield _entry(
                source, "C2", {"MAP@R": value}, dataset=DATA[name], network="", size=size, setting=f"with {method}"
            )


def _screening(source: str, raw: Mapping[str, Any], where: Where) -> Iterator[Entry]:
    names, methods = raw["columns"][:4], raw["columns"][4:]
    for method, value in raw["baseline"].items():
        yield _entry(source, method, {"MAP@R": value}, **where, setting="baseline")
    for *levels, first, second in raw["rows"]:
        setting = ", ".join(f"{name}={level:g}" for name, level in zip(names, levels, strict=True))
        for method, value in zip(methods, (first, second), strict=True):
            yield _entry(source, method, {"MAP@R": value}, **where, setting=setting)


def _steps(source: str, raw: Mapping[str, Any], where: Where) -> Iterator[Entry]:
    for method, values in raw["rows"].items():
        for name, value in zip(raw["columns"], values, strict=True):
            yield _entry(source, method, {"thousand steps": value}, dataset=DATA[name], network="")


def _panels(source: str, raw: Mapping[str, Any], where: Where) -> Iterator[Entry]:
    columns = ("MAP@R, 0 to 1", "covering radius", "mean inter-class distance")
    for method, values in raw["rows"].items():
        yield _entry(source, method, dict(zip(columns, values, strict=True)), **where)


def _mean_and_deviation(source: str, raw: Mapping[str, Any], where: Where) -> Iterator[Entry]:
    for method, (mean, deviation) in raw["rows"].items():
        yield _entry(source, method, {"R@1": mean}, **where, spread={"R@1": deviation})


_SHAPES: Mapping[tuple[str, str], Shape] = {
    ("G", "3.1"): _by_data_and_size,
    ("G", "5.1"): _by_data_and_size,
    **dict.fromkeys([("G", "3.2a"), ("G", "3.2b"), ("G", "5.2a"), ("G", "5.2b")], _by_data),
    ("G", "3.3"): _steps,
    ("G", "5.3"): _components,
    ("G", "5.4"): _screening,
    ("G", "fig 3.2"): _panels,
    ("P", "12"): _mean_and_deviation,
}


def _entry(source: str, method: str, values: Mapping[str, Value], **more: Any) -> Entry:
    loss = next((loss for begin, loss in LOSSES[source].items() if method.startswith(begin)), "")
    return Entry(method, values, loss=loss, **more)


def _named(caption: str, known: Mapping[str, str]) -> str:
    """The data set that a caption names."""
    return next((name for word, name in known.items() if word in caption), "")


@cache
def _noted() -> dict[str, list[dict[str, Any]]]:
    return tomllib.loads(files(__package__).joinpath("table-notes.toml").read_text("utf-8"))


def _more_notes(source: str, number: str) -> Iterator[str]:
    return (note["text"] for note in _noted()["note"] if note["source"] == source and number in note["tables"])
