"""The console in a real browser: an operator's jobs, page by page, with what axe and the browser say of each.

`CONSOLE_PICTURES=folder` has pictures of every page written there, to be looked at. `CONSOLE_BROKERS=1000` and
`CONSOLE_TOPICS=1000`, of each broker, are for a walk through a large name server."""

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, Literal

import httpx
import pytest
from playwright.sync_api import Page, expect

from testbed.browsing import Chromium, Visitor, chromium
from testbed.nameserver import NameServer
from testbed.process_tree import children, command_line
from testbed.processes import stopped
from tests.api.test_drift import DRIFT
from tests.api.test_tokens import access_file
from tests.mqns.cli.conftest import http_side

pytestmark = [pytest.mark.needs("chromium"), pytest.mark.timeout(300)]

PICTURES: Final = os.environ.get("CONSOLE_PICTURES", "")
WINDOWS: Final[dict[str, tuple[int, int, Literal["light", "dark"]]]] = {
    "light": (1440, 900, "light"),
    "dark": (1440, 900, "dark"),
    "phone": (400, 800, "light"),
    "wide": (2000, 1200, "dark"),
}
BROKERS: Final = int(os.environ.get("CONSOLE_BROKERS", "30"))
TOPICS: Final = int(os.environ.get("CONSOLE_TOPICS", "5"))
ALIKE: Final = 10
"""Of so many brokers one after another each has other topics; all have one more, `Everywhere`."""
HOSTILE: Final = "<img src=x onerror=document.title='broken'>"
PAGES: Final = (
    *(
        "",
        "brokers",
        "brokers?cluster=cluster-a&prefix=broker-00",
        "brokers?prefix=none",
        "brokers/broker-000",
    ),
    *(
        "brokers/none",
        "drains",
        "topics",
        "topics?prefix=Orders.1",
        "topics?prefix=none",
        "topics/Everywhere",
    ),
    *("topics/none", "events", "events?kind=drain_changed", "events?broker=none", "events/between"),
    *("events/between?last=hour", "audit", "findings", "drift", "reports", "history", "kv", "kv/app"),
    "kv/app/colour",
    *(
        "kv/none",
        "settings",
        "settings?all=1",
        "settings/orderMessageEnable",
        "settings/httpPort",
        "login",
        "none",
    ),
)
MISSING: Final = "status of 404"
"""What a browser's console says of a page of what is not there."""


def broker(number: int) -> dict[str, Any]:
    topics = ["Everywhere", *(f"Orders.{number % ALIKE}.{i}" for i in range(TOPICS))]
    return {
        "cluster": f"cluster-{'abc'[number % 3]}",
        "brokerName": f"broker-{number:03}",
        "brokerAddr": f"10.0.{number // 250}.{number % 250 + 1}:10911",
        "brokerId": 0,
        "zoneName": f"zone-{number % 2}",
        "heartbeatTimeoutMillis": 3_600_000,
        "dataVersion": {"timestamp": 1_796_000_000_000, "counter": number},
        "topics": [{"topicName": topic, "readQueueNums": 8, "writeQueueNums": 8} for topic in topics],
    }


def fill(url: str) -> None:
    with httpx.Client(base_url=url, trust_env=False, timeout=30) as client:
        for number in range(BROKERS):
            client.post("/v1/brokers", json=broker(number)).raise_for_status()
        slave = broker(0) | {"brokerAddr": "10.1.0.1:10911", "brokerId": 1, "topics": []}
        client.post("/v1/brokers", json=slave).raise_for_status()
        drain = {"owner": HOSTILE, "reason": f"kernel {HOSTILE}"}
        client.put("/v1/brokers/broker-001/drain", json=drain).raise_for_status()
        client.put("/v1/drift/moving", json=DRIFT).raise_for_status()
        client.put("/v1/kv/app/colour", json={"value": f"green {HOSTILE}"}).raise_for_status()
        client.put(f"/v1/kv/app/{HOSTILE}", json={"value": "x" * 2000}).raise_for_status()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    options = {"httpWorkers": "1", "remotingWorkers": "1", "maxPercentOfHost": "100", "maxBrokers": "2000"}
    server = NameServer(tmp_path_factory.mktemp("console"), options).start()
    try:
        fill(http_side(server))
        yield server
    finally:
        server.stop()


@pytest.fixture(scope="module")
def console(server: NameServer) -> str:
    return f"{http_side(server)}/console"


@pytest.fixture(scope="module")
def browser() -> Iterator[Chromium]:
    with chromium() as browser:
        yield browser


@pytest.fixture
def visitor(browser: Chromium) -> Iterator[Visitor]:
    with browser.window() as visitor:
        yield visitor
        assert [line for line in visitor.problems if MISSING not in line] == []


def confirm(page: Page, button: str) -> None:
    """Press the button that makes a change, which the page shows now."""
    expect(page.get_by_role("button", name=button)).to_be_visible()
    page.get_by_role("button", name=button).click()
    expect(page.get_by_role("status").filter(has_text="Recorded as entry")).to_be_visible()


@pytest.mark.parametrize("window", WINDOWS)
def test_every_page_is_for_everyone(browser: Chromium, console: str, window: str) -> None:
    width, height, scheme = WINDOWS[window]
    with browser.window(width, height, scheme, checked=True) as visitor:
        for path in PAGES:
            page = visitor.open(f"{console}/{path}".rstrip("/"))
            if PICTURES:
                name = re.sub(r"[^\w.-]+", "_", path) or "overview"
                page.screenshot(path=Path(PICTURES) / f"{name}-{window}.png")
            if window != "wide":  # which has the elements and colours of `dark`
                assert visitor.complaints() == [], path
            assert not visitor.is_wider_than_its_window, path
            assert page.title() != "broken", path
        assert [line for line in visitor.problems if MISSING not in line] == []


def test_no_page_asks_another_host(browser: Chromium, console: str) -> None:
    with browser.window() as visitor:
        asked: list[str] = []
        visitor.page.on("request", lambda request: asked.append(request.url))
        for path in PAGES:
            visitor.open(f"{console}/{path}".rstrip("/"))
        host = console.removesuffix("/console")
        assert [url for url in asked if not url.startswith(f"{host}/console")] == []
        assert len(asked) > len(PAGES)


def test_a_broker_is_drained_and_given_back(visitor: Visitor, console: str) -> None:
    page = visitor.open(console)
    page.get_by_role("navigation", name="Console").get_by_role("link", name="Brokers").click()
    page.get_by_label("Name begins with").fill("broker-00")
    page.get_by_role("button", name="Show").click()
    page.get_by_role("link", name="broker-003", exact=True).click()
    page.get_by_label("Owner").fill("alice")
    page.get_by_label("Reason").fill("kernel upgrade")
    page.get_by_role("button", name="Drain …").click()
    expect(page.get_by_text("Topics whose routes change")).to_be_visible()
    expect(page.locator(".would")).to_contain_text(f"{TOPICS + 1:,}".replace(",", "\u202f"))
    confirm(page, "Drain")
    expect(page.locator("#live")).to_contain_text("kernel upgrade")
    page.get_by_role("navigation", name="Console").get_by_role("link", name="Drains").click()
    page.get_by_role("button", name="End the drain of broker-003").click()
    confirm(page, "End the drain")
    page.goto(f"{console}/drains")
    expect(page.locator("#live")).not_to_contain_text("broker-003")


def test_a_topic_is_found_looked_at_and_deleted(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/topics")
    page.get_by_label("Name begins with").fill("Orders.4.")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="Orders.4.2", exact=True).click()
    expect(
        page.get_by_role("img").filter(has_text="Orders.4.2").or_(page.locator("svg").first).first
    ).to_be_visible()
    expect(page.get_by_role("region", name="Queue data of Orders.4.2")).to_contain_text("broker-004")
    page.get_by_role("button", name="Delete …").click()
    expect(page.get_by_text("Topics that no broker would have")).to_be_visible()
    confirm(page, "Delete")
    page.goto(f"{console}/topics/Orders.4.2")
    expect(page.get_by_role("main")).to_contain_text("no route")


def test_a_permission_is_taken_and_given_back(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/brokers/broker-006")
    page.get_by_role("button", name="Take it …").click()
    expect(page.get_by_text("Queues to write")).to_be_visible()
    confirm(page, "Take the permission")
    page.get_by_role("link", name="Orders.6.1", exact=True).click()
    row = (
        page.get_by_role("region", name="Queue data of Orders.6.1")
        .get_by_role("row")
        .filter(has_text="broker-006")
    )
    expect(row).to_contain_text("read only")
    page.get_by_role("link", name="broker-006", exact=True).first.click()
    page.get_by_role("button", name="Give read and write …").click()
    confirm(page, "Give the permission")
    page.goto(f"{console}/topics/Orders.6.1")
    expect(row).to_contain_text("read and write")


def test_queues_of_a_topic_are_set_on_a_broker(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/topics/Orders.7.1")
    page.get_by_label("Broker", exact=True).fill("broker-007")
    page.get_by_label("Queues to read").fill("12")
    page.get_by_label("Queues to write").fill("3")
    page.get_by_label("Permission").select_option("read only")
    page.get_by_role("button", name="Set …").click()
    expect(page.get_by_text("12 queues to read, 3 to write, read only")).to_be_visible()
    confirm(page, "Set it")
    row = (
        page.get_by_role("region", name="Queue data of Orders.7.1")
        .get_by_role("row")
        .filter(has_text="broker-007")
    )
    expect(row).to_contain_text("read only")
    expect(row).to_contain_text("12")


def test_an_address_is_unregistered(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/brokers/broker-008")
    page.get_by_role("button", name="Unregister 10.0.0.9:10911").click()
    confirm(page, "Unregister it")
    expect(page.get_by_role("main")).to_contain_text("Not there")


def test_a_finding_leads_to_what_differs_which_is_forgotten(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/findings")
    page.get_by_role("link", name="moving", exact=True).click()
    expect(page.get_by_role("region", name="Differences of moving")).to_contain_text("TopicTest")
    page.get_by_role("button", name="Forget moving").click()
    confirm(page, "Forget it")
    expect(page.get_by_role("main")).to_contain_text("Nothing is compared")


def test_a_setting_is_searched_and_changed(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/settings")
    page.get_by_label("Search all options").fill("order topics")
    page.get_by_role("button", name="Search").click()
    page.get_by_role("link", name="returnOrderTopicConfigToBroker").click()
    page.get_by_label("New value").select_option("false")
    page.get_by_role("button", name="See what it would do").click()
    confirm(page, "Change the option")
    expect(page.locator(".facts")).to_contain_text("false")


def test_a_value_is_made_changed_and_deleted(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/kv")
    page.get_by_role("textbox", name="Namespace").fill("walk")
    page.get_by_role("textbox", name="Key").fill("a/b c")
    page.get_by_role("textbox", name="Value").fill("one\ntwo")
    page.get_by_role("button", name="See what it would do").click()
    confirm(page, "Set the value")
    page.get_by_role("link", name="a/b c").click()
    expect(page.get_by_role("textbox", name="Value")).to_have_value("one\ntwo")
    page.get_by_role("button", name="Delete …").click()
    confirm(page, "Delete the value")
    expect(page.get_by_role("main")).to_contain_text("no values")


def test_what_changed_is_in_the_timeline_and_between_two_times(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/events?kind=drain_changed&broker=broker-001")
    expect(page.get_by_role("main")).to_contain_text("kernel <img")
    page.goto(f"{console}/events/between?last=hour")
    expect(page.get_by_role("main")).to_contain_text("broker-001")


def test_a_page_follows_changes_by_itself(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/brokers?prefix=newcomer")
    expect(page.get_by_text("No broker is like this")).to_be_visible()
    expect(page.locator("#live-state")).to_contain_text("Live")
    newcomer = broker(1) | {"brokerName": "newcomer", "brokerAddr": "10.9.9.9:10911"}
    url = console.removesuffix("/console")
    httpx.post(f"{url}/v1/brokers", json=newcomer, trust_env=False).raise_for_status()
    expect(page.get_by_role("link", name="newcomer", exact=True)).to_be_visible(timeout=9000)
    page.locator("#live-state").click()
    expect(page.locator("#live-state")).to_contain_text("Paused")
    httpx.delete(
        f"{url}/v1/brokers/newcomer",
        params={"cluster": "cluster-b", "brokerAddr": "10.9.9.9:10911"},
        trust_env=False,
    ).raise_for_status()
    page.locator("#live-state").click()
    expect(page.get_by_text("No broker is like this")).to_be_visible()


def test_what_is_typed_outlives_a_change(visitor: Visitor, console: str) -> None:
    page = visitor.open(f"{console}/brokers/broker-005")
    page.get_by_label("Reason").fill("half a sen")
    url = console.removesuffix("/console")
    changed = page.expect_response(lambda answer: "brokers/broker-005" in answer.url)
    with changed:
        httpx.put(f"{url}/v1/kv/app/typed", json={"value": "x"}, trust_env=False).raise_for_status()
    expect(page.get_by_label("Reason")).to_have_value("half a sen")
    expect(page.get_by_label("Reason")).to_be_focused()


def test_the_keyboard_alone_leads_to_the_content_and_through_the_sections(
    visitor: Visitor, console: str
) -> None:
    page = visitor.open(console)
    page.keyboard.press("Tab")
    expect(page.get_by_role("link", name="To the content")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.reload()
    for _ in range(12):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Topics":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/console/topics")


def test_pages_say_that_the_store_is_away_and_come_back_by_themselves(
    browser: Chromium, server: NameServer, console: str
) -> None:
    store = [pid for pid in children(server.pid) if "store.sock" in command_line(pid)]
    assert len(store) == 1
    with browser.window(checked=True) as visitor:
        page = visitor.open(console)
        expect(page.locator("#live-state")).to_contain_text("Live")
        with stopped(*store):
            page.reload(wait_until="commit")
            expect(page.get_by_role("main")).to_contain_text("The store is away")
            assert visitor.complaints() == []
            for path in ("brokers", "topics/Everywhere", "events", "kv", "findings"):
                visitor.open(f"{console}/{path}")
                expect(page.get_by_role("main")).to_contain_text("The store is away")
                assert visitor.complaints() == []
        expect(page.get_by_role("main")).not_to_contain_text("The store is away", timeout=60_000)


def test_an_operator_logs_in_and_out(browser: Chromium, tmp_path: Path) -> None:
    path, tokens = access_file(tmp_path)
    rules = {f"access{name}": "token" for name in ("Read", "Admin", "Audit", "Config")}
    server = NameServer(tmp_path / "server", {"accessFile": str(path), **rules}).start()
    try:
        with browser.window(checked=True) as visitor:
            page = visitor.open(f"{http_side(server)}/console")
            expect(page.get_by_role("main")).to_contain_text("You may not see this")
            assert visitor.complaints() == []
            page.get_by_role("banner").get_by_role("link", name="Log in").click()
            page.get_by_label("Token").fill("mqns_wrong")
            page.get_by_role("button", name="Log in").click()
            expect(page.get_by_role("alert")).to_contain_text("proves no principal")
            assert visitor.complaints() == []
            page.get_by_label("Token").fill(tokens["operator"])
            page.get_by_role("button", name="Log in").click()
            expect(page.locator(".caller")).to_have_text("the-operator")
            page.goto(f"{http_side(server)}/console/kv")
            page.get_by_role("textbox", name="Namespace").fill("n")
            page.get_by_role("textbox", name="Key").fill("k")
            page.get_by_role("textbox", name="Value").fill("v")
            page.get_by_role("button", name="See what it would do").click()
            confirm(page, "Set the value")
            page.get_by_role("button", name="Log out").click()
            expect(page.get_by_role("heading", name="Log in")).to_be_visible()
            page.goto(f"{http_side(server)}/console/kv")
            expect(page.get_by_role("main")).to_contain_text("You may not see this")
    finally:
        server.stop()
