"""What a page shows a lecture, where its picture fills the window (assets/shared/present)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Presentation:
    """The declaration of a page: all that it has to say of itself.

    In the caption {loss} stands for the loss that is shown; the sentence of a preset takes its place while one is
    chosen. controls: what stands beside the picture until the speaker chooses, by the names of present/parts.js and of
    the sliders; those that are not there are left out. picture: "square", several "views" side by side, or one that can
    "fill" any window.
    """

    title: str
    caption: str
    controls: tuple[str, ...]
    notes: tuple[str, ...]
    picture: Literal["square", "views", "fill"] = "square"

    def to_json(self) -> dict[str, Any]:
        """As the component reads it."""
        return asdict(self)
