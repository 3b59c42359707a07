"""Chromium as an operator uses it: pages opened, forms sent, keys pressed (Playwright), and axe's word on them.

`testbed.browser` runs the same program for a page that is only looked at."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Final, Literal

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

from testbed.browser import NAMES
from testbed.needs import need

__all__ = ["Chromium", "Visitor", "chromium"]

OPTIONS: Final = (
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
"""Nothing of the browser's own is asked of other hosts."""
USEFUL: Final = """() => {
  const page = performance.getEntriesByType("navigation")[0];
  const painted = performance.getEntriesByName("first-contentful-paint")[0];
  return painted && page.loadEventEnd ? Math.max(page.domContentLoadedEventEnd, painted.startTime) : 0;
}"""
WIDER: Final = "document.documentElement.scrollWidth > document.documentElement.clientWidth"
PATIENCE_MS: Final = 30_000


class Visitor:
    """One window. `problems` are what its console said, and what failed in scripts."""

    def __init__(self, page: Page) -> None:
        self.page: Final = page
        self.problems: list[str] = []
        page.set_default_timeout(PATIENCE_MS)
        page.on("console", lambda message: self.problems.append(message.text))
        page.on("pageerror", lambda error: self.problems.append(str(error)))

    def open(self, url: str) -> Page:
        """Open a page, and return it when it is loaded."""
        self.page.goto(url, wait_until="load")
        return self.page

    def complaints(self) -> list[str]:
        """Return what axe finds wrong with the page for people who do not see it, or use no mouse."""
        found: list[dict[str, Any]] = Axe().run(self.page).response["violations"]
        return [f"{one['id']}: {[node['target'] for node in one['nodes'][:3]]}" for one in found]

    @property
    def is_wider_than_its_window(self) -> bool:
        """Whether a reader has to scroll sideways."""
        return bool(self.page.evaluate(WIDER))


class Chromium:
    """A running browser."""

    def __init__(self, browser: Browser) -> None:
        self._browser = browser

    @contextmanager
    def window(
        self,
        width: int = 1440,
        height: int = 900,
        scheme: Literal["light", "dark"] = "light",
        *,
        checked: bool = False,
    ) -> Iterator[Visitor]:
        """Yield a window without cookies and cache; `checked`: axe's script may run in its pages, which their policy
        forbids."""
        context = self._browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme, bypass_csp=checked
        )
        try:
            yield Visitor(context.new_page())
        finally:
            context.close()

    def useful_ms(self, url: str) -> float:
        """Return after how many ms a page was parsed, its scripts had run, and it was painted."""
        with self.window() as visitor:
            page = visitor.open(url)
            return float(page.wait_for_function(USEFUL).json_value())


@contextmanager
def chromium() -> Iterator[Chromium]:
    """Yield Debian's Chromium."""
    need("chromium")
    program = next(filter(None, map(shutil.which, NAMES)))
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=program, args=list(OPTIONS), chromium_sandbox=False
        )
        try:
            yield Chromium(browser)
        finally:
            browser.close()
