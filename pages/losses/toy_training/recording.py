"""Recording that is played when the Toy training page opens, so that no network has to be trained first.

`python -m pages.losses.toy_training.recording` trains the networks of the first preset and writes the response of the
service to assets/src/losses/toy_training/recorded.bin.
"""

from __future__ import annotations

from typing import Any

from pages.losses.toy_training import service as toys_service
from pages.losses.toy_training.presets import PRESETS
from pages.losses.toy_training.state import Toy
from pages.shared.server import static_files

PATH = static_files.SOURCES / "losses" / "toy_training" / "recorded.bin"
STEPS, STRIDE = 600, 4  # about 400 kB


def recording(steps: int = STEPS) -> bytes:
    """Train the networks of the first preset for `steps` steps; return a response with every STRIDE-th frame."""
    toy = PRESETS[0].state(Toy)
    toys_service.TIMELINE.computed(toy, steps, patience=float("inf"))
    request: dict[str, Any] = {"state": toy.to_json(), "have": -1, "want": steps, "stride": STRIDE}
    return toys_service.TIMELINE.answer(request, most=steps // STRIDE + 1)


def main() -> None:
    """Train the networks, write the recording and print its size."""
    PATH.write_bytes(recording())
    print(f"{PATH}: {PATH.stat().st_size / 1000:.0f} kB, {STEPS} steps of {PRESETS[0].title}")


if __name__ == "__main__":
    main()
