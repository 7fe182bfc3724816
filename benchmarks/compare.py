"""Drag-to-repaint time of the compare page with two and four losses, compared with an empty fragment rerun.

The anchor moves once per frame; every response contains the fields of all planes and their difference. The baseline is
a key press on st.slider in a page with a fragment that shows one number, as in benchmarks/fields.py.
"""

from __future__ import annotations

from benchmarks.fields import arguments_of, dragged, open_bench, relative_to, report

LINKS = {"two losses": "?n=0.3,0.5", "four losses": "?l3=angular&l4=moving"}


def main() -> None:
    arguments = arguments_of(__doc__)
    with open_bench(arguments.presses) as bench:
        for name, link in LINKS.items():
            bench.page.goto(f"{bench.ours.url}/compare{link}")
            canvas = bench.page.wait_for_selector("canvas.plane[data-seq]")
            bench.page.wait_for_timeout(500)
            handle = bench.page.get_by_role("button", name="anchor at").first
            drag = dragged(bench.page, handle, canvas, arguments.seconds)
            report(f"{name}: request to painted fields", drag["trips"], relative_to(drag["trips"], bench.empty))
            print(
                f"{name}: {drag['fields']:.1f} new sets of fields per second at {drag['frames']:.1f} frames per second"
            )


if __name__ == "__main__":
    main()
