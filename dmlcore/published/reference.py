"""Reference of every loss: declaration, gradients, invariances and published results.

Everything is read from the catalogue or computed, so that a new loss of the catalogue gets its page automatically.
Closed forms of gradients come from `gradients.CLOSED_FORMS`, if present. `python -m dmlcore.published.reference` prints
docs/losses.md.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor

from dmlcore import losses
from dmlcore.catalogue import Slider
from dmlcore.loss_analysis.normalised import Normalised, normalisation
from dmlcore.losses import TripletLoss
from dmlcore.published import karaman, pair_weight_table
from dmlcore.published.gradients import CLOSED_FORMS, ClosedForm

HOLDS = 1e-9  # largest relative deviation at which a property is considered to hold


@dataclass(frozen=True)
class Invariances:
    """Invariances of a loss without margin and clamp, measured on random triplets in 2-D, 3-D and 128-D.

    Attributes:
        rotation: Largest relative deviation under rotations and reflections.
        translation: Largest relative deviation under translations.
        exchange: Largest relative deviation when anchor and positive are exchanged.
        degree: The loss scales as |x|^degree; None if it is not homogeneous.
        sphere: Properties of the loss on unit vectors.
    """

    rotation: float
    translation: float
    exchange: float
    degree: float | None
    sphere: Normalised

    @property
    def rows(self) -> list[tuple[str, bool, str]]:
        """Rows of a table of properties: the property as text, True if it holds, and the measured result as text."""
        exact = ("changes", "exact to rounding")
        along, on_sphere = self.sphere.residual < HOLDS, self.sphere.residual_tangential < HOLDS
        held = [
            (f"unchanged when {what}", deviation < HOLDS, exact[deviation < HOLDS])
            for what, deviation in (
                ("all points are rotated or reflected", self.rotation),
                ("all points are shifted (gradients sum to zero)", self.translation),
                ("anchor and positive are exchanged", self.exchange),
            )
        ]
        degree = "no single power" if self.degree is None else f"degree {self.degree:g}"
        left = "no residual" if along else f"up to {self.sphere.residual:.0%} of a gradient is along no edge"
        radial = "the residual is radial: normalisation removes it" if on_sphere and not along else "no residual"
        return [
            *held,
            ("core homogeneous under scaling of all points", self.degree is not None, degree),
            ("forces along the edges of the triangle", along, left),
            (
                "forces along the edges on the unit sphere, tangentially",
                on_sphere,
                radial if on_sphere else f"residual up to {self.sphere.residual_tangential:.0%}",
            ),
        ]


@dataclass(frozen=True)
class PublishedResults:
    """Summary of the published rows of a loss on one data set: their number, and the best by R@1 and by MAP@R."""

    dataset: str
    count: int
    by_recall: karaman.LossRow
    by_precision: karaman.LossRow

    @property
    def best(self) -> list[tuple[str, karaman.LossRow]]:
        """The best rows with the columns that they lead; a single entry if both are the same row."""
        if self.by_recall is self.by_precision:
            return [("R@1, MAP@R", self.by_recall)]
        return [("R@1", self.by_recall), ("MAP@R", self.by_precision)]


@dataclass(frozen=True)
class Reference:
    """One loss of the catalogue: its declaration, closed form (if known), invariances and results."""

    formula: losses.TripletFormula
    closed_form: ClosedForm | None
    invariances: Invariances
    tried: dict[str, tuple[float, ...]]
    results: tuple[PublishedResults, ...]

    @property
    def energy(self) -> str:
        """LaTeX of the energy before the clamp, with its margin."""
        return self.formula.energy_latex

    @property
    def clamp_off(self) -> str:
        """Sentence that states the smallest margin at which the lower clamp never acts on the unit sphere."""
        sphere = self.invariances.sphere
        if sphere.margin_off is None:
            least = f"The least energy on the unit sphere is {sphere.least.value:.4g}"
            return f"{least}: no triplet is ever satisfied." if sphere.clamp_is_off else f"{least}."
        if math.isinf(sphere.margin_off):
            return "No margin keeps every triplet of unit vectors active: the core falls without bound."
        given = ", ".join(
            f"{_letter(k)} = {_plain(v)}" for k, v in self.formula.defaults.items() if _shapes(self.formula, k)
        )
        at = f" (at {given})" if given else ""
        return (
            f"On the unit sphere {sphere.margin_name} = {sphere.margin_off:.4f} is the smallest margin "
            f"that keeps every triplet above zero{at}."
        )


@cache
def reference(name: str) -> Reference:
    """Return the reference of a loss with its default hyper-parameters.

    Raises:
        KeyError: If the loss is unknown; the message lists the known names.
    """
    formula = losses.formula(name)
    results = [
        PublishedResults(dataset, len(rows), karaman.best(rows, "R@1"), karaman.best(rows, "MAP@R"))
        for dataset in karaman.DATASETS
        if (rows := karaman.of_loss(name, dataset))
    ]
    return Reference(
        formula, CLOSED_FORMS.get(name), invariances(losses.create(name)), karaman.tried(name), tuple(results)
    )


def invariances(loss: TripletLoss, count: int = 64) -> Invariances:
    """Measure the invariances of a loss on `count` random triplets each in 2, 3 and 128 dimensions."""
    deviations = torch.zeros(3, dtype=torch.float64)
    degrees = []
    for dimension in (2, 3, 128):
        generator = torch.Generator().manual_seed(dimension)

        def draw(*shape: int, generator: torch.Generator = generator) -> Tensor:
            return torch.randn(*shape, dtype=torch.float64, generator=generator)

        triplet = draw(3, count, dimension) / math.sqrt(dimension)
        turn = torch.linalg.qr(draw(dimension, dimension)).Q
        core = loss.core(*triplet)
        others = (
            loss.core(*(triplet @ turn.T)),
            loss.core(*(triplet + draw(dimension))),
            loss.core(triplet[1], triplet[0], triplet[2]),
        )
        changed = torch.stack([(other - core).abs().max() / core.abs().max() for other in others])
        deviations = torch.maximum(deviations, changed)
        degrees.append(_degrees(loss, triplet, core))
    degree = torch.cat(degrees)
    spread = float((degree - degree.mean()).abs().max()) if bool(degree.isfinite().all()) else math.inf
    rotation, translation, exchange = deviations.tolist()
    return Invariances(
        rotation, translation, exchange, round(float(degree.mean()), 6) if spread < 1e-6 else None, normalisation(loss)
    )


def _degrees(loss: TripletLoss, triplet: Tensor, core: Tensor) -> Tensor:
    """Return log(f(k x) / f(x)) / log k with f = loss.core, for every triplet x and k = 1/2, 2, 3.

    The result is NaN where the sign changes.
    """
    return torch.cat([(loss.core(*(k * triplet)) / core).log() / math.log(k) for k in (0.5, 2.0, 3.0)])


def _shapes(formula: losses.TripletFormula, key: str) -> bool:
    """Return True if a hyper-parameter changes the loss itself, and not only its margin or clamp."""
    return key in formula.own and key != "m"


def _plain(value: float | str) -> str:
    if isinstance(value, str):
        return value
    return "∞" if math.isinf(value) else "12/7" if abs(value - 12 / 7) < 1e-9 else f"{value:g}"


def _letter(name: str) -> str:
    return "ρ" if name == "rho" else name


def hyper_text(row: karaman.LossRow) -> str:
    """Return the hyper-parameters of a published row as text."""
    given = ", ".join(f"{_letter(k)}={_plain(v)}" for k, v in row.hyper.items()) or "no hyper-parameter"
    return given + (", without clamp" if row.unhinged else "")


def parameter_rows(formula: losses.TripletFormula) -> list[tuple[str, str, str, str, str]]:
    """Return symbol (LaTeX), name, range, default and meaning of each hyper-parameter with a control on the pages."""
    rows = []
    for name, parameter in formula.sliders.items():
        span = (
            f"{parameter.low:g} to {parameter.high:g}{' or ∞' if parameter.optional else ''}"
            if isinstance(parameter, Slider)
            else ", ".join(parameter.options)
        )
        tuned = parameter.tuned_on if isinstance(parameter, Slider) else ""
        meaning = f"{parameter.help} (default tuned on {tuned})" if tuned else parameter.help
        rows.append((parameter.symbol, name, span, _plain(formula.defaults[name]), meaning))
    return rows


def tried_text(reference: Reference) -> str:
    """Return the values that Karaman 2021 tried, grouped by hyper-parameter, as text; empty if there are none."""
    return "; ".join(f"{_letter(k)}: {', '.join(map(_plain, values))}" for k, values in reference.tried.items())


# ---- docs/losses.md


def markdown() -> str:
    """Return the reference of all losses as one Markdown page."""
    head = [
        "# Losses",
        "",
        "Generated by `python -m dmlcore.published.reference > docs/losses.md`; do not edit. Invariances are computed "
        "for the default hyper-parameters. $u_{xy}=(x-y)/d_{xy}$, and 0 where x = y. A loss is its energy clamped to "
        "$[0, m_2]$; gradients are those of the energy before the clamp and hold where it is active.",
        "",
        f"Published results: Karaman 2021, Tables 4.1-4.14, in per cent. {karaman.NOISE}",
    ]
    sections = (line for name in losses.names() for line in _section(reference(name)))
    return "\n".join([*head, *pair_weight_table.lines(), *sections]) + "\n"


def _section(r: Reference) -> list[str]:
    lines = ["", f"## {r.formula.title} (`{r.formula.name}`)", "", r.formula.sentence, "", f"$$E = {r.energy}$$", ""]
    lines += [f"Source: {r.formula.source}.", ""]
    if parameters := parameter_rows(r.formula):
        lines += ["| parameter | name | range | default | meaning |", "|:--|:--|:--|--:|:--|"]
        lines += [f"| ${s}$ | `{name}` | {span} | {default} | {help} |" for s, name, span, default, help in parameters]
        lines.append("")
    # Gradients and edge forces, if they have a closed form.
    if r.closed_form:
        where = f"with ${r.closed_form.where}$" if r.closed_form.where else ""
        lines += ["| gradient on the | |", "|:--|:--|"]
        lines += [
            f"| {point} | ${latex}$ |"
            for point, latex in zip(("anchor", "positive", "negative"), r.closed_form.gradient_latex, strict=True)
        ]
        lines += ["", "| along the edge | |", "|:--|:--|"]
        lines += [
            f"| {edge} | ${latex}$ |"
            for edge, latex in zip(("a-p (pull)", "a-n (push)", "p-n (push)"), r.closed_form.laws_latex, strict=True)
        ]
        if r.closed_form.residual:
            lines.append(f"| off the edges | ${r.closed_form.residual}$ |")
        lines += ["", *([where + ".", ""] if where else [])]
    # Measured invariances, and the effect of removing the clamp.
    lines += ["| property | holds | |", "|:--|:-:|:--|"]
    lines += [f"| {what} | {'yes' if holds else 'no'} | {number} |" for what, holds, number in r.invariances.rows]
    lines += ["", " ".join(filter(None, (r.clamp_off, r.closed_form.remark if r.closed_form else "")))]
    # Values tried and results published in the thesis.
    if r.tried:
        lines += ["", f"Tried in the thesis: {tried_text(r)}."]
    if r.results:
        lines += [
            "",
            "| data | rows | best by | R@1 | MAP@R | hyper-parameters | table |",
            "|:--|--:|:--|--:|--:|:--|:--|",
        ]
        for row_set in r.results:
            lines += [
                f"| {row_set.dataset} | {row_set.count} | {column} | {row.scores['R@1']:.2f} | "
                f"{row.scores['MAP@R']:.2f} | "
                f"{hyper_text(row)} | {row.table} |"
                for column, row in row_set.best
            ]
    return lines


if __name__ == "__main__":
    print(markdown(), end="")
