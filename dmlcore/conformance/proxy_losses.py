"""Conformance cases of losses with one or several proxies or weight vectors per class."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor

from dmlcore.conformance.case import Computation, Outcome, evaluate_loss
from dmlcore.conformance.losses import case, catalogue
from dmlcore.conformance.printed import proxies
from dmlcore.conformance.vectors import BALANCED, UNEVEN, Vector

CENTRES = 2  # number of centres per class in the cases of SoftTriple and sub-centre ArcFace


def centres(vector: Vector) -> Tensor:
    """Return two centres for each class of a batch, ordered by class, shape (2 C, D) for C classes."""
    r = torch.arange(CENTRES * vector.classes, dtype=torch.float64)[:, None]
    d = torch.arange(vector.embeddings.shape[1], dtype=torch.float64)
    return (0.4 + 1.3 * r - 0.7 * d + 0.09 * r * d).cos()


def unit_weights(vector: Vector) -> Tensor:
    """Return the proxies of a batch, normalised to unit length."""
    return F.normalize(vector.proxies)


def beyond_pi() -> Vector:
    """Return a batch of two samples, one of which has an angle above π - m to the weight vector of its class.

    It is the golden vector arcface_beyond_pi of tests/golden/losses.json.
    """
    x = torch.tensor([[-1.0, -0.35, 0.05], [0.3, 0.9, 0.1]], dtype=torch.float64)
    w = torch.tensor([[1.0, 0.2, 0.0], [0.0, 1.0, 0.3]], dtype=torch.float64)
    return Vector("an angle beyond π - m", x, torch.tensor([0, 1]), w)


def of_proxies(
    formula: Callable[..., Tensor], *more: object, weights: Callable[[Vector], Tensor] | None = None, **options: object
) -> Computation:
    """Return a function that evaluates formula(x, y, w, *more, **options) and its gradients with respect to x and w."""

    def computed(v: Vector) -> Outcome:
        w = v.proxies if weights is None else weights(v)
        return evaluate_loss(lambda x, w: formula(x, v.names, w, *more, **options), v, w)

    return computed


PROXIES = (
    case(
        "proxy_nca",
        "Proxy-NCA",
        "Movshovitz-Attias et al. 2017",
        of_proxies(proxies.proxy_nca, 1.0),
        ours=catalogue("proxy_nca", temperature=0.5, denominator="others"),
        variants={"the own proxy is in the denominator too": of_proxies(proxies.proxy_nca, 1.0, own_below=True)},
    ),
    case(
        "normalised_softmax",
        "Normalised soft-max",
        "Zhai & Wu 2019; Teh et al. 2020",
        of_proxies(proxies.normalised_softmax, 0.11),
        ours=catalogue("proxy_nca", temperature=0.11),
    ),
    case(
        "proxy_anchor",
        "Proxy anchor",
        "Kim et al. 2020, Eq. 4",
        of_proxies(proxies.proxy_anchor, 32.0, 0.1),
        ours=catalogue("proxy_anchor"),
    ),
    case(
        "soft_triple",
        "Soft triple without its regulariser",
        "Qian et al. 2019, Eq. 6, 10 with τ = 0",
        of_proxies(proxies.soft_triple, CENTRES, 20.0, 0.1, 0.1, 0.0, weights=centres),
        ours=catalogue("soft_triple", weights=centres, centres=CENTRES, tau=0.0),
    ),
    case(
        "soft_triple_regularised",
        "Soft triple",
        "Qian et al. 2019, Eq. 10",
        of_proxies(proxies.soft_triple, CENTRES, 20.0, 0.1, 0.1, 0.2, weights=centres),
        ours=catalogue("soft_triple", weights=centres, centres=CENTRES, tau=0.2),
        variants={
            "1e-5 is added under the root": of_proxies(
                proxies.soft_triple, CENTRES, 20.0, 0.1, 0.1, 0.2, 1e-5, weights=centres
            )
        },
    ),
    case(
        "arcface",
        "ArcFace",
        "Deng et al. 2019, Eq. 3, and the authors' code beyond π - m",
        of_proxies(proxies.arcface, 28.6, 8.0),
        ours=catalogue("arcface", margin=28.6, scale=8.0),
        on=(BALANCED, UNEVEN, beyond_pi()),
    ),
    case(
        "sub_centre_arcface",
        "Sub-centre ArcFace",
        "Deng et al. 2020",
        of_proxies(proxies.arcface, 28.6, 8.0, CENTRES, weights=centres),
        ours=catalogue("sub_centre_arcface", weights=centres, margin=28.6, scale=8.0, centres=CENTRES),
    ),
    case(
        "cosface",
        "CosFace",
        "Wang et al. 2018",
        of_proxies(proxies.cosface, 0.35, 8.0),
        ours=catalogue("cosface", margin=0.35, scale=8.0),
    ),
    case(
        "large_margin_softmax",
        "Large-margin soft-max",
        "Liu et al. 2016",
        of_proxies(proxies.multiplied_angle, 4, unit_weights=False),
    ),
    case(
        "sphereface",
        "SphereFace",
        "Liu et al. 2017",
        of_proxies(proxies.multiplied_angle, 4, unit_weights=True),
    ),
    case(
        "p2s_grad",
        "P2SGrad as a loss",
        "Zhang et al. 2019, Eq. 11",
        of_proxies(proxies.p2s_grad, weights=unit_weights),
        variants={
            "the mean over the classes in place of the sum, and the gradient by a weight keeps its part along it": (
                of_proxies(proxies.p2s_grad, weights=unit_weights, over_classes=True)
            )
        },
    ),
)
