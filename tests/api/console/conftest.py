"""The console over a real store, as an operator without a token sees it on this machine."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py

from api.access_records import write_pending
from api.app import create_app
from registry.drivers import run
from registry.expiry.worker_lease import tick
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from tests.api.console.page import Browser
from tests.api.http import Http
from tests.api.test_tokens import access_file

BrowserOf = Callable[..., Browser]


@pytest.fixture
def browser_of(redis: redis_py.Redis) -> BrowserOf:
    """Return what makes a browser of an application with options, on a store whose lease clock was just renewed."""
    run(tick(Keys(), "w1", Origin("w1-1", "worker:w1")), redis)

    def browser(**options: Any) -> Browser:
        return Browser(create_app(Options(**options), redis=redis))

    return browser


@pytest.fixture
def browser(browser_of: BrowserOf) -> Browser:
    return browser_of()


@pytest.fixture
def api(browser: Browser) -> Http:
    """Return a client of the API of the same application."""
    return Http(browser.client)


class Guarded:
    """An application that wants tokens for all, and those of a reader and an operator."""

    def __init__(self, make: BrowserOf, folder: Path, **options: Any) -> None:
        path, self.tokens = access_file(folder)
        rules = {f"access_{name}": "token" for name in ("read", "admin", "audit", "config")}
        self.new: Callable[[], Browser] = lambda: make(access_file=str(path), **rules, **options)
        self.browser = self.new()


@pytest.fixture
def guarded(browser_of: BrowserOf, tmp_path: Path) -> Iterator[Guarded]:
    yield Guarded(browser_of, tmp_path)
    write_pending()  # which a thread would later, into the store of another test


@pytest.fixture
def guarded_with_rates(browser_of: BrowserOf, tmp_path: Path) -> Iterator[Guarded]:
    yield Guarded(browser_of, tmp_path, http_reads_per_second=20, http_writes_per_second=5)
    write_pending()
