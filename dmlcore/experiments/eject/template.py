"""Source of the ejected files: a training run in plain PyTorch, with every supported data set and loss.

`assemble` copies the constants and functions that a run needs, and replaces the values of the constants and the lines
that end in a comment "# choice: NAME". This module must therefore import only torch, NumPy and the standard library
(`digits` imports scikit-learn, which contains the data), and each function may use only what is defined here.
"""

from __future__ import annotations

import hashlib
import math
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

SEED = 0
THREADS = 1
HIDDEN: list[int] = [256, 128]
EMBEDDING_DIM = 64
CLASSES_PER_BATCH, SAMPLES_PER_CLASS = 8, 8
STEPS = 600
VALIDATE_EVERY = 50
LEARNING_RATE = 1e-3
DIGEST = ""


# ---- randomness: a function of seed, purpose and step
def seed_of(purpose: str) -> int:
    """Return an independent 64-bit seed for each purpose."""
    return int(np.random.SeedSequence([SEED, 0, *purpose.encode()]).generate_state(1, np.uint64)[0])


# ---- data
def digits() -> tuple[Any, Any]:
    """Return the handwritten digits of Alpaydin & Kaynak 1998, in scikit-learn: 1,797 images of 8 x 8 pixels."""
    from sklearn.datasets import load_digits

    data = load_digits()
    return (data.data / 16.0).astype(np.float32), data.target.astype(np.int64)


def toy() -> tuple[Any, Any]:
    """Return 32 Gaussian classes of 200 points in R^3 with variance 0.02 (toy data of Karaman 2021)."""
    random = np.random.default_rng(SEED)
    means = random.uniform(0.0, 1.0, size=(32, 1, 3))
    points = means + np.sqrt(0.02) * random.standard_normal((32, 200, 3))
    return points.reshape(-1, 3).astype(np.float32), np.repeat(np.arange(32), 200)


def hold_out_samples(labels: Any, indices: Any, fraction: float) -> Any:
    """Return `indices` divided into those that stay and a random `fraction` of each class (at least two samples)."""
    random, held_out = np.random.default_rng(SEED), np.zeros(len(indices), dtype=bool)
    for label in np.unique(labels[indices]):
        members = np.flatnonzero(labels[indices] == label)
        if len(members) >= 4:
            held_out[random.permutation(members)[: max(2, int(len(members) * fraction))]] = True
    return indices[~held_out], indices[held_out]


def hold_out_classes(labels: Any, indices: Any) -> Any:
    """Return `indices` divided into those that stay and the last quarter of the classes (at least two)."""
    classes = np.unique(labels[indices])
    held_out = np.isin(labels[indices], classes[-max(2, len(classes) // 4) :])
    return indices[~held_out], indices[held_out]


# ---- sampler
def draw_batch(members: list[Any], step: int) -> Any:
    """Return the positions of a balanced batch, grouped by class; `members` has the positions of each class."""
    random = np.random.default_rng(np.random.SeedSequence(SEED, spawn_key=(step,)))
    chosen = random.choice(len(members), CLASSES_PER_BATCH, replace=False)
    return np.concatenate([random.permutation(members[label])[:SAMPLES_PER_CLASS] for label in chosen])


# ---- network
class EmbeddingNetwork(nn.Module):
    """MLP with leaky ReLUs that maps vectors (B, F) to embeddings (B, D)."""

    def __init__(self, features: int, mean: float, std: float) -> None:
        super().__init__()
        self.mean, self.std = nn.Buffer(torch.tensor(mean)), nn.Buffer(torch.tensor(std))
        widths = [features, *HIDDEN]
        self.hidden = nn.ModuleList(init_he(nn.Linear(a, b)) for a, b in zip(widths, HIDDEN, strict=False))
        self.linear = init_he(nn.Linear(widths[-1], EMBEDDING_DIM))

    def forward(self, x: Tensor) -> Tensor:
        x = (x - self.mean) / self.std
        for layer in self.hidden:
            x = F.leaky_relu(layer(x), 0.01)
        x = self.linear(x)
        return F.normalize(x, dim=1)  # choice: embedding


def init_he(layer: nn.Linear) -> nn.Linear:
    """Initialise a layer as He et al. 2015, Eq. 10 (fan in), with zero bias, and return it."""
    nn.init.kaiming_normal_(layer.weight)
    nn.init.zeros_(layer.bias)
    return layer


# ---- loss
class PairDistances(torch.autograd.Function):
    """Euclidean distances (B, B) between embeddings (B, D): differences forward, matrix products backward."""

    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        half = x.new_zeros(len(x), len(x))
        half[*torch.triu_indices(len(x), len(x), 1)] = torch.pdist(x)
        ctx.save_for_backward(x, half + half.mT)
        return half + half.mT

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> Tensor:
        x, d = ctx.saved_tensors
        weight = torch.where(d > 0, grad / d, 0.0)
        x = x - x.mean(0)  # leaves the result unchanged and reduces rounding errors
        rows: Tensor = weight.sum(1, keepdim=True) * x - weight @ x
        return rows.add(weight.sum(0)[:, None] * x - weight.mT @ x)


def ranking(embeddings: Tensor, labels: Tensor, m: float) -> Tensor:
    """Return the mean of [d_ap - d_an + m]+ over all triplets (Wang et al. 2014; Karaman 2021, Eq. 2.5)."""
    d: Tensor = PairDistances.apply(embeddings)
    same = labels[:, None] == labels
    positive = same & ~torch.eye(len(labels), dtype=torch.bool)
    active = (d[:, :, None] - d[:, None, :] + m > 0) & positive[:, :, None] & ~same[:, None, :]
    # The sum over active triplets is linear in the distances. Its coefficients are counts, which do not round.
    pulls, pushes = active.sum(2), active.sum(1)
    total = ((pulls - pushes) * d).sum() + m * active.sum()
    return total / (positive.sum(1) * (~same).sum(1)).sum()  # choice: divisor


def distance_sensitive(x: Tensor, labels: Tensor, s: float, r: float, rho: float, m1: float, m2: float) -> Tensor:
    """Return the distance-sensitive (METU) loss, clamped to [0, m2] (Karaman 2021, Eq. 3.17-3.18)."""
    d: Tensor = PairDistances.apply(x)
    # Positions that broadcast to (classes, a, p, n). Energies are symmetric in a and p, so only pairs a < p are summed.
    position = torch.arange(len(labels))
    members = position.view(-1, SAMPLES_PER_CLASS)
    others = torch.stack([position[~torch.isin(position, own)] for own in members])
    a, p, n = members[:, :, None, None], members[:, None, 1:, None], others[:, None, None, :]
    table = d.detach().requires_grad_()
    push = potential(table[a, n], 1 - r) + potential(table[p, n], 1 - r)
    raw = potential(table[a, p], s + 1) - rho * push + m1
    energy = 2 * raw.where((raw > 0) & (raw < m2) & (p > a), 0.0).sum()
    # Divide the summed forces, not each energy, so that they round once; the gradient is that of the mean.
    (force,) = torch.autograd.grad(energy, table)
    return (force * d).sum() / (2 * (p > a).sum() * n.shape[-1])


def potential(d: Tensor, q: float) -> Tensor:
    """Return d^q / q, without a gradient at distance 0."""
    zero = d <= 1e-8
    value = torch.where(zero, 1.0, d).pow(q) / q
    return torch.where(zero, 0.0 if q > 0 else -torch.inf, value)


def contrastive(embeddings: Tensor, labels: Tensor, m_pos: float, m_neg: float) -> Tensor:
    """Return the means of [d - m+]+ and [m- - d]+ above 0 (Hadsell et al. 2006; Gürbüz 2022, Sec. 3.3)."""
    d: Tensor = PairDistances.apply(embeddings)
    same = labels[:, None] == labels
    itself = torch.eye(len(labels), dtype=torch.bool)
    pull = (d - m_pos).relu().masked_fill(~same | itself, 0.0)
    push = (m_neg - d).relu().masked_fill(same, 0.0)
    return pull.sum() / (pull > 0).sum().clamp(min=1) + push.sum() / (push > 0).sum().clamp(min=1)


def multi_similarity(embeddings: Tensor, labels: Tensor, alpha: float, beta: float, m: float, epsilon: float) -> Tensor:
    """Return the multi-similarity loss with its mining of hard pairs (Wang et al. 2019, Eq. 7, 8 and 15)."""
    x = unit(embeddings)
    s = x @ x.mT
    negative = labels[:, None] != labels
    positive = ~negative & ~torch.eye(len(labels), dtype=torch.bool)
    hardest = s.detach().masked_fill(~negative, -torch.inf).amax(1, keepdim=True)
    easiest = s.detach().masked_fill(~positive, torch.inf).amin(1, keepdim=True)
    positive, negative = positive & (s < hardest + epsilon), negative & (s > easiest - epsilon)
    pull = log_one_plus_sum(-alpha * (s - m), positive) / alpha
    push = log_one_plus_sum(beta * (s - m), negative) / beta
    return (pull + push).sum() / len(s)


def threshold_consistent_margin(embeddings: Tensor, labels: Tensor, m_pos: float, m_neg: float) -> Tensor:
    """Return the means of m+ - s and s - m- over the pairs beyond these margins (Zhang et al. 2024)."""
    s = (x := unit(embeddings)) @ x.mT
    same = labels[:, None] == labels
    pulled, pushed = same & ~torch.eye(len(s), dtype=torch.bool) & (s <= m_pos), ~same & (s >= m_neg)
    return (m_pos - s)[pulled].sum() / pulled.sum().clamp(min=1) + (s - m_neg)[pushed].sum() / pushed.sum().clamp(min=1)


def proxy_nca(embeddings: Tensor, labels: Tensor, proxies: Tensor, temperature: float) -> Tensor:
    """Return the ProxyNCA++ loss, a cross-entropy of cosines to learned class proxies (Teh et al. 2020)."""
    return F.cross_entropy(unit(embeddings) @ unit(proxies).mT / temperature, labels)


def proxy_anchor(embeddings: Tensor, labels: Tensor, proxies: Tensor, alpha: float, delta: float) -> Tensor:
    """Return the Proxy-Anchor loss: each learned class proxy is an anchor for the batch (Kim et al. 2020, Eq. 4)."""
    s = unit(proxies) @ unit(embeddings).mT
    own = torch.arange(len(s))[:, None] == labels
    pull = log_one_plus_sum(-alpha * (s - delta), own)
    push = log_one_plus_sum(alpha * (s + delta), ~own)
    return pull.sum() / own.any(1).sum() + push.mean()


def unit(x: Tensor) -> Tensor:
    """Return x / |x|, computed without overflow."""
    largest = x.detach().abs().amax(-1, keepdim=True)
    scaled = x / torch.where(largest > 1e-12, largest, 1.0)
    result: Tensor = scaled / torch.linalg.vector_norm(scaled, dim=-1, keepdim=True).clamp(min=0.5)
    return result


def log_one_plus_sum(values: Tensor, mask: Tensor) -> Tensor:
    """Return log(1 + sum of exp(values) over the entries of each row in `mask`)."""
    return F.softplus(torch.logsumexp(values.masked_fill(~mask, -1e30), 1), threshold=40.0)


# ---- evaluation
@torch.no_grad()
def score(network: Any, inputs: Tensor, labels: Tensor) -> tuple[float, float]:
    """Return R@1 and MAP@R, each sample against all others (Musgrave et al. 2020, Sec. 3.2)."""
    x = torch.cat([network(chunk) for chunk in inputs.split(256)]).double()
    distances = torch.cdist(x, x, compute_mode="donot_use_mm_for_euclid_dist").fill_diagonal_(torch.inf)
    hits = labels[distances.argsort(stable=True)] == labels[:, None]
    hits[:, -1] = False  # the sample itself
    matches, ranks = hits.sum(1, keepdim=True), torch.arange(1, len(x) + 1, dtype=x.dtype)
    precisions = (hits * (ranks <= matches) * hits.cumsum(1) / ranks).sum(1) / matches[:, 0]
    valid = matches[:, 0] > 0
    return float(hits[valid, 0].double().mean()), float(precisions[valid].mean())


# ---- training
def main() -> None:
    """Train the network, keep the weights with the best validation score, and test them."""
    torch.set_num_threads(THREADS)  # another number of threads rounds differently
    inputs, labels = digits()  # choice: data
    rest, test = hold_out_samples(labels, np.arange(len(labels)), 0.5)  # choice: test
    train, validation = hold_out_samples(labels, rest, 0.2)  # choice: validation
    x, y = torch.from_numpy(inputs), torch.from_numpy(labels)
    members = [np.flatnonzero(labels[train] == label) for label in np.unique(labels[train])]

    mean, std = float(inputs[train].mean()), float(inputs[train].std())  # choice: standardize
    torch.manual_seed(seed_of("model"))
    network = EmbeddingNetwork(inputs.shape[1], mean, std)
    torch.manual_seed(seed_of("loss"))  # choice: seed of proxies
    classes = int(y[train].max()) + 1  # choice: classes
    proxies = nn.Parameter(nn.init.kaiming_normal_(torch.empty(classes, EMBEDDING_DIM)))  # choice: proxies
    parameters = [{"params": network.parameters(), "lr": LEARNING_RATE}]
    parameters.append({"params": [proxies], "lr": LEARNING_RATE})  # choice: rate of proxies
    optimiser = torch.optim.Adam(parameters, lr=LEARNING_RATE, eps=1e-8)  # choice: optimiser
    rates = [group["lr"] for group in optimiser.param_groups]  # choice: rates

    best, best_score = network.state_dict(), -1.0
    for step in range(STEPS + 1):
        if step:
            for group, rate in zip(optimiser.param_groups, rates, strict=True):  # choice: decay
                group["lr"] = rate * (1 + math.cos(math.pi * ((step - 1) / STEPS))) / 2  # choice: factor
            batch = train[draw_batch(members, step)]
            loss = ranking(z := network(x[batch]), y[batch], m=0.5)  # choice: loss
            loss = loss + 0.5 * threshold_consistent_margin(z, y[batch], 0.9, 0.5)  # choice: tcm
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        if len(validation) and (step % VALIDATE_EVERY == 0 or step == STEPS):
            recall, precision = score(network, x[validation], y[validation])
            print(f"step {step}: validation R@1 {recall:.4f}, MAP@R {precision:.4f}")
            if precision > best_score:  # choice: monitor
                best_score = precision  # choice: monitored
                best = {name: value.clone() for name, value in network.state_dict().items()}

    network.load_state_dict(best)
    recall, precision = score(network, x[test], y[test])
    print(f"test R@1 {recall:.6f}, MAP@R {precision:.6f}")
    digest = hashlib.sha256(b"".join(best[name].numpy().tobytes() for name in sorted(best))).hexdigest()
    print(f"weights {digest}: {'the bytes of the run' if digest == DIGEST else 'other bytes than the run'}")


if __name__ == "__main__":
    main()
