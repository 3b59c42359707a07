"""Reports and history in a real browser, of events that a real name server recorded and the pipeline's own commands
landed."""

import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import httpx
import pytest
from playwright.sync_api import expect

from mqnamesrv.store import EmbeddedStore
from testbed.browsing import Chromium, Visitor, chromium
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.process import Process
from tests.api.console.test_in_browser import PICTURES, WINDOWS, broker
from tests.mqns.cli.conftest import http_side
from tests.mqpipeline.conftest import QUICKLY_COMPILED

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(600)]

LANDED_S = 400.0
ANSWERED_S = 60.0
TOPIC = "Everywhere"


class Landed(NamedTuple):
    """The console of a service with reports and history, and times before and after a permission was taken, as a page
    takes them."""

    console: str
    before: str
    after: str


def now(url: str) -> str:
    """Return the time by the store's clock, in ms."""
    return str(httpx.get(f"{url}/readyz", trust_env=False).json()["nowMillis"])


def live(url: str) -> tuple[str, str]:
    """Register three brokers, take the write permission of one; return times before and after that."""
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        for number in range(3):
            client.post("/v1/brokers", json=broker(number)).raise_for_status()
        before = now(url)
        taken = client.post("/v1/brokers/broker-001/write-permission", json={"writable": False})
        taken.raise_for_status()
    return before, now(url)


@pytest.fixture(scope="module")
def landed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Landed]:
    folder = tmp_path_factory.mktemp("pipeline")
    store = EmbeddedStore(folder / "store", keep=False)
    store.start()
    server = NameServer(folder / "server", {"httpWorkers": "1", "remotingWorkers": "1"}, url=store.url)
    environment = {**os.environ, "JDK_JAVA_OPTIONS": QUICKLY_COMPILED}
    warehouse = ("--warehouse", str(folder / "warehouse"))
    command = (sys.executable, "-m", "mqpipeline.cli")
    processes: list[Process] = []

    def start(name: str, *arguments: str) -> Process:
        processes.append(Process(name, [*command, name, *warehouse, *arguments], folder / name, environment))
        return processes[-1]

    try:
        url = http_side(server.start())
        before, after = live(url)
        start("run", "--url", store.url).await_end(LANDED_S)
        start("answer", "--queue", store.url)
        eventually(
            lambda: httpx.get(f"{url}/v1/history/routes/{TOPIC}?at={after}", trust_env=False).is_success,
            ANSWERED_S,
        )
        yield Landed(f"{url}/console", before, after)
    finally:
        for process in processes:
            process.kill()
        server.stop()
        store.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as browser:
        yield browser


@pytest.fixture(params=("light", "dark", "phone"))
def visitor(request: pytest.FixtureRequest, browser: Chromium) -> Iterator[Visitor]:
    width, height, scheme = WINDOWS[request.param]
    with browser.window(width, height, scheme, checked=True) as visitor:
        yield visitor
        if PICTURES:
            visitor.page.screenshot(path=Path(PICTURES) / f"{request.node.name}.png", full_page=True)
        assert visitor.complaints() == []
        assert not visitor.is_wider_than_its_window
        assert visitor.problems == []


def test_a_report_is_read_and_leads_to_the_broker_it_is_of(visitor: Visitor, landed: Landed) -> None:
    page = visitor.open(f"{landed.console}/reports")
    page.get_by_role("main").get_by_role("link", name="Availability").click()
    table = page.get_by_role("region", name="Availability")
    expect(table).to_contain_text("broker-001")
    assert visitor.complaints() == []
    table.get_by_role("link", name="broker-001", exact=True).first.click()
    expect(page.get_by_role("heading", name="broker-001", level=1)).to_be_visible()


def test_a_route_of_the_past_is_asked_for(visitor: Visitor, landed: Landed) -> None:
    page = visitor.open(f"{landed.console}/history?ask=route&topic={TOPIC}&at={landed.before}")
    route = page.get_by_role("region", name="The route")
    expect(route.get_by_role("row").filter(has_text="broker-001")).to_contain_text("RW-")
    page.goto(f"{landed.console}/history?ask=route&topic={TOPIC}&at={landed.after}")
    expect(route.get_by_role("row").filter(has_text="broker-001")).to_contain_text("R--")


def test_the_change_of_a_permission_is_found(visitor: Visitor, landed: Landed) -> None:
    page = visitor.open(f"{landed.console}/topics/{TOPIC}")
    page.get_by_role("link", name="Its history").click()
    form = page.get_by_role("region", name="Permissions of a topic over time")
    expect(form.get_by_label("Topic")).to_have_value(TOPIC)
    form.get_by_role("button", name="Show permissions").click()
    changes = page.get_by_role("region", name="Changes of permissions")
    expect(changes).to_contain_text("broker-001")
    expect(changes).to_contain_text("wipe")
