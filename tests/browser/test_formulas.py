"""Formulas: one typesetter on all pages, small and low subscripts, nothing cut at any width."""

from __future__ import annotations

import pytest

from dmlcore import losses
from dmlcore.figures.palette import INK
from dmlcore.geometry import derivations
from dmlcore.loss_analysis.active_region import active_region
from dmlcore.published.errata import errata
from pages.library.errata.words import marked
from pages.shared.server.static_files import version
from pages.shared.words.formulas import statements
from tests.browser.harness import BETWEEN, becomes, eventually, go

pytestmark = pytest.mark.browser

WIDTHS = (390, 1440)
# For every displayed formula of components and st.latex, return its text, its overflow, whether its box scrolls and
# fades, how far it leaves the window, the sizes of its subscripts, and its typeface.
MEASURE = """() => {
  const found = [], roots = [document];
  for (const root of roots) {
    for (const node of root.querySelectorAll("*")) if (node.shadowRoot) roots.push(node.shadowRoot);
    for (const box of root.querySelectorAll(".katex-display")) {
      if (!box.getClientRects().length) continue;
      const style = getComputedStyle(box), size = (node) => parseFloat(getComputedStyle(node).fontSize);
      const base = box.querySelector(".katex-html");
      found.push({
        text: box.querySelector("annotation").textContent,
        beyond: box.scrollWidth - box.clientWidth,
        hint: style.overflowX === "auto" && style.maskImage.includes("gradient")
          && parseFloat(style.getPropertyValue("--fade-right")) > 20,
        outside: box.getBoundingClientRect().right - innerWidth,
        subscripts: [...box.querySelectorAll(".msupsub .mtight")].map((node) => size(node) / size(base)),
        face: document.fonts.check("16px KaTeX_Math") && [...box.querySelectorAll(".mathnormal")]
          .every((node) => getComputedStyle(node).fontFamily === "KaTeX_Math"),
      });
    }
  }
  return found;
}"""


def everything() -> list[str]:
    """Return all LaTeX that a page can show: losses, regions, margin derivations, errata."""
    loss = [losses.formula(name) for name in losses.names()] + [losses.describe(name) for name in losses.batch_names()]
    regions = [active_region(losses.create(name), (0.0, 0.0), (0.5, 0.0)) for name in losses.names()]
    charges = [
        active_region(losses.create("distance_sensitive", r=r, m1=m1), (0.0, 0.0), (0.5, 0.0))
        for r in (-1, 0, 1, 2)
        for m1 in (-2.3, 1.0)
    ]
    margins = [
        derivations.explain_margin_for_ellipse(0.5, 0.1, 1, 1),
        derivations.explain_margin_enclosing(0.5, 0.1, 1, 2, 1),
        derivations.explain_margin_enclosing(0.5, 0.1, -1, 1, 1e-7),
        derivations.explain_balanced_rho(32, 4),
    ]
    told = [f"E = {formula.energy_latex}" for formula in loss]
    told += [statements(region.latex) for region in regions + charges if region.latex]
    told += [part for region in charges for part in region.shape.split("$")[1::2]]
    told += [line for found in margins for line in (*found.symbols, *found.numbers)]
    told += [marked(x, INK[False]["printedText"]) for e in errata() for x in (e.printed_latex, e.true_latex) if x]
    return told


def whole(page) -> list[dict]:
    """Return the formulas on the page; assert that each is inside its window and box, or scrolls visibly."""
    found = page.evaluate(MEASURE)
    assert found
    for formula in found:
        assert formula["beyond"] <= 1 or formula["hint"], formula
        assert formula["outside"] <= 0, formula
        assert all(0.4 < size < 0.85 for size in formula["subscripts"]), formula
        assert formula["face"], formula
    return found


def test_katex_reads_every_formula(page, server):
    go(page, f"{server.url}/{BETWEEN}")
    told = everything()
    failed = page.evaluate(
        """async ([module, told]) => {
          const { formula } = await import(module);
          const boxes = told.map((latex) => formula(latex));
          document.body.append(...boxes);
          const filled = (box) => box.hasChildNodes();
          while (!boxes.every(filled)) await new Promise((done) => setTimeout(done, 50)); // until KaTeX is loaded
          const bad = boxes.filter((box) => !box.querySelector(".katex-html") || box.querySelector(".katex-error"));
          for (const box of boxes) box.remove();
          return bad.map((box) => box.dataset.latex);
        }""",
        [f"/api/assets/{version()}/kit/formula/formula.js", told],
    )
    assert len(told) > 90
    assert failed == []


def test_no_formula_of_a_loss_is_cut(page, server):
    go(page, f"{server.url}/fields")
    page.wait_for_selector(".katex-display")
    for name in losses.names():
        page.get_by_label("loss", exact=True).select_option(name)
        wanted = [f"E = {losses.formula(name).energy_latex}"]
        region = active_region(losses.create(name), (0.0, 0.0), (0.5, 0.0)).latex
        if region and name != "distance_sensitive":  # its region has a formula for each r
            wanted.append(statements(region))
        becomes(lambda: [f["text"] for f in whole(page)], lambda shown, wanted=wanted: set(wanted) <= set(shown))
        at_all_widths(page)
    page.get_by_label("loss", exact=True).select_option("distance_sensitive")
    page.get_by_text("Margins and balance").click()
    becomes(lambda: len(whole(page)), lambda count: count > 10)
    at_all_widths(page)


@pytest.mark.parametrize("name", ["transport", "errata?loss=angular"])
def test_formulas_of_streamlit_itself_are_whole_too(page, server, name):
    go(page, f"{server.url}/{name}")
    closed = page.locator("details:not([open])").get_by_text("Method", exact=True)

    def shown() -> None:
        if closed.is_visible():  # a click before the page has drawn all is lost
            closed.click()
        page.wait_for_selector(".stMarkdown .katex-display", timeout=3000)

    eventually(shown)
    at_all_widths(page)


def at_all_widths(page) -> None:
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        eventually(lambda: whole(page))
