"""What axe-core finds on pages: python -m tests.browser.axe URL [address ...] counts it for each, light and dark."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import dataclass
from typing import Any

from pages.shared.widgets import menu
from tests.browser.harness import CHROMIUM_FLAGS, LOOK, ROOT, THEMES, chromium_path, eventually, go

SOURCE = ROOT / "node_modules" / "axe-core" / "axe.min.js"  # package.json
GRAVE = ("serious", "critical")
# What another theme may change: the rest is found in one of them.
OF_COLOURS: dict[str, object] = {"runOnly": ["color-contrast", "link-in-text-block"]}
# No style sheet is fetched and parsed again, which only a rule of sound wants.
OF_GRAVE: dict[str, object] = {"preload": False, "grave": True}
# Streamlit's own, which a page cannot mend: the rule, a piece of the element, and why.
KNOWN: tuple[tuple[str, str, str], ...] = ()

# Marks of a chart are alike, by the hundred: of each kind the first is looked at. Of the colours in a drawing axe never
# knows enough to judge, so that for their rules none of it is. With grave, rules of lesser impact are not asked.
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
# How often the lab's own modules asked for a frame, and which animations run, over so many milliseconds.
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
# Streamlit has run the page's script, and every component has built what it shows.
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
        """Whether it is Streamlit's own."""
        return any(self.rule == rule and piece in self.html + self.at for rule, piece, _ in KNOWN)

    @property
    def grave(self) -> bool:
        """Whether it keeps somebody out."""
        return self.impact in GRAVE

    def __str__(self) -> str:
        return f"{self.impact} {self.rule}: {self.html} ({self.why})"


def path(address: str) -> str:
    """Where a page of the menu is: the first one is that of the root."""
    return "" if address == menu.FIRST else address


def prepare(page: Any) -> None:
    """Serve axe to a page that shows the app, and count its frames from now on; it stays until it is loaded again."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(SOURCE.read_text())
    page.evaluate(_COUNT)


def violations(page: Any, options: dict[str, object] | None = None) -> list[Violation]:
    """What axe finds on the page as it is, by all its rules or as these options of its own say."""
    return [Violation(**found) for found in page.evaluate(_RUN, options or {})]


def motion(page: Any, milliseconds: int = 400) -> tuple[int, list[str]]:
    """How many frames the lab's modules ask for in that time, and the names of the animations without an end."""
    frames, animations = page.evaluate(_MOVES, milliseconds)
    return frames, animations


def rested(page: Any) -> None:
    """Wait for the page to be there, and nothing to move on it: the tab asks for reduced motion."""

    def still() -> None:
        assert page.evaluate(_COMPLETE), "the page is being drawn"
        assert motion(page) == (0, []), f"{page.url} moves"

    eventually(still)


def themed(page: Any, theme: str) -> None:
    """Have the page in a theme, with all that follows."""
    page.emulate_media(color_scheme=theme, reduced_motion="reduce")
    paper = {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 22, 28)"}[theme]
    page.wait_for_function(
        "(paper) => getComputedStyle(document.querySelector('[data-testid=\"stApp\"]')).backgroundColor === paper",
        arg=paper,
        polling=1000 * LOOK,
    )


def main() -> None:
    """Print the table of findings, and each once below it."""
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
