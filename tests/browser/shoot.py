"""Screenshots of pages, light and dark, 1440 and 900 px wide: python -m tests.browser.shoot URL [page ...]"""

from __future__ import annotations

import sys

from tests.browser.harness import CHROMIUM_FLAGS, SCREENSHOTS, THEMES, WIDTHS, chromium_path


def main() -> None:
    from playwright.sync_api import sync_playwright

    url, pages = sys.argv[1].rstrip("/"), sys.argv[2:] or ["", "settings", "runs", "neighbours", "explore"]
    SCREENSHOTS.mkdir(exist_ok=True)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium_path(), args=CHROMIUM_FLAGS)
        for theme in THEMES:
            for width in WIDTHS:
                context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=theme)
                page = context.new_page()
                page.on("pageerror", lambda error: print("page error:", error))
                for name in pages:
                    page.goto(f"{url}/{name}")
                    page.wait_for_timeout(3500)
                    slug = "".join(c if c.isalnum() else "-" for c in name) or "home"
                    target = SCREENSHOTS / f"{slug}-{theme}-{width}.png"
                    page.screenshot(path=target, full_page=False)
                    print(target)
                context.close()
        browser.close()


if __name__ == "__main__":
    main()
