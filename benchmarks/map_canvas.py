"""Map page with 60,502 points of 11,316 classes: first paint, panning, recolouring, lasso and bytes, in Chromium.

The store holds a run with the results of an evaluation on Stanford Online Products: embeddings and a map, with points
that are drawn from a mixture instead of training and t-SNE. The page is opened with an empty cache, from a server that
has shown it once. With `--rival NODE_MODULES`, a folder into which `npm install regl-scatterplot` was run,
the same points are shown by regl-scatterplot on a canvas of the same size, in turns with the map page.

first paint: time from the navigation to the frame after the one in which the points were drawn.
down: bytes of points, scripts and page data, that is, every response under /api/ and every WebSocket message.
pan: frames per second and 95th percentile of the frame time while the map is dragged in every frame for three seconds,
     and milliseconds of the main thread per frame.
recolour: time from a change of the colours to the frame after the one in which the points were drawn.
lasso: time from releasing the mouse to the frame after the one that shows the number of selected points. The map page
     counts in the browser, exactly, as it uses integers as Python does; the number is compared with Python's.
heap: size of the JavaScript heap after loading, once garbage was collected.
"""

from __future__ import annotations

import base64
import math
import os
import re
import subprocess
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import ROOT, chromium, command_line, machine, served

POINTS, CLASSES = 60_502, 11_316
UNITS = {
    "first paint": "ms",
    "down": "kB",
    "pan, frames per second": "",
    "pan, p95 of frames": "ms",
    "pan, main thread": "ms/frame",
    "recolour": "ms",
    "lasso": "ms",
    "heap": "MB",
}

# `%s` stands for a condition in JavaScript. It is inserted into the source, because the app's pages forbid `eval`.
PAINTED = """() => new Promise((done, fail) => {
  const painted = () => requestAnimationFrame(() => done(performance.now()));
  const look = () => requestAnimationFrame(%s ? painted : look);
  setTimeout(() => fail(new Error("nothing was painted in ten minutes")), 600000);
  look();
})"""
SHOWN = """[...document.querySelectorAll('*')].some((e) =>
  e.shadowRoot?.querySelector('canvas.map[data-painted]'))"""
# Move the pressed pointer on a circle, once per frame; return the times of the frames.
PAN = """([canvas, seconds]) => new Promise((resolve) => {
  const box = canvas.getBoundingClientRect(), times = [], begin = performance.now();
  const step = (now) => {
    times.push(now);
    const t = (performance.now() - begin) / 1000;
    if (t > seconds) return resolve(times);
    const at = { bubbles: true, composed: true, buttons: 1,
      clientX: box.left + box.width * (0.5 + 0.2 * Math.sin(3 * t)),
      clientY: box.top + box.height * (0.5 + 0.2 * Math.cos(3 * t)) };
    canvas.dispatchEvent(new PointerEvent("pointermove", at));
    canvas.dispatchEvent(new MouseEvent("mousemove", at));
    requestAnimationFrame(step);
  };
  requestAnimationFrame(step);
})"""
# Set window.counted to a promise: milliseconds from the next release of the mouse to the frame after `read` returns a
# number, and that number.
COUNTED = """(element) => { window.counted = new Promise((done) => addEventListener("pointerup", () => {
  const began = performance.now();
  const look = () => element.textContent
    ? requestAnimationFrame(() => done([performance.now() - began, element.textContent])) : requestAnimationFrame(look);
  look();
}, { capture: true, once: true })); }"""
RECOLOUR = """([select, canvas]) => new Promise((done) => {
  const before = canvas.dataset.painted, began = performance.now();
  const colour = select.value === "class" ? "split" : "class";
  select.value = colour;
  select.dispatchEvent(new Event("change", { bubbles: true }));
  const look = () => canvas.dataset.colour === colour && canvas.dataset.painted !== before
    ? requestAnimationFrame(() => done(performance.now() - began)) : requestAnimationFrame(look);
  look();
})"""

RIVAL = """<!doctype html><meta charset="utf-8"><body style="margin: 0"><output class="count"></output>
<canvas class="map" style="width: %dpx; height: %dpx; position: absolute; left: 300px; top: 200px"></canvas>
<script type="module">
import createScatterplot from "/regl.js";
const points = new Float32Array(await (await fetch("/points.bin")).arrayBuffer()), n = points.length / 3;
const canvas = document.querySelector("canvas"), { width, height } = canvas.getBoundingClientRect();
const column = (k) => points.subarray(k * n, (k + 1) * n);
const hues = Array.from({ length: 254 }, (_, k) => [k / 254, 1 - k / 254, ((37 * k) %% 254) / 254, 1]);
const plot = createScatterplot({ canvas, width, height, pointSize: 3, colorBy: "category", pointColor: hues });
const data = { x: column(0), y: column(1), z: column(2), w: new Float32Array(n) };
await plot.draw(data, { zDataType: "categorical", wDataType: "continuous" });
canvas.dataset.painted = 1;
plot.subscribe("select", ({ points }) => { document.querySelector(".count").textContent = points.length || ""; });
let turn = 0;
window.recolour = async () => {
  const began = performance.now();
  turn += 1;
  plot.set({ pointColor: hues.slice(turn).concat(hues.slice(0, turn)) });
  await new Promise(requestAnimationFrame);
  await new Promise(requestAnimationFrame);
  return performance.now() - began;
};
window.redraw = async () => {
  const began = performance.now();
  turn += 1;
  await plot.draw({ ...data, z: data.z.map((v) => (v + turn) %% 254) }, { zDataType: "categorical" });
  await new Promise(requestAnimationFrame);
  return performance.now() - began;
};
window.lasso = (on) => plot.set({ mouseMode: on ? "lasso" : "panZoom" });
</script>"""


def store(root: Path) -> tuple[str, np.ndarray, np.ndarray]:
    """Create a store with one evaluated run and its map; return the run id, the points (n, 2) and the classes (n,)."""
    from dmlcore.inspection.maps import maps
    from dmlcore.spec import RunSpec
    from dmlcore.storage import metrics_rows
    from dmlcore.storage.runs import RunStore
    from dmlcore.training.build import load_data

    random = np.random.default_rng(0)
    group = np.sort(np.concatenate([np.arange(CLASSES), random.integers(0, CLASSES, POINTS - CLASSES)]))
    middle = random.normal(size=(CLASSES, 2)) * 30
    points = (middle[group] + random.normal(size=(POINTS, 2))).astype(np.float32)
    data = shop(root / "sop", group)
    run = RunStore(root / "runs").create(RunSpec().with_overrides(["data.name=sop", f'data.root="{data}"']))
    with run.lock():
        run.mark_running()
        run.update(state="done")
    centres = random.normal(size=(CLASSES, 128)).astype(np.float32)
    embeddings = centres[group] + random.normal(size=(POINTS, 128)).astype(np.float32) / 2
    loaded = load_data(run.spec)
    indices = loaded.splits["test"]
    source = run.path / "embeddings" / f"{'ab' * 32}.npz"
    np.savez(source, embeddings=embeddings, labels=loaded.labels[indices], indices=indices)
    # The page reads from the last row which weights were tested; the value of the score is irrelevant here.
    row = {"kind": "scores", "of": "trained", "step": 0, "weights": source.stem}
    row |= {"map_at_r": None, "recall_at": {}, "queries": POINTS}
    (run.path / "metrics.jsonl").write_bytes(metrics_rows.to_line(row))
    settings = maps.Settings()
    facts = {"settings": settings.to_json(), "quality": None}
    maps.keep(maps.path_of(source, settings), facts, points=points, perplexity=np.array(30.0))
    return run.id, points, group


def shop(folder: Path, group: np.ndarray) -> Path:
    """Write lists and images in the layout of Stanford Online Products; all images are links to one file."""
    from PIL import Image

    folder.mkdir()
    kind = ("bicycle", "cabinet", "chair", "coffee_maker", "fan", "kettle", "lamp", "mug", "sofa", "stapler")
    Image.new("RGB", (16, 16), "#808080").save(folder / "one.jpg")
    number = 0
    for name, classes, first in (("train", np.repeat(np.arange(10), 2), 20_000), ("test", group, 1)):
        lines = ["image_id class_id super_class_id path"]
        for label in classes:
            number += 1
            path = folder / f"{kind[label % 10]}_final" / f"{number:012d}.JPG"
            path.parent.mkdir(exist_ok=True)
            os.link(folder / "one.jpg", path)
            lines.append(f"{number} {label + first} {label % 10 + 1} {path.parent.name}/{path.name}")
        (folder / f"Ebay_{name}.txt").write_text("\n".join(lines) + "\n")
    return folder


class Traffic:
    """Counter of the bytes that a page receives: WebSocket messages, and responses under /api/."""

    def __init__(self, session: Any) -> None:
        self.down = 0
        self._ours: set[str] = set()
        session.send("Network.enable")
        session.on("Network.webSocketFrameReceived", self._message)
        session.on("Network.requestWillBeSent", self._request)
        session.on("Network.loadingFinished", self._response)

    def _message(self, event: dict[str, Any]) -> None:
        frame = event["response"]
        text = frame["payloadData"]
        self.down += len(base64.b64decode(text)) if frame["opcode"] == 2 else len(text)

    def _request(self, event: dict[str, Any]) -> None:
        if "/api/" in event["request"]["url"]:
            self._ours.add(event["requestId"])

    def _response(self, event: dict[str, Any]) -> None:
        self.down += int(event["encodedDataLength"]) * (event["requestId"] in self._ours)


def ring(page: Any, box: dict[str, float]) -> None:
    """Draw a star-shaped lasso with 48 corners around the centre of `box`, without releasing the mouse button."""
    x, y, r = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 0.2 * min(box["width"], box["height"])
    page.mouse.move(x + r, y)
    page.mouse.down()
    for k in range(1, 49):
        reach = r * (1 if k % 2 else 0.85)
        page.mouse.move(x + reach * math.cos(k * math.pi / 24.5), y + reach * math.sin(k * math.pi / 24.5))
        page.wait_for_timeout(5)
    page.wait_for_timeout(300)


def fulfil(path: str, body: bytes, route: Any) -> None:
    """Answer a request of the page with `body`, of the type that the ending of its path names."""
    kind = {"html": "text/html", "js": "text/javascript"}.get(path.rpartition(".")[2], "application/octet-stream")
    route.fulfill(body=body, content_type=kind)


def visit(
    browser: Any, url: str, recolour: Callable[[Any], float], lasso: Callable[[Any], object], routes: dict[str, bytes]
) -> tuple[dict[str, float], int, dict[str, float]]:
    """Open a page, pan, recolour and draw a lasso; return the measurements, the count and the box of the canvas."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    for path, body in routes.items():
        page.route(f"**{path}", partial(fulfil, path, body))
    session = context.new_cdp_session(page)
    traffic = Traffic(session)
    session.send("Performance.enable")
    page.goto(url, wait_until="commit")
    ready = SHOWN if not routes else "document.querySelector('canvas.map[data-painted]')"
    measured = {"first paint": page.evaluate(PAINTED % ready)}
    page.wait_for_timeout(2500)
    measured["down"] = traffic.down / 1000
    session.send("HeapProfiler.collectGarbage")

    def metrics() -> dict[str, float]:
        return {row["name"]: row["value"] for row in session.send("Performance.getMetrics")["metrics"]}

    measured["heap"] = metrics()["JSHeapUsedSize"] / 1e6
    canvas = page.locator("canvas.map").element_handle()
    box = page.locator("canvas.map").bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + 0.7 * box["height"])
    page.mouse.down()
    before = metrics()["TaskDuration"]
    times = np.array(page.evaluate(PAN, [canvas, 3.0]))
    measured["pan, main thread"] = 1000 * (metrics()["TaskDuration"] - before) / len(times)
    page.mouse.up()
    measured["pan, frames per second"] = 1000 * (len(times) - 1) / (times[-1] - times[0])
    measured["pan, p95 of frames"] = float(np.percentile(np.diff(times), 95))
    page.wait_for_timeout(500)
    measured["recolour"] = recolour(page)
    page.wait_for_timeout(500)
    lasso(page)
    page.wait_for_timeout(300)
    page.evaluate(COUNTED, page.query_selector(".count"))
    ring(page, box)
    page.mouse.up()
    measured["lasso"], text = page.evaluate("counted")
    count = int(re.sub(r"\D", "", text))
    if not routes:
        page.get_by_text(f"{count:,} samples selected").wait_for()  # Python's count
    context.close()
    return measured, count, box


def recolour(page: Any) -> float:
    """Return the milliseconds that the map page takes to colour by split and back, the second time."""
    handles = [page.query_selector("select[aria-label='colour by']"), page.query_selector("canvas.map")]
    times = []
    for _ in range(4):
        times.append(page.evaluate(RECOLOUR, handles))
        page.wait_for_timeout(500)
    return float(np.median(times[2:]))


def bundle(modules: Path) -> bytes:
    """Return regl-scatterplot of a folder node_modules as one minified script."""
    command = [str(ROOT / "node_modules/.bin/esbuild"), "--bundle", "--minify", "--format=esm"]
    source = 'export { default } from "regl-scatterplot"'
    environment = os.environ | {"NODE_PATH": str(modules.resolve())}
    return subprocess.run(command, env=environment, input=source.encode(), capture_output=True, check=True).stdout


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--rival", type=Path, help="folder node_modules with regl-scatterplot")
    arguments = parser.parse_args()
    print(f"{machine('streamlit')}; {POINTS:,} points of {CLASSES:,} classes, medians of {arguments.repeats}")
    results: dict[str, list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        run, points, group = store(root)
        script = bundle(arguments.rival) if arguments.rival else b""
        with served(root / "runs") as (url, _), chromium() as browser:
            for repeat in range(arguments.repeats + 1):
                measured, _, box = visit(
                    browser,
                    f"{url}/explore?run={run}",
                    recolour,
                    lambda page: page.get_by_role("button", name="Lasso").click(),
                    {},
                )
                shown = {"map page": measured}
                if script:
                    unit = 2 * (points - points.min(0)) / np.ptp(points, axis=0) - 1
                    body = np.concatenate([*unit.T, group % 254]).astype(np.float32).tobytes()
                    page = (RIVAL % (box["width"], box["height"])).encode()
                    shown["regl-scatterplot"], *_ = visit(
                        browser,
                        f"{url}/rival.html",
                        lambda page: [page.evaluate("recolour()"), page.evaluate("redraw()")][1],
                        lambda page: page.evaluate("lasso(true)"),
                        {"/rival.html": page, "/regl.js": script, "/points.bin": body},
                    )
                    shown["regl-scatterplot"]["down"] = (len(script) + len(body)) / 1000
                for name, row in shown.items():
                    # the first repetition only fills the server's caches
                    results.setdefault(name, []).extend([row] if repeat else [])
    for name, rows in results.items():
        for key, unit in UNITS.items():
            values = [row[key] for row in rows]
            print(f"{name:18s} {key:24s} {np.median(values):8.1f} {unit}   ({min(values):.1f} to {max(values):.1f})")


if __name__ == "__main__":
    main()
