"""Drag to repaint on the compare page, two and four losses side by side, beside an empty fragment rerun, in Chromium.

The negative is moved once per frame; every answer carries the fields of all planes and their difference. The rival is a
key press on st.slider in a page whose fragment shows one number, as in benchmarks/fields.py.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.fields import DRAG, keys, report
from tests.e2e.harness import CHROMIUM_FLAGS, ROOT, Server, chromium_path

LINKS = {"two losses": "?n=0.3,0.5", "four losses": "?l3=angular&l4=moving"}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--presses", type=int, default=20, help="key presses on the rival's slider")
    parser.add_argument("--seconds", type=float, default=4.0, help="length of each drag")
    arguments = parser.parse_args()
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        runs = Path(folder) / "runs"
        rival = Server(runs, script=ROOT / "benchmarks" / "empty_rerun" / "app.py").start()
        ours = Server(runs).start()
        try:
            browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
            print(
                f"{platform.machine()}, {os.cpu_count()} cores, load {os.getloadavg()[0]:.1f}, {browser.version}, "
                f"streamlit {version('streamlit')}, viewport 1440 x 900"
            )
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            page.goto(rival.url)
            target = page.wait_for_selector("#answer").evaluate_handle("(el) => el.closest('[data-testid=stHtml]')")
            empty = keys(page, page.get_by_role("slider"), target, False, arguments.presses)
            report("empty fragment rerun, st.slider", empty)
            found = {}
            for name, link in LINKS.items():
                page.goto(f"{ours.url}/compare{link}")
                canvas = page.wait_for_selector("canvas.plane[data-seq]")
                page.wait_for_timeout(500)
                handle = page.get_by_role("button", name="negative at").first
                box = handle.bounding_box()
                page.mouse.move(box["x"] + 18, box["y"] + 18)
                page.mouse.down()
                drag = page.evaluate(DRAG, [canvas, handle.element_handle(), arguments.seconds])
                page.mouse.up()
                report(f"{name}: request to painted fields", drag["trips"], float(np.median(empty)))
                print(
                    f"{name}: {drag['fields']:.1f} new sets of fields a second at {drag['frames']:.1f} frames a second"
                )
                found[name] = drag["fields"]
            print(json.dumps({"sets_per_second": found}))
            browser.close()
        finally:
            rival.kill()
            ours.kill()


if __name__ == "__main__":
    main()
