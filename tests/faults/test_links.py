"""Hostile links to all pages: none may raise an error or log a line.

Each link is opened in this process with streamlit's AppTest over a store with a trained run, a waiting run and
one with a damaged spec.
"""

from __future__ import annotations

import contextlib
import itertools
import logging
import traceback
from collections.abc import Iterator
from pathlib import Path

import pytest

from dmlcore.inspection.maps import maps
from dmlcore.spec import RunSpec
from dmlcore.storage.runs import Run, RunStore
from tests.members import note_member
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
    "thresholds": f"{PICKED} t fmr side order curve",
    "claims": "source verdict",
    "published_results": "view table sweep competition search score",
}
VALUES = (
    *("nan", "1e999", "-1", "9" * 5000, "٣", "0," * 1000, "1e-300,1e-300", "\0", "../../etc/passwd", "%252e%252e"),
    *("<img src=x onerror=alert(1)>", "![](http://127.0.0.1:9/x.png)", "$\\frac{1}{0}$", "\u202egnp", "x" * 100_000),
    *("[" * 3000, "[1," * 1000, ";;;", "a=b", "5:m=nan;-1:m=1", "__class__", "ranking,m:1e999", ""),
)
SETTINGS = (  # values of ?set= on the page Settings
    "ks=" + "[" * 3000,
    "loss.m=abc",
    "loss.name=contrastive;loss.m_pos=inf",
    "schedule.steps=1e300;seed=" + "9" * 5000,
    "model.hidden=[65536,65536,65536];batch.classes=4611686018427387904",
    "optimiser.learning_rate=1e-300;data.name=cub;data.root=../x",
    "a." * 1000 + "b=1",
)


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


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Trained and mapped run in a store, set as $DML_RUNS, with a waiting run and one with a damaged spec."""
    root = tmp_path_factory.mktemp("runs")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DML_RUNS", str(root))
        run = make_run(root, "schedule.keep_every=4", "name=<b>name</b> $x$ ![](x)")
        maps.make(run)
        RunStore(root).create(RunSpec())
        (root / "damaged").mkdir()
        (root / "damaged" / "spec.json").write_text("[" * 100_000)
        yield run


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


def links(run: str) -> Iterator[tuple[str, dict[str, str]]]:
    """Yield a link to each page with a hostile value of every parameter, and all links to Settings."""
    values = itertools.cycle(VALUES)
    for page, names in PARAMETERS.items():
        query = {name: next(values) for name in names.split()}
        yield page, query | ({"run": run} if "run" in query else {})  # most of a page is reachable only with a run
    yield "fork", {"run": run, "step": "9" * 5000}
    yield from (("settings", {"base": "digits", "set": changes}) for changes in SETTINGS)


def test_no_hostile_link_ends_in_an_error_or_a_line_in_the_log(trained: Run) -> None:
    with logged() as log:
        for page, query in links(trained.id):
            with note_member((page, {name: value[:100] for name, value in query.items()})):
                app = load_page(page, **query)
                assert not app.exception
                assert not log.lines
