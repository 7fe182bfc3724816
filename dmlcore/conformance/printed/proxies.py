"""Proxy and class-weight losses, written as the formulas are printed in the papers.

Shapes: x (B, D), labels y (B,), w (C, D), or (C K, D) with K weight vectors per class.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from dmlcore.conformance.printed.pairs import average, cosine, dot, log_sum, total, unit


def _choice(logits: list[Tensor], own: int) -> Tensor:
    """Compute the cross-entropy -log(softmax probability) of the logit at index `own`."""
    return log_sum(logits) - logits[own]


def proxy_nca(x: Tensor, y: list[int], w: Tensor, scale: float, *, own_below: bool = False) -> Tensor:
    """Compute the mean of -log e^(-scale d(x, w_y)) / Σ_(c != y) e^(-scale d(x, w_c)).

    d is the squared distance between unit vectors. With `own_below`, the denominator also contains the proxy of class
    y, which gives the normalised softmax.
    """
    terms = []
    for i, label in enumerate(y):
        d = [2 - 2 * cosine(x[i], proxy) for proxy in w]
        below = [-scale * far for c, far in enumerate(d) if own_below or c != label]
        terms.append(log_sum(below) + scale * d[label])
    return average(terms)


def normalised_softmax(x: Tensor, y: list[int], w: Tensor, temperature: float) -> Tensor:
    """Compute the mean of -log e^(cos(x, w_y)/t) / Σ_c e^(cos(x, w_c)/t)."""
    return average([_choice([cosine(x[i], c) / temperature for c in w], label) for i, label in enumerate(y)])


def proxy_anchor(x: Tensor, y: list[int], w: Tensor, alpha: float, delta: float) -> Tensor:
    """Compute 1/|W+| Σ_(W+) log(1 + Σ_own e^(-α (s - δ))) + 1/|W| Σ_W log(1 + Σ_others e^(α (s + δ)))."""
    pull, push = [], []
    for c, proxy in enumerate(w):
        s = [cosine(row, proxy) for row in x]
        own = [-alpha * (value - delta) for value, label in zip(s, y, strict=True) if label == c]
        if own:
            pull.append(log_sum(own, 0.0))
        push.append(log_sum([alpha * (v + delta) for v, label in zip(s, y, strict=True) if label != c], 0.0))
    return average(pull) + average(push)


def soft_triple(
    x: Tensor,
    y: list[int],
    w: Tensor,
    centres: int,
    la: float,
    gamma: float,
    delta: float,
    tau: float,
    eps: float = 0.0,
) -> Tensor:
    """Compute the SoftTriple loss.

    It is the mean of -log e^(λ(S_y - δ)) / (e^(λ(S_y - δ)) + Σ_(c != y) e^(λ S_c)) plus the regulariser τ Σ_c Σ_(k < l)
    √(2 - 2 w_k·w_l) / (C K (K - 1)). S_c = Σ_k softmax_k(s_k / γ) s_k, where s_k is the similarity to centre k of class
    c. `eps` is added under the square root.
    """
    groups = [[unit(row) for row in w[c * centres : (c + 1) * centres]] for c in range(len(w) // centres)]
    terms = []
    for i, label in enumerate(y):
        logits = []
        for c, group in enumerate(groups):
            s = torch.stack([dot(unit(x[i]), centre) for centre in group])
            share = (s / gamma).exp() / (s / gamma).exp().sum()
            logits.append(la * ((share * s).sum() - (delta if c == label else 0.0)))
        terms.append(_choice(logits, label))
    pairs = [(group[k], group[j]) for group in groups for k in range(centres) for j in range(k)]
    spread = total([(2 + eps - 2 * dot(a, b)).sqrt() for a, b in pairs])
    return average(terms) + tau * spread / max(len(groups) * centres * (centres - 1), 1)


def arcface(x: Tensor, y: list[int], w: Tensor, degrees: float, scale: float, centres: int = 1) -> Tensor:
    """Compute the mean of -log e^(s cos(θ_y + m)) / (e^(s cos(θ_y + m)) + Σ_(c != y) e^(s cos θ_c)).

    If θ_y > π - m, cos θ_y - m sin m replaces cos(θ_y + m), as in the authors' implementation. Each class has `centres`
    weight vectors (sub-centres), of which only the nearest to the sample counts.
    """
    m = math.radians(degrees)
    terms = []
    for i, label in enumerate(y):
        s = [
            torch.stack([cosine(x[i], row) for row in w[c * centres : (c + 1) * centres]]).max()
            for c in range(len(w) // centres)
        ]
        angle = torch.acos(s[label])
        s[label] = torch.cos(angle + m) if angle.item() <= math.pi - m else s[label] - m * math.sin(m)
        terms.append(_choice([scale * value for value in s], label))
    return average(terms)


def cosface(x: Tensor, y: list[int], w: Tensor, m: float, scale: float) -> Tensor:
    """Compute the mean of -log e^(s (cos θ_y - m)) / (e^(s (cos θ_y - m)) + Σ_(c != y) e^(s cos θ_c))."""
    terms = []
    for i, label in enumerate(y):
        terms.append(_choice([scale * (cosine(x[i], row) - m * (c == label)) for c, row in enumerate(w)], label))
    return average(terms)


def multiplied_angle(x: Tensor, y: list[int], w: Tensor, m: int, *, unit_weights: bool) -> Tensor:
    """Compute the mean cross-entropy of the logits |w_c| |x| cos θ_c, with ψ(θ) instead of cos θ for the correct class.

    ψ(θ) = (-1)^k cos mθ - 2k on [kπ/m, (k+1)π/m]. With `unit_weights`, |w_c| = 1.
    """
    terms = []
    for i, label in enumerate(y):
        logits = []
        for c, row in enumerate(w):
            size = dot(x[i], x[i]).sqrt() * (1.0 if unit_weights else dot(row, row).sqrt())
            value = cosine(x[i], row)
            if c == label:
                angle = torch.acos(value)
                k = math.floor(angle.item() * m / math.pi)
                value = (-1) ** k * torch.cos(m * angle) - 2 * k
            logits.append(size * value)
        terms.append(_choice(logits, label))
    return average(terms)


def p2s_grad(x: Tensor, y: list[int], w: Tensor, *, over_classes: bool = False) -> Tensor:
    """Compute P2SGrad as a loss, the mean over the samples of Σ_c (cos θ_c - [c = y])².

    With `over_classes`, a mean over the classes replaces the sum, and the class weights are not normalised inside the
    loss, so that their gradient keeps its radial component.
    """
    similar = (lambda a, b: dot(unit(a), b)) if over_classes else cosine
    terms = [
        total([(similar(x[i], row) - float(c == label)) ** 2 for c, row in enumerate(w)]) for i, label in enumerate(y)
    ]
    return average(terms) / (len(w) if over_classes else 1)
