"""Hostile links over all pages, for test_links.py.

Each link is opened in this process with streamlit's AppTest, in a new session, over a store with a trained run, a
waiting run and one with a damaged spec. Parameters are those that the pages read; values are taken from a pool that
breaks parsers, half of the time next to an existing run or loss.
"""

from __future__ import annotations

import contextlib
import json
import logging
import os
import random
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import get_args

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before torch is imported: processor time of one thread

import pytest
from streamlit.testing.v1 import AppTest

from dmlcore import data, losses
from dmlcore.inspection import selections
from dmlcore.inspection.maps import maps
from dmlcore.published.errata import errata
from dmlcore.spec import RunSpec, keys
from dmlcore.storage.runs import Run, RunStore
from dmlcore.training.objective import CATALOGUES
from pages.shared.state.spec_link import presets
from tests.pages.conftest import load_page, make_run

NOISE = ("missing ScriptRunContext",)  # of AppTest itself

SCENE = (
    "loss probe shade lines flow margin snap region forces edges discs mining cut mu a p n view line hide socket grid"
)
HYPER = "m m1 m2 s r rho alpha beta q lambda"
PICKED = "run selection"
LOOK = "verdict rank hubness doubted split tags sort size contours at sample"
PARAMETERS = {  # parameters that each page reads
    "fields": f"{SCENE} {HYPER}",
    "compare": f"l1 l2 l3 l4 a p n probe shade space clamp orders fit region arrows pair view hide socket {HYPER}",
    "sphere": f"on loss probe a p n eye discs region arrows socket hide {HYPER}",
    "charges": f"start classes per seed loss rate optimiser then step socket hide {HYPER}",
    "pair_weights": "l1 l2 pn at weight by socket hide",
    "errata": f"part loss source at erratum a p n view probe socket {HYPER}",
    "transport": "mu epsilon sweeps prototypes map paint socket hide",
    "gap_vs_gsp": "mu epsilon seed then step class study socket hide",
    "prototypes": "source m per tau weigh classes image socket hide study",
    "collage": "runs draw query opacity study",
    "toy_training": "data part normalize optimiser rate sides then a.loss a.m b.loss b.m2 a.moves batch seed step "
    "socket",
    "data": "data root",
    "settings": "base set like",
    "runs": "run",
    "fork": f"{PICKED} step",
    "studies": "study measure",
    "neighbours": f"{PICKED} query view class with weights order k failures page",
    "failures": f"{PICKED} query right wrong {SCENE} {HYPER}",
    "explore": f"{PICKED} map training point query own colour classes {LOOK}",
    "differences": f"{PICKED} other before after difference-kind",
    "confusions": f"{PICKED} view pair order k hubs",
    "claims": "source verdict",
    "published_results": "view table sweep competition search score",
}
NUMBERS = (
    *("nan", "-nan", "inf", "-inf", "1e999", "-1e999", "1e-300", "-0", "0", "-1", "-3", "1.5", "1e308", "0x10", "1_0"),
    *("٣", "９", "²", "99999999999999999999", "9" * 5000, "", " ", "+1", "1,2", "nan,nan", "1e999,-1e999", "1,2,3"),
    *("0," * 1000, "1;2", "-0,-0", "1e-300,1e-300", "100,100", "1e6,-1e6", "5", "2", "3,4", "1,1"),
)
TEXTS = (
    *("\0", "a\0b", "../../etc/passwd", "..%2f..%2f", "%252e%252e", "/", "~", "~nobody", ".", "C:\\", "\\\\host\\x"),
    *(
        "<script>alert(1)</script>",
        "<img src=x onerror=alert(1)>",
        "![](http://127.0.0.1:9/x.png)",
        "[a](javascript:x)",
    ),
    *("$\\frac{1}{0}$", ":red[x]", ":material/x:", "**", "`", "\u202egnp", "\u2066x", "\ufeff", "\U0001f4a3" * 50),
    *("x" * 100_000, "[" * 3000, "[1," * 1000, "{" * 3000, '"' * 999, "'", "\n", "\r\n", "\t", "a" * 300),
    *("true", "false", "None", "null", "[]", "{}", "[1]", "{a=1}", "a=b", ";", ";;;", ",", ":", "@", "=", "1=2", "&"),
    *("__class__", "constructor", "-", "--help", "nonsense", "RANKING", "ranking ", "ranking,ranking"),
)
THEN = (*("5:", "-1:m=1", "nan:m=1", "1e999:loss=x"), "3:move=0@1@2", "3:move=99@nan@1;4:loss=triplet", "0:mu=9;0:mu=0")
TOML = (
    *("nan", "inf", "-inf", "1e999", "-1", "0", "true", '""', '"x"', "[]", "[1,2]", "[[1]]", "{a=1}", "1979-05-27"),
    *("9" * 30, "9" * 5000, "0xffffffffffffffffffff", "1e-300", "4096", "100000", "10000000", "[65536,65536,65536]"),
    *("[1,[1,", "[" * 3000, "abc", "a b", "\0", "\u202e", "<b>", "../x", "/etc/passwd", "1\nseed=2", "''", "1.5", "7"),
)


@dataclass
class Store:
    """Runs that links may name."""

    trained: Run
    waiting: Run
    selection: str

    def words(self) -> dict[str, tuple[str, ...]]:
        """Return existing values by parameter."""
        one, two, index = self.trained.id, self.waiting.id, str(self.trained.spec.data.folds + 900)
        known = ("ranking", "distance_sensitive", "triplet", "angular", *losses.batch_names()[:3])
        ids = (one, one, one, f"{one},{two}", two, "damaged", "20260101-0000-gone-0000", one.upper(), f"{one}/..")
        return {
            "run": ids,
            "like": ids,
            "other": ids,
            "with": ids,
            "runs": ids,
            "source": (f"run:{one}", f"run:{two}", "run:gone", "digits", "digits3", "cifar10", "G", "P"),
            "selection": (self.selection, self.selection, "0" * 16, "../selections"),
            "loss": known,
            **dict.fromkeys(("l1", "l2", "l3", "l4"), (*known, "ranking,m:nan", "ranking,m:1e999", "angular,x:1")),
            "base": tuple(presets()),
            "data": ("digits", "toy", "cub", "folder", "cifar100", "moons"),
            "study": ("losses-digits", "losses-cifar100", "toy-table", "tokens"),
            "view": (
                "Queries",
                "Near-duplicates",
                "Suspicious labels",
                "Own picture",
                "Tables",
                "Margins",
                "Tournament",
            ),
            **dict.fromkeys(("query", "point", "right", "wrong"), (index, "3", "1796", "1797")),
            "then": THEN,
            "page": ("-3", "2", "9999"),
            "before": ("best", "0", "4", "8"),
            "after": ("best", "0", "4", "8"),
            "order": ("worst first", "Surest failures"),
            "erratum": tuple(map(str, range(1, len(errata()) + 1))),
        }


class Log(logging.Handler):
    """Collector of the server's log records."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        text = record.getMessage()
        if not any(noise in text for noise in NOISE):
            why = f"{record.exc_info[1]!r} in " if record.exc_info else ""
            frames = traceback.extract_tb(record.exc_info[2]) if record.exc_info else []
            where = " < ".join(f"{Path(f.filename).name}:{f.lineno}" for f in frames[:-8:-1])
            self.lines.append(f"{record.name}: {why}{where or text}"[:400])


def prepared(root: Path, patch: pytest.MonkeyPatch) -> Store:
    """Yield a store, set as $DML_RUNS, with a trained and mapped run, a waiting run and one with a damaged spec."""
    patch.setenv("DML_RUNS", str(root))
    trained = make_run(root, "schedule.keep_every=4", "name=<b>name</b> $x$ ![](x)")
    maps.make(trained)
    kept = selections.save(trained, [3, 900, 901, 1796], "lasso on the map")
    waiting = RunStore(root).create(RunSpec())
    (root / "damaged").mkdir()
    (root / "damaged" / "spec.json").write_text("[" * 100_000)
    return Store(trained, waiting, kept.id)


def drawn(random_: random.Random, page: str, store: Store) -> dict[str, str]:
    """Return the query of a hostile link to a page."""
    if page == "settings" and random_.random() < 0.8:
        return {"base": random_.choice(tuple(presets())), "set": _changes(random_)}
    words, names = store.words(), PARAMETERS[page].split()
    query = {}
    if "run" in names and random_.random() < 0.8:
        query["run"] = store.trained.id  # most of a page is reachable only with a run
    for name in random_.sample(names, min(len(names), random_.randint(1, 5))):
        known = words.get(name, ())
        pool = known if known and random_.random() < 0.5 else random_.choice((NUMBERS, TEXTS))
        query[name] = random_.choice(pool)
    if random_.random() < 0.1:
        query[random_.choice(TEXTS)[:50] or "x"] = random_.choice(TEXTS)
    return query


@cache
def extremes() -> tuple[str, ...]:
    """Return changes at and beyond the bounds of a spec: every choice and both ends of every range."""
    found = ["model.hidden=[65536,65536,65536,65536]", "model.hidden=[]", "ks=[100000]", "model.name=timm:resnet26"]
    for key, info in keys().items():
        found += [f"{key}={word}" for word in get_args(info.annotation) if isinstance(word, str)]
        for rule in info.metadata:
            found += [f"{key}={getattr(rule, name)}" for name in ("ge", "gt", "le", "lt") if hasattr(rule, name)]
        if info.annotation is int:
            found += [f"{key}={number}" for number in (1, 1000, 2**31, 2**62)]
    for section, entries in CATALOGUES.items():
        for name, entry in entries.items():
            for parameter, slider in entry.parameters.items():
                values = (*getattr(slider, "options", ()), 1e-9, 1.5, 3, 1e6, 1e30, 1e300, "inf")
                found += [f"{section}.name={name};{section}.{parameter}={value}" for value in values]
    return (*found, *(f"data.name={name}" for name in data.names()))


def _changes(random_: random.Random) -> str:
    """Return a ?set= parameter of one to six changes, some with unknown keys."""
    changes = []
    for _ in range(random_.randint(1, 6)):
        kind = random_.random()
        if kind < 0.6:
            key = random_.choice(tuple(keys()))
        elif kind < 0.85:
            section, entries = random_.choice(tuple(CATALOGUES.items()))
            name = random_.choice(list(entries))
            changes.append(f"{section}.name={name}")
            key = f"{section}.{random_.choice([*entries[name].parameters, 'nonsense'])}"
        else:
            key = random_.choice(("", "x", "a." * 1000 + "b", "loss.parameters.x.y", "fork", "data", "__class__"))
        changes.append(f"{key}={random_.choice(TOML)}")
    if random_.random() < 0.4:  # individually valid values at the end of their range
        changes = [random_.choice(extremes()) for _ in range(random_.randint(1, 3))]
    return random_.choice((";", ";", ";", ";;", "\n")).join(changes)


def opened(page: str, query: dict[str, str]) -> AppTest:
    """Return the page in a new session."""
    return load_page(page, **query)


@contextlib.contextmanager
def logged() -> Iterator[Log]:
    """Collect log records; streamlit's loggers do not propagate to the root logger."""
    log = Log()
    loggers = [logging.getLogger(), *(logging.getLogger(name) for name in list(logging.root.manager.loggerDict))]
    loggers = [logger for logger in loggers if logger is logging.root or not logger.propagate]
    for logger in loggers:
        logger.addHandler(log)
    try:
        yield log
    finally:
        for logger in loggers:
            logger.removeHandler(log)


def attack(store: Store, links: int, seed: int) -> list[str]:
    """Open links to each page in turn, every fifth to Settings, whose ?set= has the most options.

    Returns:
        The links that raise an error or log a line, with the first error.
    """
    random_, pages, failures = random.Random(seed), list(PARAMETERS), []
    with logged() as log:
        for number in range(links):
            page = "settings" if number % 5 == 0 else pages[number % len(pages)]
            query = drawn(random_, page, store)
            log.lines.clear()
            try:
                errors = [f"{error.message}" for error in opened(page, query).exception] + log.lines
            except Exception as error:  # raised by AppTest itself, or a time-out
                errors = [repr(error)]
            if errors:
                failures.append(f"{page} {json.dumps(query)[:2000]}\n    {errors[0][:300]}")
    return failures
