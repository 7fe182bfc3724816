"""Gallery pages of 10 queries x 8 neighbours from 60,502 images and an uploaded query, compared with 80 x st.image.

The store holds one run per network with the results of an evaluation on Stanford Online Products: 60,502 embeddings of
11,316 classes in 128 dimensions, drawn from a mixture on the sphere, and 320 x 240 photographs, which are links to 200
different files. The networks have checkpoints but are untrained, which does not affect the page.

neighbours: time of the search, which a job performs once, and time that a page needs to read its result.
warm page: time from a click on the next page, whose images have not been requested before, to the frame after the last
of its 90 images was decoded. The baseline is a page of 80 x st.image in ten rows of columns, in the same browser and
run. Both are measured again after a pause of four seconds, in which the gallery prefetches the images of the next page.
opened: time from the navigation of a browser with an empty cache, including Streamlit's own front end.
upload: time from choosing a photograph of 1600 x 1200 to the frame after its 16 neighbours are shown. The network is
loaded before, when the user opens the form; that time is reported as well.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.browser import chromium, served
from benchmarks.harness import command_line, machine, report, verdict

POINTS, CLASSES, PHOTOGRAPHS = 60_502, 11_316, 200
NETWORKS = (("resnet18", 64), ("resnet50", 224))
LOOK = 4.0  # seconds
GOALS = {"warm page": 1000.0, "upload": 2000.0}  # ms

# JavaScript function that returns the milliseconds from `began` to the frame in which `count` images that match the
# selector are decoded and the first of them differs from the image `before`.
SHOWN = """
const shown = ([selector, count], before, began) => new Promise((done) => {
  const whole = (x) => x.complete && x.naturalWidth;
  const look = () => {
    const now = [...document.querySelectorAll(selector)];
    if (now.length < count || now[0].src === before || !now.every(whole)) return setTimeout(look, 4);
    Promise.all(now.map((x) => x.decode())).then(
      () => requestAnimationFrame(() => done(performance.now() - began)), look);
  };
  look();
});
"""
OPENED = "(wanted) => {" + SHOWN + "return shown(wanted, '', 0); }"
# Calls `shown` on the next event of the given kind and measures the time from that event.
AFTER = (
    "([kind, ...wanted]) => {"
    + SHOWN
    + """
  const before = document.querySelector(wanted[0])?.src;
  window.painted = new Promise((done) => addEventListener(kind, () => {
    shown(wanted, before, performance.now()).then(done);
  }, { capture: true, once: true }));
}"""
)

RIVAL = """
import json, streamlit as st
st.set_page_config(layout="wide")
files = json.load(open({files!r}))
@st.fragment
def show():
    page = st.pagination(100, key="page")
    for row in range(10):
        for at, column in enumerate(st.columns(8)):
            column.image(files[(page - 1) * 80 + row * 8 + at], width=110)
show()
"""


def store(root: Path, points: int) -> dict[str, Any]:
    """Create a store with one evaluated run per network, and the image files for the baseline.

    Returns the run IDs by network name.
    """
    from PIL import Image

    random = np.random.default_rng(0)
    labels = np.sort(np.concatenate([np.arange(CLASSES), random.integers(0, CLASSES, points - CLASSES)]))
    (root / "drawn").mkdir()
    drawn = []
    for number in range(PHOTOGRAPHS):
        small = Image.fromarray(random.integers(0, 255, (8, 10, 3), np.uint8))
        drawn.append(root / "drawn" / f"{number}.jpg")
        small.resize((320, 240), Image.Resampling.BICUBIC).save(drawn[-1], quality=85)
    shop = root / "sop"
    files = []
    number = 0
    for split, classes in (("train", np.repeat(np.arange(20), 2)), ("test", labels)):
        first = 1 if split == "train" else 21
        lines = ["image_id class_id super_class_id path"]
        for label in classes + first:
            number += 1
            folder = shop / f"chair_final{number // 2000}"
            folder.mkdir(parents=True, exist_ok=True)
            path = folder / f"{number}.JPG"
            os.link(drawn[number % PHOTOGRAPHS], path)
            lines.append(f"{number} {label} 3 {path.relative_to(shop)}")
            files.append(str(path))
        (shop / f"Ebay_{split}.txt").write_text("\n".join(lines) + "\n")
    Image.fromarray(random.integers(0, 255, (30, 40, 3), np.uint8)).resize((1600, 1200)).save(
        root / "own.jpg", quality=90
    )
    (root / "files.json").write_text(json.dumps(files))

    centres = random.normal(size=(CLASSES, 128))
    x = centres[labels] + 1.2 * random.normal(size=(points, 128))
    embeddings = (x / np.linalg.norm(x, axis=1, keepdims=True)).astype(np.float32)
    return {f"{name} {side}": evaluated(root / "runs", shop, name, side, embeddings) for name, side in NETWORKS}


def evaluated(runs: Path, shop: Path, name: str, side: int, embeddings: np.ndarray) -> str:
    """Create a run with a checkpoint of an untrained network and the given test embeddings; return its ID."""
    import torch

    from dmlcore.spec import RunSpec
    from dmlcore.storage import checkpoint, metrics_rows
    from dmlcore.storage.runs import RunStore
    from dmlcore.training.build import build, load_data
    from dmlcore.training.checkpoint_writer import save
    from dmlcore.training.state import embedder

    overrides = ["data.name=sop", f'data.root="{shop}"', f"data.image_size={side}", f"model.name={name}"]
    more = ["batch.classes=8", "batch.samples=2", "model.embedding_dim=128", "device=cpu"]
    spec = RunSpec(name=f"{name} {side}").with_overrides([*overrides, *more])
    run = RunStore(runs).create(spec)
    data = load_data(run.spec)
    state = build(run.spec, data, torch.device("cpu"), start=False)
    digest = checkpoint.digest_of(embedder(state).state_dict())
    save(run, state, 0)
    indices = data.splits["test"]
    np.savez(
        run.path / "embeddings" / f"{digest}.npz", embeddings=embeddings, labels=data.labels[indices], indices=indices
    )
    unscored = {"map_at_r": None, "recall_at": {}, "queries": len(indices)}
    row = {"kind": "scores", "of": "trained", "step": 0, "weights": digest} | unscored
    (run.path / "metrics.jsonl").write_bytes(metrics_rows.to_line(row))
    with run.lock():
        run.mark_running()
        run.update(state="done")
    return run.id


def neighbours(runs: Path, ids: list[str]) -> None:
    """Search all neighbours once; print the time of the search, and the time in which a page reads its result."""
    from dmlcore.inspection import neighbours as learned
    from dmlcore.storage.runs import RunStore

    sources = [RunStore(runs).open(name).embeddings() for name in ids]
    began = time.perf_counter()
    learned.keep(sources[0])
    took = time.perf_counter() - began
    for source in sources[1:]:  # all runs have equal embeddings, so copy the result of the search
        shutil.copy(learned.path_of(sources[0]), learned.path_of(source))
    times = []
    for _ in range(5):
        began = time.perf_counter()
        stored = learned.read(sources[0])
        times.append(1000 * (time.perf_counter() - began))
    kept = learned.path_of(sources[0]).stat().st_size / 1e6
    print(
        f"neighbours: searched once in {took:.1f} s, {kept:.0f} MB next to {sources[0].stat().st_size / 1e6:.0f} MB; "
        f"read in {np.median(times):.0f} ms (R@1 {100 * stored.recall_at_1:.1f} %)"
    )


def turned(page: Any, selector: str, count: int, pages: int, rest: float = 0.0) -> list[float]:
    """Return, for each of `pages` clicks on "next page", the milliseconds until the images of that page are painted."""
    times = []
    for _ in range(pages):
        page.wait_for_timeout(1000 * rest)
        page.evaluate(AFTER, ["pointerup", selector, count])
        page.get_by_test_id("stPaginationNext").click()
        times.append(page.evaluate("window.painted"))
    return times


def goal(name: str, times: list[float]) -> str:
    """Format the goal for the measurement `name`, and whether the median of `times` reaches it."""
    return f"goal under {GOALS[name]:.0f}: {verdict(float(np.median(times)) < GOALS[name])}"


def main() -> None:
    """Create the store, then measure and print all times."""
    parser = command_line(__doc__)
    parser.add_argument("--pages", type=int, default=5, help="pages to turn, alternating between ours and the rival")
    parser.add_argument("--points", type=int, default=POINTS)
    parser.add_argument("--uploads", type=int, default=3)
    arguments = parser.parse_args()
    print(f"{arguments.points:,} images of {CLASSES:,} classes; {machine('streamlit')}", flush=True)
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        root = Path(folder)
        os.environ["DML_CACHE"] = str(root / "cache")
        ids = store(root, arguments.points)
        neighbours(root / "runs", list(ids.values()))
        script = root / "rival.py"
        script.write_text(RIVAL.format(files=str(root / "files.json")))
        ours, theirs = stack.enter_context(served(root / "runs", script))
        browser = stack.enter_context(chromium())

        def fresh() -> Any:
            page = browser.new_page(viewport={"width": 1440, "height": 3200})
            page.set_default_timeout(60_000)
            return page

        first = next(iter(ids.values()))
        tiles, images = (".neighbours img", 90), ('[data-testid="stImage"] img', 80)
        opened = []
        for _ in range(3):
            page = fresh()
            page.goto(f"{ours.url}/neighbours?run={first}")
            opened.append(page.evaluate(OPENED, list(tiles)))
        rival = fresh()
        rival.goto(theirs.url)
        rival.evaluate(OPENED, list(images))
        report("opened, first time on this server", opened[:1])
        report("opened", opened[1:])
        for name, rest in (
            ("warm page of 10 x 8 neighbours and 10 queries", 0.0),
            (f"after a pause of {LOOK:g} s", LOOK),
        ):
            mine, its = (turned(p, *source, arguments.pages, rest) for p, source in ((page, tiles), (rival, images)))
            ratio = report(name, mine, goal("warm page", mine)) / report("80 x st.image, same pause", its)
            print(f"ratio: {ratio:.2f}")
        for name, run in ids.items():
            uploaded(fresh(), f"{ours.url}/neighbours?run={run}&view=Own+picture", root / "own.jpg", name, arguments)


def uploaded(page: Any, address: str, file: Path, name: str, arguments: argparse.Namespace) -> None:
    """Upload an image repeatedly on the page at `address` and print the times."""
    began = time.perf_counter()
    page.goto(address)
    page.get_by_text("Whatever it shows").wait_for()
    print(f"{name} pixels: form and network ready after {time.perf_counter() - began:.1f} s")
    times = []
    for number in range(arguments.uploads):
        # append bytes that change the file but not the decoded image, so that no cache is used
        content = file.read_bytes() + b"\0" * number
        page.evaluate(AFTER, ["change", ".neighbours img", 17])
        page.locator("input[type=file]").set_input_files(
            {"name": f"{number}.jpg", "mimeType": "image/jpeg", "buffer": content}
        )
        times.append(page.evaluate("window.painted"))
        page.reload()
        page.get_by_text("Whatever it shows").wait_for()
    report(f"upload, {name} pixels", times, goal("upload", times))


if __name__ == "__main__":
    main()
