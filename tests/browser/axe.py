"""Violations that axe-core finds on pages. `python -m tests.browser.axe URL [address ...]` counts them per page, light
and dark.
"""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

from pages.shared.widgets import menu
from tests.browser.harness import CHROMIUM_FLAGS, LOOK, PATIENCE, ROOT, THEMES, chromium_path, eventually, go

SOURCE = ROOT / "node_modules" / "axe-core" / "axe.min.js"  # package.json
GRAVE = ("serious", "critical")
# Rules whose result depends on the theme; all others need to run in one theme only.
OF_COLOURS: dict[str, object] = {"runOnly": ["color-contrast", "link-in-text-block"]}
# Style sheets are not fetched and parsed again, since only an audio rule needs them.
OF_GRAVE: dict[str, object] = {"preload": False, "grave": True}
# Violations of Streamlit's own elements, which a page cannot fix: rule, part of the element, and reason.
KNOWN: tuple[tuple[str, str, str], ...] = ()

# Marks of one kind in a chart are alike and number in the hundreds, so only the first of each kind is checked, and none
# by the colour rules, which axe can never decide for drawings. With `grave`, rules of lesser impact are skipped.
_RUN = """async ({ grave, ...options }) => {
  const kinds = options.runOnly ? ".vega-embed svg" : '.vega-embed g[class^="mark-"]:not(.mark-group)';
  const thinned = [...document.querySelectorAll(kinds)].map((kind) => [kind, [...kind.childNodes]]);
  for (const [kind, marks] of thinned) kind.replaceChildren(...marks.slice(0, options.runOnly ? 0 : 1));
  const lesser = axe._audit.rules.filter(({ impact }) => ["minor", "moderate"].includes(impact));
  const rules = grave ? Object.fromEntries(lesser.map(({ id }) => [id, { enabled: false }])) : {};
  const found = await axe.run(document, { resultTypes: ["violations"], rules, ...options });
  for (const [kind, marks] of thinned) kind.replaceChildren(...marks);
  return found.violations.flatMap(({ id, impact, help, nodes }) => nodes.map((node) => ({
    rule: id, impact, help, html: node.html.slice(0, 300), why: node.any.concat(node.all, node.none)
      .map((check) => check.message).join("; "), at: node.target.flat(9).join(" ") })));
}"""
# Count the animation frames that the app's own modules request, and list the running animations, over the given
# milliseconds.
_COUNT = """() => {
  if (window.framesAsked !== undefined) return;
  const plain = window.requestAnimationFrame;
  window.framesAsked = 0;
  window.requestAnimationFrame = (act) => {
    if (new Error().stack.includes("/api/assets/")) window.framesAsked++;
    return plain.call(window, act);
  };
}"""
_MOVES = """(wait) => new Promise((done) => {
  const before = window.framesAsked;
  setTimeout(() => {
    const roots = [document];
    for (const root of roots)
      for (const node of root.querySelectorAll("*")) if (node.shadowRoot) roots.push(node.shadowRoot);
    const forever = roots.flatMap((root) => root.getAnimations()).filter((animation) =>
      animation.playState === "running" && animation.timeline === document.timeline
      && animation.effect.getComputedTiming().endTime === Infinity);
    done([window.framesAsked - before, forever.map((animation) => animation.animationName)]);
  }, wait);
})"""
# True once Streamlit has run the page's script and every component has built its content.
_COMPLETE = """() => {
  const app = document.querySelector('[data-testid="stApp"]');
  const built = [...document.querySelectorAll('[data-testid^="stBidiComponent"]')]
    .every((node) => node.querySelector("*") || node.shadowRoot?.querySelector("*"));
  return app?.dataset.testScriptState === "notRunning" && built
    && !document.querySelector('[data-testid="stSkeleton"], [data-stale="true"], [role="dialog"]');
}"""


@dataclass(frozen=True)
class Violation:
    """An element that breaks a rule of axe."""

    rule: str
    impact: str
    help: str
    html: str
    why: str
    at: str

    @property
    def known(self) -> bool:
        """True if the violation is listed in `KNOWN`."""
        return any(self.rule == rule and piece in self.html + self.at for rule, piece, _ in KNOWN)

    @property
    def grave(self) -> bool:
        """True if the impact is serious or critical."""
        return self.impact in GRAVE

    def __str__(self) -> str:
        return f"{self.impact} {self.rule}: {self.html} ({self.why})"


def path(address: str) -> str:
    """Return the path of a page of the menu; the first page is at the root."""
    return "" if address == menu.FIRST else address


def prepare(page: Any) -> None:
    """Load axe into a page that shows the app, and count animation frames from now on; both last until the next page
    load.
    """
    if not page.evaluate("'axe' in window"):
        page.evaluate(SOURCE.read_text())
    page.evaluate(_COUNT)


def violations(page: Any, options: dict[str, object] | None = None) -> list[Violation]:
    """Return the violations that axe finds on the current page, by all its rules or by `options`."""
    return [Violation(**found) for found in page.evaluate(_RUN, options or {})]


def motion(page: Any, milliseconds: int = 400) -> tuple[int, list[str]]:
    """Return the number of frames that the app's modules request in this time, and the names of endless animations."""
    frames, animations = page.evaluate(_MOVES, milliseconds)
    return frames, animations


def rested(page: Any) -> None:
    """Wait until the page is complete and nothing moves; the tab must prefer reduced motion."""

    def still() -> None:
        assert page.evaluate(_COMPLETE), "the page is still being drawn"
        assert motion(page) == (0, []), f"{page.url} is still moving"

    eventually(still, 3 * PATIENCE)


def themed(page: Any, theme: str) -> None:
    """Switch the page to a theme and wait until it is applied."""
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    paper = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[theme]
    page.wait_for_function(
        "(paper) => getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor === paper",
        arg=paper,
        polling=1000 * LOOK,
    )


def main() -> None:
    """Print a table of the violations, followed by each distinct violation."""
    from playwright.sync_api import sync_playwright

    url, addresses = sys.argv[1].rstrip("/"), sys.argv[2:] or list(menu.PLACES)
    distinct: Counter[str] = Counter()
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        page = browser.new_page(viewport={"width": 1440, "height": 900}, reduced_motion="reduce")
        print(f"{'page':14} {'light: grave, other':20} dark: grave, other")
        for address in addresses:
            go(page, f"{url}/{path(address)}")
            prepare(page)
            counts = []
            for theme in THEMES:
                themed(page, theme)
                try:
                    rested(page)
                except AssertionError as error:
                    print(error)
                found = violations(page)
                counts.append(f"{sum(v.grave for v in found):4}, {sum(not v.grave for v in found):4}")
                distinct.update(f"{v} [{address}]" if v.grave else f"{v.impact} {v.rule}" for v in found)
            print(f"{address:14} {counts[0]:20} {counts[1]}", flush=True)
        browser.close()
    for text, times in sorted(distinct.items()):
        print(f"{times} x {text}")


if __name__ == "__main__":
    main()
