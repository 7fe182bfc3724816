"""Declaration of how a page looks in presentation mode, in which its figure fills the window.

See assets/shared/present for the browser part.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Literal


@dataclass(frozen=True)
class Presentation:
    """Declaration of a page's appearance in presentation mode.

    In `caption`, {loss} is replaced with the title of the displayed loss; if a preset is selected, its caption is shown
    instead. `controls` lists the controls that are shown next to the figure until the speaker changes them, by their
    names in present/parts.js or the names of sliders; unavailable ones are skipped. `picture` describes the figure:
    "square", several "views" side by side, or "fill" for a figure that fits any window.
    """

    title: str
    caption: str
    controls: tuple[str, ...]
    notes: tuple[str, ...]
    picture: Literal["square", "views", "fill"] = "square"

    def to_json(self) -> dict[str, Any]:
        """Return the declaration as JSON data for the component."""
        return asdict(self)
