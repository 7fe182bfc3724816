"""Formulas of the triplet losses, without margin and clamp, each a pure function of a `Triplet`.

The `Triplet` t provides edge lengths and squared norms. The code of each loss therefore reads like its formula and
works for points and for the distance table of a batch. Equation numbers are those of Karaman 2021 (METU MSc thesis).
"""

from __future__ import annotations

import math
from typing import Annotated

import torch
from torch import Tensor

from dmlcore.catalogue import Choice, Slider
from dmlcore.geometry import Triplet, power_potential
from dmlcore.losses.engine.formula import Clamp, Margin, triplet_loss

RATIO = "push over pull: how strongly negatives repel"
PULL = "pull is d^s: grows for s = 1 (FaceNet), constant for s = 0 (ranking), decays for s < 0 (potential fields)"


@triplet_loss(
    title="Original triplet",
    latex=r"\sigma(d_{ap}-d_{an})^2",
    source="Hoffer & Ailon 2015; Karaman 2021, Eq. 2.4",
    sentence="Softmax of the two distances. Pull and push are equal and at most 8/27.",
)
def hoffer(t: Triplet) -> Tensor:
    return torch.sigmoid(t.d_ap - t.d_an).square()


@triplet_loss(
    title="Ranking",
    latex=r"d_{ap}-d_{an}",
    source="Wang et al. 2014, Wu et al. 2017; Karaman 2021, Eq. 2.5",
    sentence="Constant pull and push of size one, until the negative is farther than the positive by the margin.",
    margin=Margin(0.1, -0.5, 2.5),
    separable=True,
    difference=True,
)
def ranking(t: Triplet) -> Tensor:
    return t.d_ap - t.d_an


@triplet_loss(
    title="FaceNet",
    latex=r"d_{ap}^2-d_{an}^2",
    source="Schroff et al. 2015; Karaman 2021, Eq. 2.7",
    sentence="Squared distances: both forces grow with distance, so far negatives are pushed hardest.",
    margin=Margin(0.1, 0.0, 4.5),
    separable=True,
)
def facenet(t: Triplet) -> Tensor:
    return t.d_ap**2 - t.d_an**2


@triplet_loss(
    title="FaceNet, semi-hard",
    latex=r"d_{ap}^2-d_{an}^2,\quad m_2=m",
    source="Schroff et al. 2015; Karaman 2021, Eq. 2.25",
    sentence="FaceNet clamped to the semi-hard negatives: farther than the positive, but within the margin.",
    margin=Margin(0.2, 0.01, 2.0, above=0.0),  # m is also the upper end of the clamp window [0, m]
    clamp=Clamp(to="m"),
    separable=True,
)
def facenet_mined(t: Triplet) -> Tensor:
    return facenet(t)


@triplet_loss(
    title="Ratio",
    latex=r"1-\frac{d_{an}}{d_{ap}+m}",
    source="Wohlhart & Lepetit 2015; Karaman 2021, Eq. 2.9",
    sentence="Compares distances by their ratio: the margin sits in the denominator and the pull weakens with it.",
    separable=True,
)
def ratio(
    t: Triplet,
    *,
    m: Annotated[float, Slider(0.001, 1.0, "m", "margin in the denominator", step=0.001, log=True, above=0.0)] = 0.01,
) -> Tensor:
    return 1 - t.d_an / (t.d_ap + m)


@triplet_loss(
    title="Angular",
    latex=r"d_{ap}^2-4\tan^2\!\rho\,\lVert n-\tfrac{a+p}{2}\rVert^2",
    source="Wang et al. 2017; Karaman 2021, Eq. 2.12",
    sentence="Pushes the negative from the midpoint of the pair until it is seen under an angle smaller than ρ.",
    margin=Margin(0.0, 0.0, 4.0),
    symmetric=True,
)
def angular(
    t: Triplet,
    *,
    rho: Annotated[float, Slider(0.05, 1.4, r"\rho", "angle at the negative, radians; singular at pi/2")] = 0.6,
) -> Tensor:
    tan2 = math.tan(rho) ** 2
    midpoint2 = (t.d_an**2 + t.d_pn**2) / 2 - t.d_ap**2 / 4  # |n - (a+p)/2|^2
    return t.d_ap**2 - 4 * tan2 * midpoint2


@triplet_loss(
    title="Moving in the right direction",
    latex=r"d_{ap}^2-d_{an}^2-\rho\,\frac{1-a^\top p}{d_{ap}\,d_{an}}",
    source="Dayal Mohan et al. 2020; Karaman 2021, Table 3.2 (Eq. 2.14 corrected)",
    sentence="FaceNet with a regulariser that, on the sphere, acts as a shift of the margin.",
    margin=Margin(0.2, 0.0, 1.0),
)
def moving(
    t: Triplet, *, rho: Annotated[float, Slider(0.0, 1.0, r"\rho", "weight of the regulariser")] = 0.3
) -> Tensor:
    # 0 on the unit sphere, where (1 - a.p) / d_ap equals d_ap / 2, which is finite at d_ap = 0
    w0 = 1 - (t.aa + t.pp) / 2
    inverse_ap, inverse_an = (-power_potential(d, -1, floor=1e-6) for d in (t.d_ap, t.d_an))
    k_over_d_ap = w0 * inverse_ap + t.d_ap / 2
    return t.d_ap**2 - t.d_an**2 - rho * k_over_d_ap * inverse_an


@triplet_loss(
    title="Lifted structure",
    latex=r"d_{ap}+\log\!\left(e^{-d_{an}}+e^{-d_{pn}}\right)",
    source="Song et al. 2016; Karaman 2021, Eq. 2.17",
    sentence="The nearer end of the pair takes the larger share of a total push that equals the pull.",
    margin=Margin(1.0, -0.5, 2.0),
    symmetric=True,
)
def lifted(t: Triplet) -> Tensor:
    return t.d_ap + torch.logaddexp(-t.d_an, -t.d_pn)


@triplet_loss(
    title="N-pairs",
    latex=r"\log\!\left(1+e^{a^\top n-a^\top p}\right)",
    source="Sohn 2016; Karaman 2021, Eq. 2.21",
    sentence="Compares inner products: off the unit sphere it also moves points along their own radius.",
)
def npairs(t: Triplet) -> Tensor:
    an_minus_ap = (t.nn - t.pp + t.d_ap**2 - t.d_an**2) / 2  # a.n - a.p
    return torch.nn.functional.softplus(an_minus_ap)


@triplet_loss(
    title="Entangled",
    latex=r"\tfrac12\left(d_{ap}^2-d_{an}^2-d_{pn}^2\right)",
    source="Karaman 2021, Eq. 3.8 (second line)",
    sentence="The negative repels both ends of the pair, with forces as long as the edges themselves.",
    margin=Margin(0.1, 0.0, 10.0, exponents=lambda _: (1.0, -1.0, 1.0)),
    symmetric=True,
)
def entangle(t: Triplet) -> Tensor:
    return (t.d_ap**2 - t.d_an**2 - t.d_pn**2) / 2


@triplet_loss(
    title="Location-aware entangled",
    latex=r"\tfrac12\left(d_{ap}^2-d_{an}^2-d_{pn}^2\right)+\tfrac12\left(|a|^2+|p|^2+c\,|n|^2\right)",
    source="Karaman 2021, Eq. 3.10-3.12 (printed: c = 3; stated rule: c = 1)",
    sentence="Entangled, with every point also drawn to the origin; on the unit sphere only the margin changes.",
    margin=Margin(0.1, -3.0, 3.0),
    symmetric=True,
)
def location_aware(
    t: Triplet,
    *,
    variant: Annotated[
        str, Choice(("printed", "rule"), "c", "c = 3 as printed (Eq. 3.12), c = 1 by the stated rule")
    ] = "printed",
) -> Tensor:
    c = 3 if variant == "printed" else 1
    return (t.d_ap**2 - t.d_an**2 - t.d_pn**2) / 2 + (t.aa + t.pp + c * t.nn) / 2


@triplet_loss(
    title="Modified entangled",
    latex=r"d_{ap}-\rho\,(d_{an}+d_{pn})",
    source="Karaman 2021, Eq. 3.14",
    sentence="Constant forces along all three edges; the active region is an ellipse about the pair.",
    margin=Margin(1.3, 0.0, 10.0, exponents=lambda hyper: (0.0, 0.0, float(hyper["rho"]))),
    symmetric=True,
)
def modified_entangle(
    t: Triplet, *, rho: Annotated[float, Slider(0.1, 4.0, r"\rho", RATIO, above=0.0)] = 1.0
) -> Tensor:
    return t.d_ap - rho * (t.d_an + t.d_pn)


@triplet_loss(
    title="Distance-sensitive (METU)",
    latex=r"\frac{d_{ap}^{s+1}}{s+1}-\rho\left(\frac{d_{an}^{1-r}}{1-r}+\frac{d_{pn}^{1-r}}{1-r}\right)",
    source="Karaman 2021, Eq. 3.17-3.18",
    sentence="Charges in a medium of negative permittivity: pull dˢ along the pair, push ρ/dʳ from the negative.",
    # the best test score of Table 4.12
    margin=Margin(
        *(-2.325, -6.0, 6.0),
        name="m1",
        help="margin m1: larger keeps farther triplets active; data: chosen from the first batch of a run",
        exponents=lambda hyper: (float(hyper["s"]), float(hyper["r"]), float(hyper["rho"])),
        tuned_on="cub",
    ),
    clamp=Clamp(default=5.0, slider=True, tuned_on="cub"),
    symmetric=True,
)
def distance_sensitive(
    t: Triplet,
    *,
    s: Annotated[float, Slider(-3.0, 3.0, "s", PULL, step=0.05)] = 1.0,
    r: Annotated[float, Slider(-1.0, 4.0, "r", "push falls as 1/d^r", step=0.05)] = 2.0,
    rho: Annotated[float, Slider(0.1, 4.0, r"\rho", RATIO, above=0.0)] = 1.0,
) -> Tensor:
    pull = power_potential(t.d_ap, s + 1, floor=1e-6)
    push = power_potential(t.d_an, 1 - r, t.floor) + power_potential(t.d_pn, 1 - r, t.floor)
    return pull - rho * push
