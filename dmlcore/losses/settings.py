"""Hyper-parameters of the losses as the sources state them, per data set: plain data for protocols and forms.

A value here is printed in the source, or a decision written beside it in `note`. Data sets are named as in
`dmlcore.data.names()`; "" stands for all of them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

GURBUZ, PSOMAS, PSOMAS_CODE, ZABIHZADEH, CAN = (
    "gurbuz2022",
    "psomas2020",
    "psomas2020-code",
    "zabihzadeh2021",
    "can2018",
)
SOURCES = {
    GURBUZ: "Gürbüz 2022, METU PhD thesis",
    PSOMAS: "Psomas 2020, NKUA MSc thesis, Tables 4 and 5",
    PSOMAS_CODE: "Psomas 2020, what the public implementation trains",
    ZABIHZADEH: "Zabihzadeh, Alitbi & Mousavirad 2021, with its public implementation",
    CAN: "Can 2018, METU MSc thesis",
}


@dataclass(frozen=True)
class Setting:
    """How a source trains a loss on a data set.

    learning_rate: of the loss's own parameters, None where it has none or the source states none; rate_factor: the
    same as a factor on that of the network; miner and its parameters as in `dmlcore.mining`.
    """

    source: str
    loss: str
    data: str
    parameters: Mapping[str, float | str]
    learning_rate: float | None = None
    rate_factor: float | None = None
    miner: str = "all"
    miner_parameters: Mapping[str, float | str] = field(default_factory=dict)
    note: str = ""


def stated(loss: str, source: str, data: str) -> Setting:
    """The setting of `loss` in `source` for `data`; KeyError tells which there are."""
    for entry in SETTINGS:
        if (entry.loss, entry.source) == (loss, source) and entry.data in (data, ""):
            return entry
    known = sorted({f"{e.loss} in {e.source} for {e.data or 'any data set'}" for e in SETTINGS if e.loss == loss})
    raise KeyError(f"no setting of {loss} in {source} for {data}; known: {'; '.join(known) or 'none of this loss'}")


def sources(loss: str) -> list[str]:
    """The sources that state a setting of `loss`."""
    return list(dict.fromkeys(entry.source for entry in SETTINGS if entry.loss == loss))


def _gurbuz(
    loss: str,
    per_data: Mapping[str, Mapping[str, float | str]],
    rate_factor: float | None = None,
    note: str = "",
) -> tuple[Setting, ...]:
    return tuple(
        Setting(GURBUZ, loss, data, values, rate_factor=rate_factor, note=note) for data, values in per_data.items()
    )


_C2 = {
    "cub": {"m_pos": 0.0, "m_neg": 0.3841},
    "cars": {"m_pos": 0.2652, "m_neg": 0.5409},
    "inshop": {"m_pos": 0.2858, "m_neg": 0.5130},
    "sop": {"m_pos": 0.2858, "m_neg": 0.5130},
}
_TRIPLET = {"cub": 0.0961, "cars": 0.1190, "inshop": 0.0451, "sop": 0.0451}
_MS = {
    "cub": {"alpha": 2.0, "beta": 40.0, "m": 0.5},
    "cars": {"alpha": 14.35, "beta": 75.83, "m": 0.66},
    "inshop": {"alpha": 8.49, "beta": 57.38, "m": 0.41},
    "sop": {"alpha": 2.0, "beta": 40.0, "m": 0.5},
}
_SOFT_TRIPLE = {
    "cub": (20.0, 0.1, 0.2, 0.01),
    "cars": (17.69, 19.18, 0.0669, 0.3588),
    "inshop": (20.0, 0.1, 0.2, 0.01),
    "sop": (100.0, 47.9, 0.2, 0.3145),
}
_PROXIES = {"cub": 8.0, "cars": 8.0, "inshop": 4.0, "sop": 4.0}  # of each class, as anchors

_BATCHES = "batches of 32 classes x 1; one epoch of warm-up of the embedding layer"

SETTINGS: tuple[Setting, ...] = (
    *_gurbuz(
        "contrastive",
        {data: {**values, "distance": "euclidean", "divisor": "nonzero"} for data, values in _C2.items()},
        note="C2; C1 is cosine distance with m_pos = 1e-5, m_neg = 0.5 over the anchors, on all data sets",
    ),
    *_gurbuz(
        "triplet",
        {
            data: {"m": m, "distance": "euclidean", "negatives": "all", "divisor": "nonzero"}
            for data, m in _TRIPLET.items()
        },
    ),
    *_gurbuz("multi_similarity", {data: {**values, "epsilon": float("inf")} for data, values in _MS.items()}),
    Setting(GURBUZ, "proxy_anchor", "sop", {"delta": 0.1, "alpha": 32.0}, 5e-6, note="rate of the GSP chapter"),
    Setting(GURBUZ, "proxy_anchor", "", {"delta": 0.1, "alpha": 32.0}, rate_factor=100.0, note=_BATCHES),
    Setting(
        GURBUZ,
        "proxy_nca",
        "",
        {"temperature": 0.11, "denominator": "all"},
        rate_factor=100.0,
        note=f"0.1 in the chapter on chance-constrained programming; {_BATCHES}",
    ),
    *_gurbuz(
        "soft_triple",
        {
            data: {"centres": 2.0, "la": la, "gamma": gamma, "tau": tau, "delta": delta}
            for data, (la, gamma, tau, delta) in _SOFT_TRIPLE.items()
        },
        rate_factor=100.0,
        note=f"the number of centres is not stated, 2 as in Psomas 2020; {_BATCHES}",
    ),
    *_gurbuz(
        "contrastive_proxy",
        {data: {**values, "divisor": "nonzero", "per_class": _PROXIES[data]} for data, values in _C2.items()},
    ),
    *_gurbuz(
        "triplet_proxy",
        {data: {"m": m, "divisor": "nonzero", "per_class": _PROXIES[data]} for data, m in _TRIPLET.items()},
    ),
    *_gurbuz("multi_similarity_proxy", {data: {**values, "per_class": _PROXIES[data]} for data, values in _MS.items()}),
    Setting(
        PSOMAS,
        "contrastive",
        "",
        {"m_pos": 0.0, "m_neg": 0.5, "distance": "cosine", "divisor": "nonzero"},
        note="decision: means over the terms above 0, not the printed sum",
    ),
    Setting(
        PSOMAS,
        "triplet",
        "",
        {"m": 0.1, "distance": "cosine", "negatives": "semi_hard", "divisor": "nonzero"},
        note="semi-hard by Eq. 2.20, chosen inside the loss",
    ),
    Setting(
        PSOMAS,
        "lifted_structure",
        "",
        {"form": "rows", "m": 0.5},
        miner="multi_similarity",
        note="hard pairs",
    ),
    Setting(PSOMAS, "n_pair", "", {"form": "one", "l2": 0.02}, note="Eq. 2.22 over all pairs is form = all"),
    Setting(
        PSOMAS,
        "margin",
        "",
        {"alpha": 0.5, "beta": 1.2, "distance": "euclidean", "boundary": "learned"},
        5e-5,
        miner="distance_weighted",
        note="decision: Euclidean, as beta = 1.2 has no meaning for cosines",
    ),
    Setting(
        PSOMAS,
        "multi_similarity",
        "",
        {"alpha": 2.0, "beta": 50.0, "m": 0.5, "epsilon": 0.1},
        note="hard pairs, mined inside the loss; batches of 5 per class",
    ),
    Setting(PSOMAS, "cross_entropy", "", {"temperature": 1.0}),
    Setting(PSOMAS, "proxy_nca", "", {"temperature": 1.0, "denominator": "others"}, 1e-5),
    Setting(PSOMAS, "arcface", "", {"margin": 28.6, "scale": 64.0}, 1e-4),
    Setting(PSOMAS, "soft_triple", "", {"centres": 2.0, "la": 20.0, "gamma": 0.1, "delta": 0.1, "tau": 0.2}, 1e-4),
    Setting(PSOMAS, "proxy_anchor", "", {"delta": 0.1, "alpha": 32.0}, rate_factor=100.0),
    Setting(
        PSOMAS,
        "proxy_push",
        "",
        {"delta": 0.1, "alpha": 32.0, "through": "batch"},
        note="Eq. 6.2 as in Tables 17-19; delta and alpha are assumed to be those of ProxyAnchor",
    ),
    Setting(
        PSOMAS_CODE, "contrastive", "", {"m_pos": 0.0, "m_neg": 0.5, "distance": "euclidean", "divisor": "nonzero"}
    ),
    Setting(
        PSOMAS_CODE,
        "triplet",
        "",
        {"m": 0.1, "distance": "euclidean", "negatives": "window", "window": 0.1, "divisor": "nonzero"},
    ),
    Setting(
        PSOMAS_CODE,
        "lifted_structure",
        "",
        {"form": "mined", "alpha": 40.0, "beta": 2.0, "epsilon": 0.1},
    ),
    Setting(PSOMAS_CODE, "n_pair", "", {"form": "one", "l2": 0.0}),
    Setting(
        PSOMAS_CODE,
        "margin",
        "",
        {"alpha": 0.2, "beta": 1.2, "distance": "euclidean", "counting": "triplets", "boundary": "fixed"},
        miner="distance_weighted",
    ),
    Setting(PSOMAS_CODE, "arcface", "", {"margin": 28.6, "scale": 220.0}, note="its weights are not trained there"),
    Setting(
        PSOMAS_CODE,
        "proxy_nca",
        "",
        {"temperature": 1 / 64, "denominator": "all"},
        note="softmax_scale = 32 on squared distances is a temperature of 1/64; its proxies are not trained there",
    ),
    Setting(
        ZABIHZADEH,
        "triplet",
        "",
        {"m": 1.0, "distance": "euclidean", "negatives": "window", "window": 0.1, "divisor": "nonzero"},
    ),
    Setting(
        ZABIHZADEH,
        "binomial_deviance",
        "",
        {"alpha": 2.0, "m": 0.5, "cost": 25.0},
        note="decision: slope 50 for negatives, as in the formula; the implementation uses 25",
    ),
    Setting(
        ZABIHZADEH, "proxy_nca_smoothed", "", {"scale": 3.0, "smoothing": 0.1}, 0.015, note="0.01 or 0.015 in text"
    ),
    Setting(ZABIHZADEH, "cross_entropy", "", {"temperature": 1.0, "smoothing": 0.15, "over": "all"}),
    Setting(CAN, "lifted_structure", "", {"form": "pairs", "m": 1.0}, note="the margin is that of the golden vectors"),
    Setting(
        CAN,
        "triplet",
        "",
        {"m": 1.0, "distance": "squared", "negatives": "semi_hard_or_farthest", "divisor": "pairs"},
        note="the margin is that of the golden vectors",
    ),
)
