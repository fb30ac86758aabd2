"""A real Chromium against a live site; what the console says and what leaves the site is kept."""

import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, sync_playwright

CHROMIUM = os.environ.get("PTXBOARD_CHROMIUM", "/usr/bin/chromium")
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
PHONE = {"width": 390, "height": 844}
DESKTOP = {"width": 1440, "height": 900}


@dataclass(slots=True)
class Visit:
    """A tab with what went wrong in it: console errors, and requests to other places."""

    page: Page
    site: str
    errors: list[str] = field(default_factory=list)

    def go(self, path: str) -> Page:
        self.page.goto(self.site + path, wait_until="load")
        return self.page


@pytest.fixture(autouse=True)
def doorbell(monkeypatch: pytest.MonkeyPatch, private_var: Path) -> None:
    """Nobody listens at the queues here."""
    monkeypatch.setattr("leaderboard.services.doorbell.app.send_task", lambda *a, **k: None)


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    """Fails, and does not skip, where Chromium is missing: `make test` installs it."""
    assert Path(CHROMIUM).exists(), (
        f"no Chromium at {CHROMIUM}; install it (apt-get install chromium) or set PTXBOARD_CHROMIUM"
    )
    # Playwright's own event loop would make Django refuse database calls in this thread.
    os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"] = "1"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGUMENTS)
        yield browser
        browser.close()
    del os.environ["DJANGO_ALLOW_ASYNC_UNSAFE"]


@pytest.fixture
def visit(browser: Browser, live_server) -> Iterator[Callable[..., Visit]]:
    """Open a tab: `visit(theme="dark", viewport=PHONE, scripts=False)`."""
    opened = []

    def open_tab(
        *, theme: str = "light", viewport: dict[str, int] = DESKTOP, scripts: bool = True
    ) -> Visit:
        context = browser.new_context(
            viewport=viewport, color_scheme=theme, java_script_enabled=scripts
        )
        opened.append(context)
        tab = Visit(page=context.new_page(), site=live_server.url)
        tab.page.on("console", lambda message: _note(tab, message.type, message.text))
        tab.page.on("pageerror", lambda error: tab.errors.append(str(error)))
        tab.page.on("request", lambda request: _note_request(tab, request.url))
        return tab

    yield open_tab
    for context in opened:
        context.close()


def _note(tab: Visit, kind: str, text: str) -> None:
    if kind in ("error", "warning"):
        tab.errors.append(text)


def _note_request(tab: Visit, url: str) -> None:
    if not url.startswith((tab.site, "data:")):
        tab.errors.append(f"request to {url}")
