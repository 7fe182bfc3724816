"""HTML with the images of a query and its two neighbours, their distances, and strips of alternative neighbours."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from urllib.parse import urlencode

# A is a black disc (white in the dark theme), P a blue disc, N a vermilion square, as in the force field below.
STYLE = """<style>
.failure { display: grid; grid-template-columns: auto minmax(0, 1fr); gap: 10px 34px; font-size: 12.5px;
  line-height: 1.3; }
.failure .three { display: flex; align-items: flex-start; gap: 8px; }
.failure figure { margin: 0; width: 118px; }
.failure figcaption { margin-top: 4px; overflow-wrap: anywhere; }
.failure .frame { position: relative; display: block; box-sizing: border-box; width: 88px; height: 88px; padding: 2px;
  border: 3px solid currentColor; border-radius: 8px; background: rgb(128 128 128 / .10); }
.failure .positive .frame { border-color: var(--positive); }
.failure .negative .frame { border-color: var(--negative); border-style: dashed; border-radius: 0; }
.failure img { display: block; width: 100%; height: 100%; object-fit: contain; border-radius: 2px; }
.failure .mark { position: absolute; left: -10px; top: -10px; width: 23px; height: 23px; border-radius: 50%;
  color: #fff; font: bold 13px/23px sans-serif; text-align: center; background: #000; box-shadow: 0 0 0 1.5px #fff; }
.failure .positive .mark { background: var(--positive); }
.failure .negative .mark { background: var(--negative); border-radius: 2px; }
.failure .name { display: -webkit-box; -webkit-line-clamp: 2; -webkit-box-orient: vertical; overflow: hidden;
  font-weight: 600; }
.failure .number { opacity: .78; font-variant-numeric: tabular-nums; }
.failure .between { width: 60px; padding-top: 28px; text-align: center; font-variant-numeric: tabular-nums; }
.failure .between b { display: block; font-size: 15px; }
.failure .others { display: grid; grid-template-columns: 1fr; gap: 6px; align-content: start; min-width: 0; }
.failure .strip { display: flex; gap: 6px; align-items: flex-end; flex-wrap: wrap; }
.failure .strip .title { flex: 0 0 100%; }
.failure .strip a { box-sizing: border-box; display: block; width: 44px; height: 44px; padding: 1px;
  border: 2px solid rgb(128 128 128 / .4); border-radius: 5px; }
.failure .strip a:hover { border-color: var(--accent); }
.failure .strip a:focus-visible { outline: 3px solid var(--accent); outline-offset: 1px; }
.failure .strip a[aria-current] { border: 3px solid var(--positive); }
.failure .strip.negative a { border-radius: 0; }
.failure .strip.negative a[aria-current] { border: 3px dashed var(--negative); }
.failure .strip .gap { align-self: center; opacity: .7; }
@media (max-width: 1080px) { .failure { grid-template-columns: minmax(0, 1fr); } }
@media (max-width: 520px) { .failure .three { gap: 3px; } .failure figure, .failure .frame { width: 84px; }
  .failure .frame { height: 84px; } .failure .between { width: 46px; padding-top: 30px; font-size: 11px; } }
</style>"""


@dataclass(frozen=True)
class Sample:
    """Member of the triplet: data set index, class name, and rank in the query's list (None for the query itself)."""

    index: int
    name: str
    rank: int | None = None


@dataclass(frozen=True)
class Others:
    """Neighbours that the user can choose instead of P or N, each as (data set index, caption).

    Attributes:
        role: Neighbour that they replace.
        first: The nearest neighbours.
        last: The farthest neighbours, shown after a gap.
    """

    role: str  # right | wrong
    title: str
    first: Sequence[tuple[int, str]]
    last: Sequence[tuple[int, str]]


def html(
    three: Sequence[Sample],
    distances: dict[str, float],
    others: Sequence[Others],
    image: str,
    link: Callable[[str, int], str],
) -> str:
    """Return HTML with the images of the triplet, d(A,P) and d(A,N), and a strip of links for each of `others`.

    Args:
        three: Query, correct neighbour and incorrect neighbour.
        distances: d(A,P) under the key "ap" and d(A,N) under "an".
        image: Base URL of the images, to which the data set index is appended.
        link: Returns the URL that shows a sample as the correct ("right") or incorrect ("wrong") neighbour.
    """
    a, p, n = three
    return (
        f'{STYLE}<div class="failure"><div class="three">{_figure(p, "positive", "P", "right neighbour", image)}'
        f"{_between('d(A,P)', distances['ap'])}{_figure(a, 'anchor', 'A', 'query', image)}"
        f"{_between('d(A,N)', distances['an'])}{_figure(n, 'negative', 'N', 'wrong neighbour', image)}</div>"
        f'<div class="others">{"".join(_strip(x, p.index, n.index, image, link) for x in others)}</div></div>'
    )


def _figure(sample: Sample, kind: str, letter: str, role: str, image: str) -> str:
    name = escape(sample.name)
    place = f"rank {sample.rank:,}" if sample.rank else f"sample {sample.index}"
    alt = escape(f"{role} {letter}: class {sample.name}, sample {sample.index}")
    return (
        f'<figure class="{kind}"><span class="frame"><img src="{escape(image)}{sample.index}" alt="{alt}">'
        f'<span class="mark" aria-hidden="true">{letter}</span></span><figcaption>{role}'
        f'<bdi class="name" title="{name}">{name}</bdi><div class="number">{place}</div></figcaption></figure>'
    )


def _between(name: str, distance: float) -> str:
    return f'<div class="between">{name}<b>{distance:.3f}</b></div>'


def _strip(others: Others, right: int, wrong: int, image: str, link: Callable[[str, int], str]) -> str:
    current = right if others.role == "right" else wrong

    def tile(index: int, words: str) -> str:
        now = ' aria-current="true"' if index == current else ""
        return (
            f'<a data-role="{others.role}" data-index="{index}"{now} href="{escape(link(others.role, index))}" '
            f'title="{escape(words)}"><img src="{escape(image)}{index}" alt="{escape(words)}" loading="lazy"></a>'
        )

    parts = [tile(*x) for x in others.first]
    parts += ['<span class="gap">…</span>', *(tile(*x) for x in others.last)] if others.last else []
    kind = "positive" if others.role == "right" else "negative"
    return f'<div class="strip {kind}"><span class="title">{escape(others.title)}</span>{"".join(parts)}</div>'


def address(run: str, query: int, right: int, wrong: int) -> str:
    """Return the relative URL that shows this triplet on the Failures page."""
    return f"?{urlencode({'run': run, 'query': query, 'right': right, 'wrong': wrong})}"
