"""Facts about a figure that a lesson can ask for; the library measures them from the state of the figure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dmlcore.experiments import studies
from dmlcore.geometry import FieldTable, distance, field_table
from dmlcore.geometry.sphere import sphere_forces
from dmlcore.lessons.recordings import EnsembleShown, NeighboursShown, ProjectionsShown, ensemble
from dmlcore.lessons.stages import ChargesShown, Shown, StudyShown, TransportShown, TripletShown, bars_of
from dmlcore.pooling.analysis.red_blue import informative, mixture
from dmlcore.typing import Floats

STILL = 1e-6  # smaller norms and differences of forces are treated as 0, because they are rounding errors


@dataclass(frozen=True)
class Measurement:
    """Measured value of a fact, and a sentence with the numbers that support it."""

    value: str | float
    words: str


@dataclass(frozen=True)
class Fact:
    """Fact that can be measured on figures of one kind; `values` lists its possible values, or is () for a number."""

    sentence: str
    kind: type
    values: tuple[str, ...]
    measure: Callable[[Shown], Measurement]


FACTS: dict[str, Fact] = {}


def fact(
    name: str, kind: type, sentence: str, values: tuple[str, ...] = ()
) -> Callable[[Callable[..., Measurement]], Callable[..., Measurement]]:
    """Return a decorator that registers a function as a fact that can be measured on figures of the class `kind`."""

    def enter(measure: Callable[..., Measurement]) -> Callable[..., Measurement]:
        FACTS[name] = Fact(sentence, kind, values, measure)
        return measure

    return enter


# ---- a triplet
def _table(shown: TripletShown) -> FieldTable:
    return field_table(shown.loss, *shown.points)


def _edges(shown: TripletShown) -> tuple[float, float]:
    a, p, n = shown.points
    return float(distance(a, p)), float(distance(a, n))


@fact("nearer", TripletShown, "which of P and N is nearer to A", ("P", "N"))
def nearer(shown: TripletShown) -> Measurement:
    """Return which of P and N is nearer to A and is therefore retrieved first."""
    ap, an = _edges(shown)
    return Measurement("P" if ap < an else "N", f"d(A,P) = {ap:.2f}, d(A,N) = {an:.2f}.")


@fact("hardness", TripletShown, "what a miner calls the triplet", ("easy", "semi-hard", "hard", "dropped"))
def hardness(shown: TripletShown) -> Measurement:
    """Return the hardness of the triplet (Karaman 2021, Fig. 2.5); "dropped" if its energy is above the upper clamp."""
    (ap, an), raw = _edges(shown), float(shown.loss.raw(*shown.points))
    where = f"d(A,P) = {ap:.2f}, d(A,N) = {an:.2f}"
    if raw >= shown.loss.m2:
        return Measurement("dropped", f"{where}; the energy {raw:.2f} exceeds the upper clamp {shown.loss.m2:g}.")
    if raw <= 0:
        return Measurement("easy", f"{where}; the loss is 0.")
    name = "hard" if an < ap else "semi-hard"
    return Measurement(name, f"{where}; the loss is {raw:.2f}, above 0.")


@fact("force", TripletShown, "whether the triplet has a gradient", ("yes", "no"))
def force(shown: TripletShown) -> Measurement:
    """Return "yes" if the clamped loss has a gradient with respect to one of the three points, else "no"."""
    largest = max(float(f.norm()) for f in _table(shown).forces)
    return Measurement("yes" if largest > STILL else "no", f"The largest of the three forces is {largest:.2f}.")


@fact("window", TripletShown, "where the energy is", ("below 0", "inside", "above m₂"))
def window(shown: TripletShown) -> Measurement:
    """Return the position of the unclamped energy relative to the clamp window from 0 to m2, for example "inside"."""
    raw, m2 = float(shown.loss.raw(*shown.points)), shown.loss.m2
    name = "below 0" if raw <= 0 else "inside" if raw < m2 else "above m₂"
    return Measurement(name, f"The energy before the clamp is {raw:.2f}; the window is 0 to {m2:g}.")


@fact("stronger", TripletShown, "which is stronger, the pull A–P or the push A–N", ("pull", "push", "neither"))
def stronger(shown: TripletShown) -> Measurement:
    """Return the stronger force, "pull" along A–P or "push" along A–N, or "neither" if they are equal."""
    pull, push, _ = (float(x) for x in _table(shown).strengths)
    name = "neither" if abs(pull - push) < STILL else "pull" if pull > push else "push"
    return Measurement(name, f"The pull along A–P is {pull:.2f}, the push along A–N {push:.2f}.")


@fact("pull", TripletShown, "the pull along A–P")
def pull(shown: TripletShown) -> Measurement:
    """Return the derivative of the clamped energy with respect to d_ap."""
    value = float(_table(shown).strengths[0])
    return Measurement(value, f"The pull along A–P is {value:.2f}, over a distance of {_edges(shown)[0]:.2f}.")


@fact("push", TripletShown, "the push along A–N")
def push(shown: TripletShown) -> Measurement:
    """Return the negative derivative of the clamped energy with respect to d_an."""
    value = float(_table(shown).strengths[1])
    return Measurement(value, f"The push along A–N is {value:.2f}, over a distance of {_edges(shown)[1]:.2f}.")


@fact("largest force", TripletShown, "the largest of the three forces")
def largest_force(shown: TripletShown) -> Measurement:
    """Return the largest norm of the gradients with respect to the three points."""
    value = max(float(f.norm()) for f in _table(shown).forces)
    return Measurement(value, f"The largest of the three forces is {value:.3g}.")


@fact("loss", TripletShown, "the loss of the triplet")
def loss(shown: TripletShown) -> Measurement:
    """Return the loss, that is the energy after the clamp."""
    value = float(shown.loss.clamped(*shown.points))
    return Measurement(value, f"The loss is {value:.2f}.")


@fact("removed", TripletShown, "the share of the force on N that normalisation removes")
def removed(shown: TripletShown) -> Measurement:
    """Return the radial share |radial component| / |force| of the force on the negative; 0 in the plane or without
    force.
    """
    if shown.on == "plane":
        return Measurement(0.0, "Points of the plane are not normalised: nothing is removed.")
    forces = sphere_forces(shown.loss, *shown.points)
    along, out = float(forces.tangential[2].norm()), abs(float(forces.radial[2]))
    whole = float(np.hypot(along, out))
    share = out / whole if whole > STILL else 0.0
    words = f"Of a force of {whole:.2f} on N, {out:.2f} points outwards or inwards and {along:.2f} along the surface"
    return Measurement(share, f"{words}: {100 * share:.0f} % is removed.")


@fact("along", TripletShown, "the force on N: its part along the sphere, in the plane all of it")
def along_surface(shown: TripletShown) -> Measurement:
    """Return the norm of the tangential component of the force on the negative; in the plane, of the whole force."""
    if shown.on == "plane":
        value = float(_table(shown).forces[2].norm())
        return Measurement(value, f"The force on N is {value:.2f}.")
    value = float(sphere_forces(shown.loss, *shown.points).tangential[2].norm())
    angle = float(np.degrees(2 * np.arcsin(min(1.0, _edges(shown)[1] / 2))))
    return Measurement(value, f"{angle:.0f}° from A the force on N along the surface is {value:.2f}.")


# ---- charges
@fact("alive", ChargesShown, "whether any triplet has a gradient", ("yes", "no"))
def alive(shown: ChargesShown) -> Measurement:
    """Return "yes" if any triplet at this step is inside the clamp window, else "no"."""
    share = shown.simulation.frame(shown.step).active
    return Measurement(
        "yes" if share > 0 else "no", f"At step {shown.step}, {100 * share:.3g} % of triplets are active."
    )


@fact("width", ChargesShown, "how far the points lie from their common mean")
def width(shown: ChargesShown) -> Measurement:
    """Return the root mean square distance of the points from their mean."""
    x = shown.simulation.frame(shown.step).positions
    value = float(np.sqrt(((x - x.mean(0)) ** 2).sum(1).mean()))
    return Measurement(
        value, f"At step {shown.step} the points lie {value:.3g} from their common mean (root mean square)."
    )


@fact("outlier force", ChargesShown, "the force on the point farthest from its class, over that on a typical point")
def outlier_force(shown: ChargesShown) -> Measurement:
    """Return the force on the point farthest from the mean of its class, divided by the median force on a point."""
    simulation = shown.simulation
    frame = simulation.frame(shown.step)
    farthest = int(np.linalg.norm(frame.positions - frame.means[simulation.labels], axis=1).argmax())
    sizes = np.linalg.norm(frame.force, axis=1)
    outlier, typical = float(sizes[farthest]), float(np.median(sizes))
    ratio = outlier / typical if typical > STILL else 0.0
    words = f"The force on the outlier is {outlier:.2f}, on a typical point {typical:.2f} (median)"
    return Measurement(ratio, f"{words}: {ratio:.2g} times as strong.")


# ---- pooling
def _on_informative(shown: TransportShown, pooling: int) -> float:
    inside = informative(mixture(shown.pixels)).ravel()
    return float(shown.gate.weights[pooling].numpy()[inside].sum())


@fact("average on the object", TransportShown, "the share of an average's weight on informative pixels")
def average_on_object(shown: TransportShown) -> Measurement:
    """Return the weight that global average pooling gives to informative pixels, which is their share of all pixels."""
    share = _on_informative(shown, 2)
    return Measurement(share, f"The average gives {100 * share:.0f} % of its weight to the informative pixels.")


@fact("selected on the object", TransportShown, "the share of the selection's weight on informative pixels")
def selected_on_object(shown: TransportShown) -> Measurement:
    """Return the weight that generalized sum pooling gives to informative pixels for this mu and epsilon."""
    share = _on_informative(shown, 1)
    return Measurement(share, f"The selection gives {100 * share:.1f} % of its weight to the informative pixels.")


# ---- recorded training runs
@fact("proxies apart", ProjectionsShown, "how far the proxies of a class lie apart")
def proxies_apart(shown: ProjectionsShown) -> Measurement:
    """Return the largest distance between two proxies of a class, averaged over the classes."""
    now = shown.now
    words = f"At step {now.step} the two farthest proxies of a class lie {now.apart:.3f} apart, on average"
    return Measurement(now.apart, f"{words}; the disc is 2 wide.")


@fact("cover", ProjectionsShown, "how far the worst sample of a class lies from its nearest proxy")
def cover(shown: ProjectionsShown) -> Measurement:
    """Return the largest distance of a sample from the nearest proxy of its class, averaged over the classes."""
    now = shown.now
    return Measurement(
        now.covering, f"At step {now.step} the worst sample of a class lies {now.covering:.3f} from its nearest proxy."
    )


@fact("projection", ProjectionsShown, "which projection this is, from 1")
def projection(shown: ProjectionsShown) -> Measurement:
    """Return the number of the current projection, counted from 1."""
    now = shown.now
    return Measurement(float(now.projection), f"Step {now.step} belongs to projection {now.projection}.")


@fact("nearest class", NeighboursShown, "which class the query is nearest to", ("its own", "another"))
def nearest_class(shown: NeighboursShown) -> Measurement:
    """Return "its own" if the class mean nearest to the query is that of its own class, else "another"."""
    now = shown.now
    words = f"With {now.exchanged} of {now.neighbours} neighbours exchanged the mean of class {now.nearest} is nearest"
    own = now.nearest == now.label
    return Measurement("its own" if own else "another", f"{words}; the query is of class {now.label}.")


@fact("moved", NeighboursShown, "how far the query has moved")
def moved(shown: NeighboursShown) -> Measurement:
    """Return the distance of the query from its position with the original neighbours, in a disc of radius 1."""
    now = shown.now
    words = f"With {now.exchanged} of {now.neighbours} neighbours exchanged the query has moved by {now.moved:.2f}"
    return Measurement(now.moved, f"{words}; the disc is 2 wide.")


MEMBERS = ensemble()[0].names


@fact("largest weight", EnsembleShown, "which loss has the largest weight", MEMBERS)
def largest_weight(shown: EnsembleShown) -> Measurement:
    """Return the member loss with the largest learned weight."""
    now = shown.now
    name = now.names[int(now.weights.argmax())]
    return Measurement(name, f"At step {now.step} the weights are {_each(now.names, now.weights)}.")


@fact("furthest below", EnsembleShown, "which loss lies furthest below its own mean", MEMBERS)
def furthest_below(shown: EnsembleShown) -> Measurement:
    """Return the member loss with the smallest ratio of its current loss to the mean of its losses so far."""
    now = shown.now
    name = now.names[int(now.relative.argmin())]
    return Measurement(name, f"At step {now.step} loss over mean is {_each(now.names, now.relative)}.")


@fact("smallest weight", EnsembleShown, "the smallest of the weights")
def smallest_weight(shown: EnsembleShown) -> Measurement:
    """Return the smallest learned weight."""
    now = shown.now
    name, value = now.names[int(now.weights.argmin())], float(now.weights.min())
    return Measurement(value, f"At step {now.step} it is that of {name}, {value:.3f}.")


@fact("sum of weights", EnsembleShown, "what the weights sum to")
def sum_of_weights(shown: EnsembleShown) -> Measurement:
    """Return the sum of the learned weights, which a penalty keeps near 1."""
    now = shown.now
    value = float(now.weights.sum())
    return Measurement(value, f"At step {now.step} the weights sum to {value:.3f}.")


def _each(names: Sequence[str], values: Floats) -> str:
    return ", ".join(f"{value:.2f} ({name})" for name, value in zip(names, values, strict=True))


# ---- measured training runs
@fact("below the inputs", StudyShown, "how many end below raw inputs", ("all", "most", "few", "none"))
def below_inputs(shown: StudyShown) -> Measurement:
    """Classify how many variants have a mean test MAP@R below the raw inputs: "all", "most", "few" or "none"."""
    values, levels = bars_of(shown)
    level, means = levels["inputs"], {name: float(np.mean(scores)) for name, scores in values.items()}
    below, count = sum(mean < level for mean in means.values()), len(means)
    word = "none" if not below else "all" if below == count else "most" if 2 * below > count else "few"
    words = f"{below} of {count} end below the raw inputs, which reach {100 * level:.1f} % MAP@R"
    return Measurement(word, f"{words}; the best ends at {100 * max(means.values()):.1f} %.")


@fact("classes", StudyShown, "whether the classes that are tested were trained on", ("seen", "unseen"))
def classes(shown: StudyShown) -> Measurement:
    """Return "seen" if the study tests on the classes that it trains on, else "unseen"."""
    seen = studies.read(shown.study).base.data.split == "samples"
    words = "were trained on: only its samples are new" if seen else "were never trained on"
    return Measurement("seen" if seen else "unseen", f"The classes that this study tests {words}.")


@fact("gate above average", StudyShown, "points of MAP@R by which GSP lies above GAP")
def gate_above_average(shown: StudyShown) -> Measurement:
    """Return the mean MAP@R of GSP minus that of GAP in percentage points; NaN if the study lacks one of them."""
    return _lead(
        shown,
        ("GSP", "GAP"),
        "GSP reaches {:.1f} % MAP@R, GAP {:.1f} %: {:+.1f} points.",
        "This study does not compare GSP with GAP.",
    )


@fact("transductive above inductive", StudyShown, "points of MAP@R by which seeing the test samples helps")
def transductive_above_inductive(shown: StudyShown) -> Measurement:
    """Return MAP@R of the transductive minus that of the inductive LSTM, in points; NaN if the study lacks either."""
    return _lead(
        shown,
        ("LSTM, transductive", "LSTM, inductive"),
        "Transductive {:.1f} % MAP@R, inductive {:.1f} %: {:+.1f} points.",
        "This study has no conditioned embedding.",
    )


def _lead(shown: StudyShown, pair: tuple[str, str], words: str, missing: str) -> Measurement:
    """Return by how many points the mean MAP@R of the first variant exceeds that of the second."""
    values, _ = bars_of(shown)
    if not set(pair) <= set(values):
        return Measurement(float("nan"), missing)
    first, second = (100 * float(np.mean(values[name])) for name in pair)
    return Measurement(first - second, words.format(first, second, first - second))


def facts_of(kind: type) -> Mapping[str, Fact]:
    """Return the facts that can be measured on a kind of figure, by name."""
    return {name: each for name, each in FACTS.items() if each.kind is kind}
