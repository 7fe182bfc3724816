"""Slider-to-repaint and drag-to-repaint times of the fields page, compared with an empty fragment rerun, in Chromium.

A key press on the component's slider r is timed from its keydown event to the end of the first frame that shows the new
field. The baseline is a key press on st.slider in a page with a fragment that shows one number, timed to the end of the
first frame after the new number is in the page. The drag moves the anchor once per frame for four seconds (moving the
scanning point would leave its field unchanged). Slider and drag are measured with the default layers and with every
layer on, on 41 x 41 and 81 x 81 nodes. The first view is timed until the second field is painted, because the figure is
animated. It is timed twice: from the start of the server process, and from opening the page in a new browser context
when the server is warm.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import EMPTY_RERUN, chromium, command_line, machine, report, served

WINDOW = {"viewport": {"width": 1440, "height": 900}, "reduced_motion": "reduce"}
ALL_LAYERS = "&lines=raw&flow=arrows&region=1&forces=1&edges=1&discs=1&mining=1&cut=1"

# Milliseconds from the event to the end of the frame in which the target changed. A canvas sets data-seq in the frame
# that paints it; text changes one frame before it is painted.
TIME_A_KEY = """([target, inFrame]) => new Promise((resolve) => {
  let start;
  addEventListener("keydown", () => { start = performance.now(); }, { once: true, capture: true });
  const observer = new MutationObserver(() => {
    if (start === undefined) return; // the last figure of the press before
    observer.disconnect();
    const after = () => { const { port1, port2 } = new MessageChannel();
      port1.onmessage = () => resolve(performance.now() - start); port2.postMessage(0); };
    if (inFrame) after(); else requestAnimationFrame(after);
  });
  observer.observe(target, { attributes: inFrame, childList: !inFrame, subtree: !inFrame, characterData: !inFrame });
})"""

DRAG = """([canvas, handle, seconds]) => new Promise((resolve) => {
  const box = canvas.getBoundingClientRect(), begin = performance.now();
  const asked = new Map(), trips = [], own = [];
  let fields = 0, frames = 0, moved = null;
  const clear = CanvasRenderingContext2D.prototype.clearRect;
  CanvasRenderingContext2D.prototype.clearRect = function (...a) {
    if (this.canvas === canvas && moved !== null) { own.push(performance.now() - moved); moved = null; }
    return clear.apply(this, a);
  };
  const send = WebSocket.prototype.send;
  WebSocket.prototype.send = function (text) {
    if (typeof text === "string") asked.set(JSON.parse(text).id, performance.now());
    return send.call(this, text);
  };
  const observer = new MutationObserver(() => {
    fields += 1;
    const at = asked.get(Number(canvas.dataset.seq));
    if (at) trips.push(performance.now() - at);
  });
  observer.observe(canvas, { attributes: true, attributeFilter: ["data-seq"] });
  const step = (now) => {
    frames += 1;
    const t = (performance.now() - begin) / 1000;
    if (t > seconds) {
      observer.disconnect();
      CanvasRenderingContext2D.prototype.clearRect = clear;
      WebSocket.prototype.send = send;
      return resolve({ fields: fields / t, frames: frames / t, trips, own });
    }
    moved ??= performance.now();
    handle.dispatchEvent(new PointerEvent("pointermove", { bubbles: true,
      clientX: box.left + box.width * (0.5 + 0.3 * Math.cos(3 * t)),
      clientY: box.top + box.height * (0.5 + 0.3 * Math.sin(3 * t)) }));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""


def keys(page: Any, slider: Any, target: Any, in_frame: bool, presses: int) -> list[float]:
    """Return the milliseconds from key press to painted response for each of `presses` key presses."""
    slider.focus()
    times = []
    for press in range(presses + 3):
        handle = page.evaluate_handle("(args) => ({ promise: (" + TIME_A_KEY + ")(args) })", [target, in_frame])
        page.keyboard.press("ArrowRight" if press % 2 else "ArrowLeft")
        times.append(page.evaluate("(h) => h.promise", handle))
        page.wait_for_timeout(350)  # wait until the final figure is drawn and the URL is updated
    return times[3:]


def relative_to(times: list[float], rival: list[float]) -> str:
    """Format the ratios of the median and 95th percentile of `times` to those of the baseline `rival`."""
    middle, tail = np.percentile(times, [50, 95]) / np.percentile(rival, [50, 95])
    return f"{middle:.2f} and {tail:.2f} x the empty rerun"


def one_setting(page: Any, name: str, empty: list[float], arguments: argparse.Namespace) -> None:
    """Measure slider and drag on one page, and print both times relative to those of the empty rerun."""
    canvas = page.wait_for_selector("canvas.plane[data-seq]")
    page.wait_for_timeout(1000)
    pressed = keys(page, page.get_by_role("slider", name="r", exact=True), canvas, True, arguments.presses)
    report(f"{name}: slider r", pressed, relative_to(pressed, empty))
    drag = dragged(page, page.get_by_role("button", name="anchor at"), canvas, arguments.seconds)
    report(f"{name}: drag, request to paint", drag["trips"], relative_to(drag["trips"], empty))
    report(f"{name}: drag, pointer to painted point", drag["own"])
    print(f"{name}: {drag['fields']:.1f} new fields per second at {drag['frames']:.1f} frames per second")


def first_view(browser: Any, url: str, start: float | None = None) -> float:
    """Return the milliseconds until the page has painted its second field, from `start` or from opening the page."""
    page = browser.new_page(**WINDOW)
    start = start or time.perf_counter()
    page.goto(url)
    plane = page.wait_for_selector("canvas.plane[data-seq]")  # in a shadow root
    page.wait_for_function("(el) => Number(el.dataset.seq) >= 2", arg=plane)
    took = 1000 * (time.perf_counter() - start)
    page.close()
    return took


def dragged(page: Any, handle: Any, canvas: Any, seconds: float) -> dict[str, Any]:
    """Drag `handle` once per frame for some seconds and watch the canvas.

    Returns:
        Fields and frames per second ("fields", "frames"), and milliseconds from request to paint ("trips") and from
        pointer to paint ("own").
    """
    box = handle.bounding_box()
    page.mouse.move(box["x"] + 18, box["y"] + 18)
    page.mouse.down()
    drag: dict[str, Any] = page.evaluate(DRAG, [canvas, handle.element_handle(), seconds])
    page.mouse.up()
    return drag


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--presses", type=int, default=40, help="key presses per slider")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each drag")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, chromium() as browser:
        runs = Path(folder) / "runs"
        with served(runs, EMPTY_RERUN) as (rival, _), served(runs) as (url, _):
            print(f"{machine('streamlit')}, Chromium {browser.version}, viewport 1440 x 900")
            page = browser.new_page(**WINDOW)
            page.goto(rival)
            target = page.wait_for_selector("#answer").evaluate_handle("(el) => el.closest('[data-testid=stHtml]')")
            empty = keys(page, page.get_by_role("slider"), target, False, arguments.presses)
            report(f"empty fragment rerun, st.slider, {arguments.presses} presses", empty)
            for layers, query in (("first layers", ""), ("all layers", ALL_LAYERS)):
                for grid in (41, 81):
                    page.goto(f"{url}/fields?n=0.3,0.8&grid={grid}{query}")
                    one_setting(page, f"{layers}, {grid} x {grid}", empty, arguments)
            page.close()
            report("new session to moving figure", [first_view(browser, url) for _ in range(5)])
        cold = []
        for _ in range(3):
            start = time.perf_counter()
            with served(runs) as (url, _):
                cold.append(first_view(browser, url, start))
        report("server start to moving figure", cold)


if __name__ == "__main__":
    main()
