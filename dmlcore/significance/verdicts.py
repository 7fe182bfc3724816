"""Verdicts on scores, given baselines and noise; every table and chart uses this module.

A difference is significant if a two-sided t test over the seeds, paired if both sides have the same seeds, gives p <
0.05 after the correction of Benjamini and Hochberg (1995) for the number of comparisons made together. The noise of a
single seed is unknown, so no difference of single seeds is significant; only a significant difference is called a lead.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dmlcore.significance.noise import Gap, Separation, Values, clear, gap, mean_and_deviation, separation, spread, top
from dmlcore.significance.power import FEASIBLE

__all__ = [
    "CLEARLY",
    "NAMES",
    "Gap",
    "Separation",
    "Values",
    "Verdict",
    "baselines",
    "clear",
    "contrasts",
    "describe_pair",
    "gap",
    "join_names",
    "mean_and_deviation",
    "separation",
    "spread",
    "top",
    "verdict",
]
CLEARLY = (
    "Significant: p < 0.05 in a t test over the seeds, paired if both sides have the same seeds, corrected for the "
    "number of comparisons (Benjamini–Hochberg)."
)
NAMES = {  # baseline -> its name in sentences, in display order
    "inputs": "the raw inputs",
    "untrained": "the untrained network",
    "pretrained": "the pretrained network",
    "features": "the frozen features",
    "pca_whitened": "the PCA-whitened features",
    "whitened": "the whitened features",
    "chance": "chance",
}
UNDECIDED = "no significant difference"
NO_RANKING = " They are not ranked, because too few end significantly above this baseline."
MOST_NAMED = 4  # maximum number of variants named in one sentence


@dataclass(frozen=True)
class Verdict:
    """Verdict on some variants in sentences, the most important first; "" and () if there are no scores."""

    headline: str
    more: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """All sentences in one line."""
        return " ".join([self.headline, *self.more]).strip()


def baselines(rows: Iterable[Mapping[str, Any]], *, started: bool) -> dict[str, dict[str, float]]:
    """Collect the baselines of a run as baseline -> score -> value in 0..1.

    Scores are map_at_r and recall_at_1 on the test split, and those on other splits with the prefix "validation." or
    "train.".

    Args:
        rows: Rows of metrics.jsonl.
        started: True if the initial weights were loaded; the network before its first step is then named "pretrained"
            instead of "untrained".
    """
    by_kind: dict[str, dict[str, float]] = {}
    for row in rows:
        subject = "pretrained" if started and row.get("of") == "untrained" else row.get("of", "")
        if row.get("kind") == "scores" and row["of"] in NAMES:
            scores = {"map_at_r": row["map_at_r"], "recall_at_1": row["recall_at"].get("1")}
            by_kind.setdefault(subject, {}).update({k: float(v) for k, v in scores.items() if v is not None})
        elif row.get("kind") == "baseline":
            prefix = "" if row["part"] == "test" else f"{row['part']}."
            numbers = {k: v for k, v in row.items() if k not in ("kind", "of", "part", "step") and v is not None}
            by_kind.setdefault(subject, {}).update({f"{prefix}{k}": float(v) for k, v in numbers.items()})
    return by_kind


def verdict(
    variants: Mapping[str, Values],
    against: Mapping[str, Mapping[str, Values]],
    *,
    things: str = "variants",
    measure: str = "MAP@R",
    further: bool = True,
) -> Verdict:
    """Compare the scores of variants with their baselines and with each other.

    Args:
        variants: Variant -> seed -> score in 0..1.
        against: Baseline, named as in NAMES -> variant -> seed -> score.
        things: Plural noun for the variants.
        measure: Displayed name of the score.
        further: True if seeds are independent runs, so that a lead and the number of seeds needed may be stated.
    """
    variants = {name: values for name, values in variants.items() if values}
    if not variants:
        return Verdict("")
    order = sorted(variants, key=lambda name: -statistics.fmean(variants[name].values()))
    seeds = min(len(values) for values in variants.values())
    bar = _bar(variants, against)
    sentences, learned = [], len(order)
    if bar:
        sentence, learned = _compare_with_bar(variants, bar, against, things, measure)
        sentences.append(sentence)
    if seeds < 2:
        sentences.append(_unknown_noise(variants))
    elif len(order) > 1:
        if bar and learned < 2:
            sentences[-1] += NO_RANKING
        sentences += _ranked({name: variants[name] for name in order}, things, further)
    return Verdict(sentences[0], tuple(sentences[1:])) if sentences else Verdict("")


def _unknown_noise(variants: Mapping[str, Values]) -> str:
    """Return a sentence on the unknown noise of variants that have a single seed."""
    if len(variants) == 1:
        return "With a single seed, the noise is unknown."
    single = sum(len(values) < 2 for values in variants.values())
    if single == len(variants):
        return "With a single seed each, the noise is unknown, so they cannot be ranked."
    whose = "has" if single == 1 else "have"
    return f"{single} of them {whose} a single seed, so the noise is unknown and not all can be ranked."


def contrasts(asked: Sequence[tuple[Values, Values]], lower: Sequence[bool]) -> list[str]:
    """Return for each pair of scores "yes" or "no" if the first is significantly better or worse, else UNDECIDED.

    The pairs are tested together. `lower[i]` is True if lower scores are better in pair i.
    """
    gaps = [gap(*values) for values in asked]
    return [
        ("yes" if (sentences.mean < 0) == less else "no") if sure else UNDECIDED
        for sentences, sure, less in zip(gaps, clear(gaps), lower, strict=True)
    ]


def describe_pair(names: tuple[str, str], values: tuple[Values, Values], baseline: str) -> str:
    """Describe the means of two variants and their difference, after a label such as "test MAP@R", without a verdict.

    `baseline` is the label.
    """
    (first, second), (one, two) = names, values
    return f"{baseline}: {_mean(one)} % ({first}) against {_mean(two)} % ({second}), difference {gap(one, two).words}"


def join_names(names: Sequence[str]) -> str:
    """Join names for a sentence and abbreviate long lists; separate names that contain a comma with semicolons."""
    if len(names) == 1:
        return names[0]
    shown = [*names] if len(names) <= MOST_NAMED else [*names[: MOST_NAMED - 1], f"{len(names) - MOST_NAMED + 1} more"]
    comma = "; " if any("," in name for name in shown) else ", "
    return f"{comma.join(shown[:-1])} and {shown[-1]}"


def _mean(values: Values) -> str:
    return spread(*mean_and_deviation(values.values()))


def _bar(variants: Mapping[str, Values], against: Mapping[str, Mapping[str, Values]]) -> str:
    """Return the baseline to beat: among those that all variants have, the one with the highest mean; "" if none."""
    whole = [name for name in NAMES if name in against and all(against[name].get(variant) for variant in variants)]
    means = {
        name: statistics.fmean(statistics.fmean(against[name][variant].values()) for variant in variants)
        for name in whole
    }
    return max(means, key=lambda name: means[name], default="")


def _compare_with_bar(
    variants: Mapping[str, Values], bar: str, baselines: Mapping[str, Mapping[str, Values]], things: str, measure: str
) -> tuple[str, int]:
    """Return a sentence that compares the variants with the baseline `bar`, and how many are significantly above it."""
    gaps = [gap(values, baselines[bar][name]) for name, values in variants.items()]
    sure = clear(gaps)
    above, count = sum(each.mean > 0 for each in gaps), len(gaps)
    surely = sum(s and each.mean > 0 for s, each in zip(sure, gaps, strict=True))
    surely_below = sum(s and each.mean < 0 for s, each in zip(sure, gaps, strict=True))
    others = [
        f", {NAMES[name].removeprefix('the ')} {_height(seeds, variants)} %"
        for name, seeds in baselines.items()
        if name != bar and all(seeds.get(variant) for variant in variants)
    ]
    level = f"{measure}: {NAMES[bar].removeprefix('the ')} {_height(baselines[bar], variants)} %{''.join(others)}"
    below = count - above
    many, sign, certain = (below, "below", surely_below) if below >= above else (above, "above", surely)
    who = f"All {count} {things} end" if many == count > 1 else f"{many} of {count} {things} end"
    who = f"{next(iter(variants))} ends" if count == 1 else who
    tested = any(each.p is not None for each in gaps)
    if tested and certain == many:
        words = f"{who} significantly {sign} {NAMES[bar]}"
    else:
        words = f"{who} {sign} {NAMES[bar]}"
        if tested:
            words += f", {certain or 'none'} of them significantly" if many > 1 else ", but not significantly"
    return f"{words} ({level}).", surely


def _height(baseline: Mapping[str, Values], variants: Iterable[str]) -> str:
    """Format the mean of a baseline in percent, or its range over these variants."""
    heights = [statistics.fmean(baseline[name].values()) for name in variants]
    digits = 1 if max(heights) >= 0.1 else 2
    return " to ".join(dict.fromkeys((f"{100 * min(heights):.{digits}f}", f"{100 * max(heights):.{digits}f}")))


def _ranked(variants: Mapping[str, Values], things: str, further: bool) -> list[str]:
    """Describe which differences in the ranking of the variants, given best first, are significant."""
    names = list(variants)
    _, *tied = top(variants)
    apart = separation(variants) if len(names) > 2 else None
    noise = [apart.words] if apart else []
    if len(tied) == len(names) - 1:
        comma = "; " if any("," in name for name in names[:MOST_NAMED]) else ", "
        shown = comma.join(f"{name} ({_mean(variants[name])} %)" for name in names[:MOST_NAMED])
        more = f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else ""
        head = f"No significant difference between the {things}: {shown}{more}, {_seeds(variants)}."
        return [head, *(_describe_seeds_needed(variants, names[0], names[-1]) if further else []), *noise]
    if tied:
        head = (
            f"No significant difference among the best {things}: {join_names([names[0], *tied])} ({_seeds(variants)})."
        )
        noise = [*(_describe_seeds_needed(variants, names[0], tied[0]) if further else []), *noise]
    else:
        lead = gap(variants[names[0]], variants[names[1]])
        head = f"{names[0]} {'leads' if further else 'is above'} {names[1]}, the next, by {lead.words.lstrip('+')}."
    pairs = [gap(variants[a], variants[b]) for a, b in itertools.pairwise(names)]
    same = len(pairs) - sum(clear(pairs))
    near = f"In this ranking, {same} of {len(pairs)} differences between consecutive {things} are not significant."
    return [head, *noise, near] if len(pairs) > 1 and same else [head, *noise]


def _describe_seeds_needed(variants: Mapping[str, Values], first: str, second: str) -> list[str]:
    """Describe how many seeds would separate two variants; [] if the noise is unknown."""
    between = gap(variants[first], variants[second])
    if between.deviation is None:
        return []
    if not between.needed or between.needed > FEASIBLE:
        return [f"Even {FEASIBLE} seeds would not separate {first} from {second} ({between.words})."]
    return [f"Separating {first} from {second} ({between.words}) would take about {between.needed} seeds."]


def _seeds(variants: Mapping[str, Values]) -> str:
    counts = sorted({len(values) for values in variants.values()})
    return f"{counts[0]} seeds each" if len(counts) == 1 else f"{counts[0]} to {counts[-1]} seeds"
