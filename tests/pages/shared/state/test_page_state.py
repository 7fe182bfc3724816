"""The state of every page survives any link or message, and old links open what they opened before."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dmlcore import losses
from pages.inspection.explore.state import Look
from pages.inspection.failures.state import Home, RealScene
from pages.inspection.thresholds.state import ThresholdLook
from pages.library.errata.state import Example
from pages.losses.charges import state as charges
from pages.losses.charges.state import LAW, ChargesState, LawKind, Moved
from pages.losses.fields.compare.presets import PAIRS
from pages.losses.fields.compare.state import ComparisonView
from pages.losses.fields.pair_weights.state import SLIDES, PairWeightsView
from pages.losses.fields.sphere import state as sphere
from pages.losses.fields.sphere.state import SpherePoint, SphereScene
from pages.losses.toy_training.presets import PRESETS as TOYS
from pages.losses.toy_training.state import LossSide, SidesKind, Toy
from pages.pooling.gap_vs_gsp import state as gap_vs_gsp
from pages.pooling.gap_vs_gsp.state import PoolingStudy
from pages.pooling.prototypes.state import PrototypesView
from pages.pooling.transport import state as transport
from pages.pooling.transport.state import TransportState
from pages.shared.plane import state as plane
from pages.shared.plane.state import Scene
from pages.shared.state import page_state, untrusted
from pages.shared.state.page_state import PageState
from pages.shared.state.panel import Panels
from pages.shared.timeline.changes import Changes
from pages.training.runs.state import TableView
from tests.members import in_one_case
from tests.pages.conftest import load_page

HOME = Home(
    "ranking",
    untrusted.hyper("ranking", {"m": 0.3}),
    ((0.125, -0.5), (0.5, 0.25), (-0.75, 0.5)),
    (0.0, 0.0, 1.5),
    height=0.25,
    unit=1.0,
)
DEFAULTS: dict[str, PageState] = {
    "fields": Scene(),
    "compare": ComparisonView(),
    "sphere": SphereScene(),
    "pair_weights": PairWeightsView(),
    "charges": ChargesState(),
    "toy_training": Toy(),
    "gap_vs_gsp": PoolingStudy(),
    "transport": TransportState(),
    "prototypes": PrototypesView(),
    "errata": Example.at(4),
    "failures": RealScene.at(HOME),
    "explore": Look(),
    "thresholds": ThresholdLook(),
    "runs": TableView(),
}
# Links that pages have written, with their states: the first in full, the others as differences.
OLD = json.loads(
    (Path(__file__).parent / "old_links.json").read_text(), parse_float=lambda digits: round(float(digits), 9)
)

NASTY = ("nan", "1e999", "-inf", "\0", "../../etc/passwd", "x" * 100_000, "", "1,2", "<script>", "１", "0x10", "true")
NASTY += ("1,", ",", "9,-1", "1e9,1e9,1e9", "r,m", "ranking,:::,m:1e999", "5:m=nan;-1:m=1", ";;;", "angular," * 9000)
numbers = st.floats() | st.integers(-(10**40), 10**40) | st.floats(-3, 3)
anything = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=40),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=8,
)


def sensible(kind: page_state.Kind) -> st.SearchStrategy[Any]:
    """Return plausible values of a field, half of them out of range."""
    match kind:
        case page_state.Loss():
            return st.sampled_from([*kind.known()])
        case page_state.Hyper():
            names = {name for loss in losses.names() for name in losses.formula(loss).parameters}
            return st.dictionaries(st.sampled_from(sorted(names)), numbers | st.none() | st.just("relaxed"))
        case page_state.ChoiceKind():
            return st.sampled_from([*(kind.options() if callable(kind.options) else kind.options)])
        case page_state.Flag():
            return st.booleans()
        case Panels():
            each = st.fixed_dictionaries({"loss": sensible(page_state.Loss()), "hyper": sensible(page_state.Hyper())})
            return st.lists(each, max_size=5)
        case LawKind():
            return st.fixed_dictionaries({}, optional={name: sensible(each) for name, each in LAW.items()})
        case Moved():
            return st.lists(st.tuples(st.integers(-1, 400), numbers, numbers).map(list), max_size=4)
        case SidesKind():
            fields = {name: sensible(each) for name, each in LossSide.kinds.items()}
            return st.lists(st.fixed_dictionaries({}, optional=fields), max_size=3)
        case Changes():
            fields = {name: sensible(each) for name, each in kind.kinds.items()}
            return st.lists(st.fixed_dictionaries({"at": numbers | st.integers(0, 99)}, optional=fields), max_size=4)
        case page_state.NumberKind():
            return numbers | st.floats(kind.low, kind.high)
        case _:
            return st.lists(numbers, min_size=2, max_size=4)


def assert_within(name: str, kind: page_state.Kind, value: Any, state: Any) -> None:
    """Check that the field may have this value."""
    match kind:
        case page_state.Loss():
            assert value in kind.known(), name
        case page_state.Hyper():
            losses.create(state.loss, **value) if state.loss in losses.names() else losses.describe(state.loss)
            assert set(value) == set(losses.describe(state.loss).parameters)
        case page_state.ChoiceKind():
            assert value in (kind.options() if callable(kind.options) else kind.options), name
        case page_state.Flag():
            assert isinstance(value, bool), name
        case Panels():
            assert kind.fewest <= len(value) <= len(kind.defaults)
            for panel in value:
                assert set(panel.hyper) == set(panel.module().formula.parameters)
        case SidesKind():
            assert 1 <= len(value) <= 2
            for side in value:
                for inner, each in LossSide.kinds.items():
                    assert_within(inner, each, getattr(side, inner), side)
        case LawKind():
            for inner, each in LAW.items() if value else ():
                assert_within(inner, each, getattr(value, inner), value)
        case Changes():
            steps = [change.at for change in value]
            assert steps == sorted(steps)
            assert len(steps) <= kind.most
            assert all(0 <= at <= kind.most_steps for at in steps)
            for change in value:
                for inner, each in kind.kinds.items():
                    assert_within(inner, each, getattr(change, inner), change)
        case page_state.NumberKind():
            assert kind.low <= value <= kind.high, name
            assert isinstance(value, int) or not isinstance(kind, page_state.Whole), name
        case SpherePoint():
            assert -180 <= value[0] < 180
            assert -90 <= value[1] <= 90
        case page_state.WindowKind():
            assert 0.05 <= value[2] <= 50
        case page_state.Numbers():
            assert all(math.isfinite(x) and abs(x) <= kind.reach for x in value), name


def assert_valid(state: PageState) -> None:
    """Check that the values are within bounds and restored from JSON and, with the precision of links, from a link."""
    default = state.default()
    for name, kind in state.kinds.items():
        assert_within(name, kind, getattr(state, name), state)
    assert type(state).of(json.loads(json.dumps(state.to_json(), allow_nan=False)), default) == state
    query = state.to_query()
    assert type(state).from_query(query, default).to_query() == query
    assert dict(parse_qsl(state.link(), keep_blank_values=True)) == query


every_page = pytest.mark.parametrize("page", DEFAULTS)
fuzzed = settings(max_examples=15)  # per page; thirteen pages share these kinds of fields


def test_every_page_state_is_here() -> None:
    found, left = set(), [PageState]
    while left:
        left += (below := left.pop().__subclasses__())
        found |= {each for each in below if each.__module__.startswith("pages.") and each.kinds}
    assert found - {LossSide} == {type(state) for state in DEFAULTS.values()}


@every_page
def test_its_menus_are_words_that_travel_to_the_browser(page: str) -> None:
    for titles in json.loads(json.dumps(DEFAULTS[page].menus())).values():
        assert all(isinstance(title, str) for title in titles.values())


@every_page
def test_links_of_before_open_the_same_view(page: str) -> None:
    default = DEFAULTS[page]
    (_, first), *_ = OLD[page]
    for link, changes in OLD[page]:
        query = dict(parse_qsl(link, keep_blank_values=True))
        state = type(default).from_query(query, default if page == "failures" else None)
        found = json.loads(json.dumps(state.to_json()), parse_float=lambda digits: round(float(digits), 9))
        later = {name: value for name, value in state.default().to_json().items() if name not in first}
        assert found == first | changes | later, link  # fields added later have their defaults
        assert_valid(state)


@every_page
def test_the_default_needs_no_link(page: str) -> None:
    default = DEFAULTS[page]
    always = {kind.key or name for name, kind in default.kinds.items() if kind.always}
    first = {"margin"} if page == "fields" else set()  # an address without a query opens the normalised margin
    assert default.to_query().keys() <= {"erratum"} | always | first
    assert type(default).from_query({}, default) == default == type(default).of({}, default)


@every_page
@fuzzed
@given(data=st.data())
def test_any_message_gives_a_valid_state(page: str, data: st.DataObject) -> None:
    default = DEFAULTS[page]
    fields = {name: sensible(kind) | anything for name, kind in default.kinds.items()}
    message = data.draw(st.fixed_dictionaries({}, optional=fields | {"other": anything}) | anything)
    assert_valid(type(default).of(message, default))


@every_page
@fuzzed
@given(data=st.data())
def test_a_link_reopens_the_same_view(page: str, data: st.DataObject) -> None:
    default = DEFAULTS[page]
    fields = {name: sensible(kind) for name, kind in default.kinds.items()}
    assert_valid(type(default).of(data.draw(st.fixed_dictionaries({}, optional=fields)), default))


@every_page
def test_any_link_gives_a_valid_state(page: str) -> None:
    default = DEFAULTS[page]
    keys = {key for link, _ in OLD[page] for key, _ in parse_qsl(link)}
    for key in keys | {kind.key or name for name, kind in default.kinds.items()}:
        for text in NASTY:
            assert_valid(type(default).from_query({key: text}, default))


# ---- links of single pages


def test_an_open_clamp_survives_the_link_and_json() -> None:
    scene = Scene.of({"hyper": {"m2": None}})
    assert scene.hyper["m2"] == math.inf
    assert Scene.from_query(scene.to_query()) == scene
    assert scene.to_json()["hyper"]["m2"] is None


def test_margins_may_leave_the_slider_and_exponents_may_not() -> None:
    scene = Scene.from_query({"m1": "40", "r": "77"})
    assert scene.hyper["m1"] == 40
    assert scene.hyper["r"] == 4
    assert Scene.from_query({"m1": "1e9"}).hyper["m1"] == untrusted.MARGINS


def test_a_loss_beside_others_has_its_own_defaults_where_its_link_names_no_values() -> None:
    (first, second) = ComparisonView.from_query({"l1": "ranking", "l2": "distance_sensitive,m2:inf,r:0"}).panels
    assert first.hyper == losses.formula("ranking").defaults
    assert second.hyper["m2"] == math.inf
    assert second.hyper["r"] == 0


PRESETS = [pair.comparison() for pair in PAIRS]
for page, presets in (
    (PairWeightsView, SLIDES),
    (ChargesState, charges.PRESETS),
    (Toy, TOYS),
    (PoolingStudy, gap_vs_gsp.PRESETS),
    (TransportState, transport.PRESETS),
):
    PRESETS += [preset.state(page) for preset in presets]


@in_one_case(state=PRESETS)
def test_a_preset_is_a_state_that_its_link_reopens_to_the_last_bit(state: PageState) -> None:
    assert_valid(state)
    assert type(state).from_query(dict(parse_qsl(state.link()))) == state


# ---- initial state of an address without a query

FIRST: dict[str, PageState] = {
    "fields": plane.FIRST.state(Scene),
    "sphere": sphere.FIRST.state(SphereScene),
    "pair_weights": SLIDES[0].state(PairWeightsView),
    "charges": charges.PRESETS[0].state(ChargesState),
    "toy_training": TOYS[0].state(Toy),
    "gap_vs_gsp": gap_vs_gsp.PRESETS[0].state(PoolingStudy),
}
every_first = pytest.mark.parametrize("page", FIRST)


def shown(page: str, **query: str) -> Any:
    """Return the state that the component of the page receives for an address."""
    (handed,) = (json.loads(each.proto.json) for each in load_page(page, **query).get("bidi_component"))
    return next(handed[name] for name in ("scene", "view", "state") if name in handed)


def plain(state: PageState) -> Any:
    return json.loads(json.dumps(state.to_json()))


@every_first
def test_an_address_that_says_nothing_of_a_state_opens_the_first_picture_and_others_the_default(page: str) -> None:
    """The step of a run or a selection says something of a state."""
    default = plain(DEFAULTS[page])
    assert plain(FIRST[page]) != default
    for beside in ({}, {"hide": "presets", "socket": "off", "present": "1"}):
        assert shown(page, **beside) == plain(FIRST[page]), beside
    for query in (DEFAULTS[page].to_query(), {"step": "3"}):
        assert shown(page, **query) == default
