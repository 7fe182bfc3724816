"""Histories are cached by spec, share common parts of specs, and are bounded in bytes."""

from __future__ import annotations

from pages.shared.timeline.history_cache import HistoryCache
from tests.timeline.sums import Change, Spec, Sums

CHANGED = Spec(changes=(Change(4, 10),))


def test_one_spec_has_one_history_and_another_the_steps_of_the_one_most_alike():
    kept = HistoryCache(Sums)
    parent = kept.of(Spec())
    parent.frame(9)
    assert kept.of(Spec()) is parent
    child = kept.of(CHANGED)
    assert [mine is theirs for mine, theirs in zip(child.frames, parent.frames, strict=False)] == [True] * 4
    child.frame(9)
    third = kept.of(Spec(changes=(*CHANGED.changes, Change(8, 1))))
    assert third.frames[7] is child.frames[7]
    assert len(kept) == 3


def test_a_draft_shares_the_past_and_is_not_kept():
    kept = HistoryCache(Sums)
    kept.of(Spec()).frame(9)
    assert kept.of(CHANGED, draft=True).recorded == 3
    assert len(kept) == 1


def test_the_longest_unused_go_when_all_exceed_their_bytes():
    kept = HistoryCache(Sums, most=100)
    for start in range(4):
        kept.of(Spec(start)).frame(2)
    first = kept.of(Spec(0))
    kept.of(Spec(4))
    first.frame(4)  # 50 bytes, in addition to 30 bytes of each of the others
    assert kept.of(Spec(0)) is first
    assert kept.bytes() <= kept.most
    assert {history.spec.start for history in kept._kept} == {0, 3, 4}
