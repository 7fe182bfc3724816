"""Map page with 60,502 points of 11,316 classes, compared with Plotly's scattergl in the same browser and run.

The store holds a run with the results of an evaluation on Stanford Online Products: embeddings and a map, with points
that are drawn from a mixture instead of training and t-SNE. Both pages are opened with an empty cache, from a server
that has shown them once:

first paint: time from the navigation to the frame after the one in which the points were drawn.
down: bytes of points and page data, that is, everything except Streamlit's own front end: every response under /api/ as
transferred, and every WebSocket message. For Plotly, every WebSocket message (its 4.7 MB of JavaScript are not
counted).
lasso to count: time from releasing the mouse to the frame after the one that shows the number of selected points. The
map page shows this number twice: first the browser's count, which is exact because it uses integers as Python does,
then Python's count in the selection bar, once the selection is stored. Both are compared with a count by numpy.
Plotly's page shows only Python's count.
up: bytes of all WebSocket messages after the release.
"""

from __future__ import annotations

import base64
import contextlib
import math
import os
import re
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.browser import chromium, served
from benchmarks.harness import command_line, machine, verdict

POINTS, CLASSES = 60_502, 11_316
GOALS = {"first paint": 2000.0, "down": 400.0, "up": 1.0, "lasso to count": 100.0}  # ms, kB, kB, ms
UNITS = {"first paint": "ms", "down": "kB", "up": "kB", "lasso to count": "ms", "lasso to Python's count": "ms"}

# `%s` stands for a condition in JavaScript. It is inserted into the source, because the app's pages forbid `eval`.
PAINTED = """() => new Promise((done, fail) => {
  const painted = () => requestAnimationFrame(() => done(performance.now()));
  const look = () => requestAnimationFrame(%s ? painted : look);
  setTimeout(() => fail(new Error("nothing was painted in two minutes")), 120000);
  look();
})"""
# JavaScript function that sets window.counted to a promise. It gives the milliseconds from the next release of the
# mouse to the frame after a text matches `pattern`, and the number in the text, for the whole page and, if given, for
# an element.
COUNTED = """([pattern, element]) => {
  const wanted = new RegExp(pattern), main = document.querySelector("[data-testid=stMain]");
  const until = (node) => new Promise((done, fail) => addEventListener("pointerup", () => {
    const began = performance.now();
    setTimeout(() => fail(new Error(`no count in a minute, but: ${node.textContent}`)), 60000);
    const look = () => {
      const found = wanted.exec(node.textContent);
      if (!found) return requestAnimationFrame(look);
      requestAnimationFrame(() => done([performance.now() - began, found[1]]));
    };
    look();
  }, { capture: true, once: true }));
  window.counted = Promise.all([until(main), ...(element ? [until(element)] : [])]);
}"""

RIVAL = """
import numpy as np, plotly.graph_objects as go, streamlit as st
st.set_page_config(layout="wide")
kept = np.load({path!r})
figure = go.Figure(go.Scattergl(x=kept["x"], y=kept["y"], mode="markers", marker=dict(size=4, color=kept["group"])))
figure.update_layout(dragmode="lasso", height=600, uirevision="one")
chosen = st.plotly_chart(figure, on_select="rerun", selection_mode="lasso", key="map")
count = len(chosen["selection"]["points"])
if count:
    st.write(f"{{count:,}} samples selected")
"""


def store(root: Path) -> tuple[str, np.ndarray, np.ndarray]:
    """Create a store with one evaluated run and its map; return the run id, the points (n, 2) and the classes (n,)."""
    from dmlcore.inspection.maps import maps
    from dmlcore.spec import RunSpec
    from dmlcore.storage import metrics_rows
    from dmlcore.storage.runs import RunStore

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
    from dmlcore.training.build import load_data

    indices = load_data(run.spec).splits["test"]
    source = run.path / "embeddings" / f"{'ab' * 32}.npz"
    np.savez(source, embeddings=embeddings, labels=load_data(run.spec).labels[indices], indices=indices)
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
    (folder / "one.jpg").parent.mkdir(exist_ok=True)
    Image.new("RGB", (16, 16), "#808080").save(folder / "one.jpg")
    number = 0
    for name, classes, first in (("train", np.repeat(np.arange(10), 2), 20_000), ("test", group, 1)):
        lines = ["image_id class_id super_class_id path"]
        for label in classes:
            number += 1
            class_number = kind[label % 10]
            path = folder / f"{class_number}_final" / f"{number:012d}.JPG"
            path.parent.mkdir(exist_ok=True)
            os.link(folder / "one.jpg", path)
            lines.append(f"{number} {label + first} {label % 10 + 1} {path.parent.name}/{path.name}")
        (folder / f"Ebay_{name}.txt").write_text("\n".join(lines) + "\n")
    return folder


class Traffic:
    """Counter of transferred bytes: WebSocket messages in both directions, and responses under /api/."""

    def __init__(self, page: Any) -> None:
        self.down, self.up, self.sent, self._ours = 0, 0, b"", set()
        self.parts: dict[str, int] = {}
        session = page.context.new_cdp_session(page)
        session.send("Network.enable")
        session.on("Network.webSocketFrameReceived", lambda e: self._down("messages", self._size(e)))
        session.on("Network.webSocketFrameSent", self._sent)
        session.on("Network.requestWillBeSent", self._asked)
        session.on("Network.loadingFinished", self._finished)
        self._names: dict[str, str] = {}

    @staticmethod
    def _size(event: dict[str, Any]) -> int:
        frame = event["response"]
        return len(base64.b64decode(frame["payloadData"])) if frame["opcode"] == 2 else len(frame["payloadData"])

    def _down(self, name: str, size: int) -> None:
        self.down += size
        self.parts[name] = self.parts.get(name, 0) + size

    def _sent(self, event: dict[str, Any]) -> None:
        self.up += self._size(event)
        if event["response"]["opcode"] == 2:
            self.sent += base64.b64decode(event["response"]["payloadData"])

    def _asked(self, event: dict[str, Any]) -> None:
        url = event["request"]["url"]
        if "/api/" in url:
            self._names[event["requestId"]] = (
                "points" if "/api/map/" in url else "component" if "assets" in url else "other"
            )

    def _finished(self, event: dict[str, Any]) -> None:
        if name := self._names.get(event["requestId"]):
            self._down(name, int(event["encodedDataLength"]))


def ring(page: Any, box: dict[str, float]) -> None:
    """Draw a star-shaped lasso with 48 corners around the centre of `box`, without releasing the mouse button."""
    x, y, r = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2, 0.2 * min(box["width"], box["height"])
    page.mouse.move(x + r, y)
    page.mouse.down()
    for k in range(1, 49):
        reach = r * (1 if k % 2 else 0.85)
        page.mouse.move(x + reach * math.cos(k * math.pi / 24.5), y + reach * math.sin(k * math.pi / 24.5))
    page.wait_for_timeout(300)  # wait before the caller releases the mouse button


def visit(browser: Any, url: str, ready: str, canvas: str, before: str | None) -> tuple[dict[str, float], Traffic, int]:
    """Open a page and draw a lasso; return the measurements, the traffic and the number of points shown."""
    context = browser.new_context(viewport={"width": 1440, "height": 900})
    page = context.new_page()
    traffic = Traffic(page)
    page.goto(url, wait_until="commit")
    measured = {"first paint": page.evaluate(PAINTED % ready)}
    page.wait_for_timeout(1500)  # wait, so that messages that arrive after the first paint are counted as well
    measured["down"] = traffic.down / 1000
    if before:
        page.get_by_role("button", name=before).click()
        page.wait_for_timeout(300)
    page.evaluate(COUNTED, [r"([\d,]+) (samples )?selected", page.query_selector(".count") if before else None])
    box = page.locator(canvas).first.bounding_box()
    ring(page, box)
    page.wait_for_timeout(100)
    traffic.up, traffic.sent = 0, b""
    page.mouse.up()
    (measured["lasso to Python's count"], text), *own = page.evaluate("counted")
    measured["lasso to count"], own_text = own[0] if own else (measured["lasso to Python's count"], text)
    assert own_text == text, f"the browser shows {own_text}, Python {text}"
    page.wait_for_timeout(300)
    measured["up"] = traffic.up / 1000
    context.close()
    return measured, traffic, int(text.replace(",", ""))


def truth(sent: bytes, points: np.ndarray) -> tuple[int, int]:
    """Count the points inside the lasso that the browser sent: with dmlcore, and with matplotlib as a check."""
    from matplotlib.path import Path as Outline

    from dmlcore.figures.maps import Sheet

    corners = re.search(rb'"polygon":"([A-Za-z0-9+/=]+)"', sent)
    assert corners, "no lasso was sent"
    polygon = np.frombuffer(base64.b64decode(corners[1]), "<u2").reshape(-1, 2).astype(int)
    sheet = Sheet.of(points, np.zeros(len(points), int), np.arange(len(points)))
    outline = Outline(np.vstack([polygon, polygon[:1]]), closed=True)
    return len(sheet.enclosed(polygon)), int(outline.contains_points(sheet.frames[0].astype(float)).sum())


def main() -> None:
    parser = command_line(__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    arguments = parser.parse_args()
    shown = f"{POINTS:,} points of {CLASSES:,} classes, medians of {arguments.repeats}"
    print(f"{machine('streamlit', 'plotly')}; {shown}")
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        root = Path(folder)
        run, points, group = store(root)
        np.savez(root / "rival.npz", x=points[:, 0], y=points[:, 1], group=group.astype(np.int16))
        script = root / "rival.py"
        script.write_text(RIVAL.format(path=str(root / "rival.npz")))
        ours, rival = stack.enter_context(served(root / "runs", script, rest=15))
        browser = stack.enter_context(chromium())
        pages = {
            "map page": (
                f"{ours.url}/explore?run={run}",
                "[...document.querySelectorAll('*')].some((e) => "
                "e.shadowRoot?.querySelector('canvas.map[data-painted]'))",
                "canvas.map",
                "Lasso",
            ),
            "Plotly scattergl": (
                rival.url,
                "(document.querySelector('.gl-canvas-focus') && document.querySelector('.xtick'))",
                ".js-plotly-plot .nsewdrag",
                None,
            ),
        }
        results: dict[str, list[dict[str, float]]] = {name: [] for name in pages}
        for repeat in range(arguments.repeats + 1):
            for name, page in pages.items():
                measured, traffic, count = visit(browser, *page)
                if name == "map page":
                    exact, in_matplotlib = truth(traffic.sent, points)
                    assert count == exact, f"shown {count}, true {exact}"
                    assert abs(count - in_matplotlib) <= 20, f"matplotlib finds {in_matplotlib}"
                    parts, counts = traffic.parts, (count, in_matplotlib)
                if repeat:  # the first repetition only fills the server's caches
                    results[name].append(measured)
    medians = {
        name: {key: float(np.median([one[key] for one in metrics_rows])) for key in UNITS}
        for name, metrics_rows in results.items()
    }
    for name, metrics_rows in results.items():
        for key, value in medians[name].items():
            spread = f"{min(row[key] for row in metrics_rows):.1f} to {max(row[key] for row in metrics_rows):.1f}"
            print(f"{name:18s} {key:24s} {value:8.1f} {UNITS[key]}   ({spread})")
    print("map page, down:", ", ".join(f"{part} {size / 1000:.1f} kB" for part, size in sorted(parts.items())))
    print(f"map page, last lasso: {counts[0]:,} points, equal to numpy's; matplotlib in floating point {counts[1]:,}")
    own, other = medians["map page"], medians["Plotly scattergl"]
    for key, goal in GOALS.items():
        rival_is = f"Plotly takes {other[key] / own[key]:.1f} times as much"
        print(f"{key}: {own[key]:.1f} {UNITS[key]}, goal {goal:g}: {verdict(own[key] <= goal)}; {rival_is}")


if __name__ == "__main__":
    main()
