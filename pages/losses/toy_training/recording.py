"""Recording of the training runs that play when the Toy training page opens.

`python -m pages.losses.toy_training.recording` trains the first preset and writes the response of the service to
assets/losses/toy_training/recorded.bin.
"""

from __future__ import annotations

from typing import Any

from pages.losses.toy_training import service as toys_service
from pages.losses.toy_training.presets import PRESETS
from pages.losses.toy_training.state import Toy
from pages.shared.server import static_files

PATH = static_files.ASSETS / "losses" / "toy_training" / "recorded.bin"
STEPS, STRIDE = 600, 4  # about 400 kB


def recording(steps: int = STEPS) -> bytes:
    """Train the first preset; return the response with steps 0..steps and the frame of every STRIDE-th step."""
    toy = PRESETS[0].state(Toy)
    toys_service.TIMELINE.computed(toy, steps, patience=float("inf"))
    request: dict[str, Any] = {"state": toy.to_json(), "have": -1, "want": steps, "stride": STRIDE}
    return toys_service.TIMELINE.answer(request, most=steps // STRIDE + 1)


def main() -> None:
    """Write the recording."""
    PATH.write_bytes(recording())
    print(f"{PATH}: {PATH.stat().st_size / 1000:.0f} kB, {STEPS} steps of {PRESETS[0].title}")


if __name__ == "__main__":
    main()
