"""Settings of a map of embeddings: the method, its parameters, and a digest that names the file of the map."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Method = Literal["tsne", "umap", "pca"]
METHODS: tuple[Method, ...] = get_args(Method)
Device = Literal["cpu", "cuda"]
DEVICES: tuple[Device, ...] = get_args(Device)
TITLES: dict[Method, str] = {"tsne": "t-SNE", "umap": "UMAP", "pca": "PCA"}
USED: dict[Method, tuple[str, ...]] = {
    "tsne": ("perplexity", "iterations", "seed"),
    "umap": ("neighbours", "min_dist", "iterations", "seed"),
    "pca": (),
}
FEWEST_ITERATIONS, MOST_ITERATIONS = 100, 5000
Fits = Callable[[float], bool]
# parameter -> type, description of the valid values for messages, and test of a value
VALID: dict[str, tuple[type[float], str, Fits]] = {
    "perplexity": (float, "a finite number above 1", lambda value: 1 < value < math.inf),
    "min_dist": (float, "a number from 0 to 1", lambda value: 0 <= value <= 1),
    "iterations": (
        int,
        f"a whole number from {FEWEST_ITERATIONS} to {MOST_ITERATIONS}",
        lambda value: FEWEST_ITERATIONS <= value <= MOST_ITERATIONS,
    ),
    "neighbours": (int, "a whole number from 2 to 1000", lambda value: 2 <= value <= 1000),
    "seed": (int, "a whole number from 0 to 2^32 - 1", lambda value: 0 <= value < 2**32),
}


@dataclass(frozen=True)
class Settings:
    """Method and parameters of a map; parameters that the method does not use are ignored.

    Args:
        method: "tsne", "umap" or "pca".
        perplexity: Perplexity of t-SNE, above 1; lowered to a third of the number of points if there are few.
        iterations: Iterations of t-SNE (including early exaggeration) or epochs of UMAP, in 100..5000.
        neighbours: Number of neighbours of UMAP, in 2..1000.
        min_dist: Minimum distance of UMAP, in 0..1.
        seed: Random seed, in 0..2^32 - 1.
        device: Device that computes t-SNE and UMAP: "cpu", or "cuda" with cuML, which gives another map.

    Raises:
        ValueError: A value is out of range; the message names it.
    """

    method: Method = "tsne"
    perplexity: float = 30.0
    iterations: int = 400
    neighbours: int = 15
    min_dist: float = 0.1
    seed: int = 0
    device: Device = "cpu"

    def __post_init__(self) -> None:
        for name, options in (("method", METHODS), ("device", DEVICES)):
            if getattr(self, name) not in options:
                raise ValueError(f"{name} must be one of {', '.join(options)}, got {getattr(self, name)!r}")
        for name, (kind, words, fits) in VALID.items():
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, kind)) or not fits(value):
                raise ValueError(f"{name} must be {words}, got {value!r}")
            object.__setattr__(self, name, kind(value))

    @property
    def used(self) -> dict[str, Any]:
        """Dictionary of the method and the parameters that this method uses."""
        elsewhere = {"device": self.device} if self.device != "cpu" and USED[self.method] else {}
        return {"method": self.method} | {name: getattr(self, name) for name in USED[self.method]} | elsewhere

    @property
    def name(self) -> str:
        """Digest of the settings, 16 hexadecimal digits; settings that give the same map have the same digest."""
        return hashlib.sha256(self.to_json().encode()).hexdigest()[:16]

    @property
    def words(self) -> str:
        """Description such as "t-SNE, perplexity 30, 400 iterations, seed 0"."""
        each = {
            "perplexity": f"perplexity {self.perplexity:g}",
            "iterations": f"{self.iterations} iterations",
            "neighbours": f"{self.neighbours} neighbours",
            "min_dist": f"least distance {self.min_dist:g}",
            "seed": f"seed {self.seed}",
        }
        gpu = ["on a GPU"] * ("device" in self.used)
        return ", ".join([TITLES[self.method], *(each[name] for name in USED[self.method]), *gpu])

    def to_json(self) -> str:
        """Return one line of JSON with the parameters that the method uses."""
        return json.dumps(self.used, sort_keys=True)

    @classmethod
    def from_json(cls, text: str) -> Settings:
        """Read settings from JSON; missing parameters take their default values.

        Raises:
            ValueError: The text is not JSON, a parameter name is unknown, or a value is out of range.
        """
        data = json.loads(text)
        known = {field.name for field in fields(cls)}
        if not isinstance(data, dict) or set(data) - known:
            raise ValueError(
                f"settings of a map must be a JSON object with {', '.join(sorted(known))}, got {text[:200]}"
            )
        return cls(**data)
