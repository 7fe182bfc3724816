"""Settings of a map of embeddings: the method, its parameters, and a digest that names the file of the map."""

from __future__ import annotations

import hashlib
import json
import math
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
        if self.method not in METHODS:
            raise ValueError(f"method must be one of {', '.join(METHODS)}, got {self.method!r}")
        if self.device not in DEVICES:
            raise ValueError(f"device must be one of {', '.join(DEVICES)}, got {self.device!r}")
        for name in ("perplexity", "min_dist"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise ValueError(f"{name} must be a number, got {value!r}")
            object.__setattr__(self, name, float(value))
        for name in ("iterations", "neighbours", "seed"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise ValueError(f"{name} must be a whole number, got {value!r}")
        if not 1 < self.perplexity < math.inf:
            raise ValueError(f"perplexity must be finite and above 1, got {self.perplexity}")
        if not FEWEST_ITERATIONS <= self.iterations <= MOST_ITERATIONS:
            raise ValueError(
                f"iterations must be at least {FEWEST_ITERATIONS} and at most {MOST_ITERATIONS}, got {self.iterations}"
            )
        if not 2 <= self.neighbours <= 1000:
            raise ValueError(f"neighbours must be 2 to 1000, got {self.neighbours}")
        if not 0 <= self.min_dist <= 1:
            raise ValueError(f"min_dist must be 0 to 1, got {self.min_dist}")
        if not 0 <= self.seed < 2**32:
            raise ValueError(f"seed must be 0 to 2^32 - 1, got {self.seed}")

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

    def same(self, other: Settings) -> bool:
        """Return True if both settings give the same map."""
        return self.used == other.used

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
