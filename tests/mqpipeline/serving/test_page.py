"""The page: it stands alone, says what the reports say, and shows names as text whatever is in them."""

import re
from collections.abc import Mapping
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqpipeline.reports.catalogue import AVAILABILITY, CONFLICTS, FLAP, INCIDENTS, REPAIR, SLO
from mqpipeline.serving.page import html
from mqpipeline.serving.results import BROKER_STATES, CHURN_HOURS, STRIP_STATES, STRIPS, Results
from testbed.browser import visit
from tests.mqpipeline.serving.example import (
    AS_OF,
    LENGTHS,
    RUN,
    TABLES,
    W0,
    availability,
    results,
    row,
    state,
)

HOSTILE = "<script>alert(1)</script>\"'><img src=//x onerror=1>&amp;{{7*7}}\u202e"
TAGS = set(
    re.findall(
        r"\w+",
        "a b bdi body br caption dd div dl dt footer h1 h2 h3 head header html li link main meta nav p path rect"
        " section small span strong style svg table tbody td th thead time title tr ul",
    )
)
NAMED = {"unit", "cluster", "broker", "cause", "type", "key", "detail"}


class Page(HTMLParser):
    """Its text, elements, and attributes that could load something."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.links: set[str] = set()
        self.ids: set[str] = set()
        self.styles: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        for name, value in attributes:
            self.attributes.add(name)
            if name in ("href", "src", "srcset", "action", "data", "poster", "xlink:href"):
                self.links.add(value or "")
            if name == "id":
                self.ids.add(value or "")
            if name == "style":
                self.styles.append(value or "")

    def handle_endtag(self, tag: str) -> None:
        self.text += " " if tag in ("td", "th", "p", "dt") else ""

    def handle_data(self, data: str) -> None:
        if self.lasttag == "style":
            self.styles.append(data)
        else:
            self.text += data

    @property
    def words(self) -> str:
        return re.sub(r"\s+", " ", self.text.replace("\u202f", " "))


def page_of(**instead: Any) -> Page:
    return Page(html("default", RUN, results(**instead)))


def hostile(value: Any, column: str = "") -> Any:
    """The value with markup in each name."""
    if isinstance(value, Mapping):
        return {
            (f"{key}{HOSTILE}" if column == "causes" else key): hostile(one, str(key))
            for key, one in value.items()
        }
    if isinstance(value, (tuple, list)):
        return [hostile(one, column) for one in value]
    return (
        f"{value}{HOSTILE}" if isinstance(value, str) and column in NAMED | {"clusters", "alerts"} else value
    )


def hostile_page() -> str:
    tables = {name: tuple(hostile(one) for one in rows) for name, rows in TABLES.items()}
    return html(f"default{HOSTILE}", msgspec.structs.replace(RUN, run=HOSTILE), Results(AS_OF, tables))


@pytest.mark.parametrize(
    "make", [lambda: html("default", RUN, results()), hostile_page], ids=["tame", "hostile"]
)
def test_nothing_is_loaded(make: Any) -> None:
    text = make()
    page = Page(text)
    assert page.tags <= TAGS
    assert page.links - {"data:,"} == {f"#{name}" for name in page.ids - {"summary"}}
    assert not [name for name in page.attributes if name.startswith("on")]
    assert not re.search(r"url\(|@import|expression|//", " ".join(page.styles))
    assert "default-src 'none'" in text


def test_names_are_text_whatever_is_in_them() -> None:
    page = Page(hostile_page())
    shown = page.text.count(HOSTILE)
    assert shown == page.text.count("<script>") > 40


def test_what_the_example_says() -> None:
    words = page_of().words
    for said in (
        "as of 2026-01-01 01:00:00 UTC · provisional",
        "1 of 1 cluster missed the objective: c1",
        "an alert fires: c1",
        "1 incident on record, the last at 2026-01-01 00:32:00 with 4 members gone.",
        "90.34 % over 1 hour, of which 50 min known; objective 99.9 % missed",
        "error budget overspent 96.6 times",
        "▲ burns 14.4\N{MULTIPLICATION SIGN}: 1 h and 5 min",
        "c1 333.33 144.44 96.55",
        "c1:a 85.00 % 9 min 2 25 min 30 s 4 min 30 s 0.00 %",
        "T1 100 % 90.40 %",
        "c1:c:0 794 steady 0",
        "first c1 4 5",
        "c1 3 1.80 0.311 1.50 0.167",
        "brokers that went down: c1:a",
        "c1:a:0 state_version 2 2026-01-01 00:11:40 addr 127.0.1.9:10911, holder (addr 127.0.1.1:10911), action",
        "c1 1 000 30 s 30 s 1 min 1 s 1 min 1 s 2 2 min",
        "14 entries read; 0 missing, 0 of a lost primary, 0 read twice, 0 not readable, 0 of unknown kinds, "
        "0 of incomplete groups, 0 waiting for more. No checkpoint has been compared with the tables yet.",
    ):
        assert said in words, said


@pytest.mark.parametrize(
    ("table", "said"),
    [
        (AVAILABILITY.table.name, "No cluster is known."),
        (AVAILABILITY.table.name, "No topic has been seen."),
        (AVAILABILITY.table.name, "No day has been reported yet."),
        (BROKER_STATES, "No broker has been seen in these days."),
        ("report_detect", "No broker has been lost in these days."),
        ("report_repair", "No outage has begun in these days."),
        (FLAP.table.name, "No slot has come and gone lately."),
        ("report_skew", "No broker has queues to write to."),
        (INCIDENTS.table.name, "Never did many members go at once."),
        ("report_conflicts", "No broker claimed what another had."),
        ("report_timeouts", "No heartbeats have been collected."),
    ],
)
def test_what_is_not_there_is_said_in_words(table: str, said: str) -> None:
    assert said not in page_of().words
    assert said in page_of(**{table: ()}).words


def test_nothing_at_all() -> None:
    words = Page(html("default", RUN, Results(AS_OF, {}))).words
    assert "Nothing is known yet" in words
    assert "Nothing has changed in these days." in words
    assert "provisional" not in words.lower()


def test_what_is_final_is_not_called_provisional() -> None:
    final = tuple({**one, "provisional": False} for one in TABLES[AVAILABILITY.table.name])
    assert "provisional" not in page_of(report_availability=final).words.lower()


def test_an_objective_that_was_met() -> None:
    met = row(
        SLO.table, "cluster:c1", slo=0.9, budget_ms=1.0, spent_ms=0.5, remaining=0.5, burn={}, alerts=[]
    )
    words = page_of(report_slo=(met,)).words
    assert "1 cluster met the objective." in words
    assert "50.00 % of the error budget left" in words
    assert "missed" not in words.partition("Heartbeats")[0]


@pytest.mark.parametrize(
    ("proves", "differing", "said", "summary"),
    [
        (True, 0, "The checkpoint of 2026-01-01 01:00:00 agrees with the tables.", False),
        (True, 2, "differs from the tables: 2 members, 1 topic on brokers.", True),
        (False, 2, "is the first of a history whose beginning is missing.", False),
    ],
)
def test_how_the_newest_checkpoint_compares(proves: bool, differing: int, said: str, summary: bool) -> None:
    run = msgspec.structs.replace(
        RUN, round_ms=AS_OF, proves=proves, members_differing=differing, pairs_differing=differing // 2
    )
    words = Page(html("default", run, results())).words
    assert said in words
    assert ("Run the pipeline with --full." in words) is summary


def test_what_is_not_known_of_the_stream_is_in_the_summary() -> None:
    run = msgspec.structs.replace(RUN, holes=1, unknown=2)
    words = Page(html("default", run, results())).words
    assert "1 entry of the stream missing" in words
    assert "2 entries of kinds that this release does not know. Upgrade it." in words


def test_a_short_history_is_not_taken_for_a_long_one() -> None:
    known = availability("cluster:c1", (290, 10, 0, 30 * 86_400 - 300), 1, window="30d")
    assert "over 30 days, of which 5 min known" in page_of(report_availability=(known,)).words
    whole = availability("cluster:c1", (30 * 86_400, 0, 0, 0), 0, window="30d")
    assert "over 30 days;" in page_of(report_availability=(whole,)).words


def test_a_cluster_that_was_never_up_nor_down() -> None:
    unseen = availability("cluster:c9", (0, 0, 0, 3600), 0)
    no_budget = row(
        SLO.table, "cluster:c9", slo=0.999, budget_ms=0.0, spent_ms=0.0, burn={"5m": None}, alerts=[]
    )
    words = page_of(report_availability=(unseen,), report_slo=(no_budget,)).words
    assert "c9 \N{EN DASH} over 1 hour, of which 0 ms known" in words
    assert "missed the objective" not in words


@pytest.mark.parametrize(
    ("detail", "said"),
    [
        (None, "\N{EN DASH}"),
        ("some text", "some text"),
        ('"text"', '"text"'),
        ('{"addr": "h:1", "holder": "h:2"}', "addr h:1, holder h:2"),
        ('{"addr": null, "holder": {"a": [1]}, "n": 2}', "holder (a [1]), n 2"),
    ],
)
def test_a_detail_is_read_out(detail: str | None, said: str) -> None:
    one = row(CONFLICTS.table, "slot:c1:a:0:t", type="t", count=1, last_ms=W0, detail=detail)
    assert f"2026-01-01 00:00:00 {said} Heartbeats" in page_of(report_conflicts=(one,)).words


def test_flapping_comes_first_with_its_slots() -> None:
    flapping = row(
        FLAP.table, "slot:c1:a:0", score=2866.6, flapping=True, flapping_since_ms=W0 + 120_000, episodes=1
    )
    words = page_of(report_flap=(flapping,)).words
    assert "Flapping now: c1:a:0" in words
    assert "2 867 flapping since 2026-01-01 00:02:00 1" in words


def a_great_deal() -> Results:
    """As much as is ever taken, of 1,000 brokers and 100,000 topics with the longest names."""
    name = "n" * 240
    units = [
        *((f"cluster:{n}", 6) for n in range(100)),
        *((f"broker:c1:{name}{n}", 1000) for n in range(1000)),
        *((f"topic:{name}{n}", 100_000) for n in range(200)),
    ]
    rolling = [
        availability(unit, (3599, 1, 0, 0), 1, window=window, of=of)
        for window in LENGTHS
        for unit, of in units
    ]
    days = [
        availability(unit, (3599, 1, 0, 0), 1, window="day", from_ms=W0 - day * 86_400_000, of=of)
        for unit, of in units[:130]
        for day in range(31)
    ]
    states = [
        {**state(f"{name}{n}", "DOWN" if at % 2 else "UP", 9 * at, 9 * at + 9), "of": 1000}
        for n in range(STRIPS)
        for at in range(STRIP_STATES)
    ]
    return results(
        report_availability=(*rolling, *days),
        **{BROKER_STATES: tuple(states), CHURN_HOURS: TABLES[CHURN_HOURS] * 100},
    )


def test_the_page_stays_small_and_counts_what_it_leaves_out() -> None:
    page = html("default", RUN, a_great_deal())
    assert len(page.encode()) < 4_000_000
    words = page.replace("\u202f", " ")
    assert "… and 970 brokers more." in words
    assert "… and 99 970 topics more." in words
    assert "… and 960 brokers more." in words
    assert "… and 50 clusters more." in words


def test_what_is_more_is_counted_of_each_kind() -> None:
    repair = [
        *(row(REPAIR.table, f"cluster:{n}", outages=1, n_open=0, of=3) for n in range(3)),
        *(row(REPAIR.table, f"broker:c1:{n}", outages=1, n_open=0, of=40) for n in range(30)),
    ]
    flap = [row(FLAP.table, f"slot:c1:{n}:0", score=float(120 - n), of=431) for n in range(100)]
    words = page_of(report_repair=tuple(repair), report_flap=tuple(flap)).words
    assert "… and 28 lines more." in words
    assert "… and 411 slots more." in words


def test_scores_that_are_as_good_as_nothing_are_not_listed() -> None:
    flap = [row(FLAP.table, f"slot:c1:{n}:0", score=25.5 - n, of=431) for n in range(100)]
    words = page_of(report_flap=tuple(flap)).words
    assert "… and 5 slots more." in words


def console_of(page: Path, profile: Path) -> str:
    """Return what a browser without a network complains of."""
    return visit(page.as_uri(), profile, "--proxy-bypass-list=<-loopback>").console


@pytest.mark.needs("chromium")
def test_a_browser_without_network_has_nothing_to_complain_of(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text(hostile_page(), encoding="utf-8")
    assert console_of(page, tmp_path / "profile") == ""


@pytest.mark.needs("chromium")
def test_a_browser_does_complain_of_what_would_be_loaded(tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    text = html("default", RUN, results())
    page.write_text(text.replace("<main>", "<main><img src='http://127.0.0.1:9/x.png'>"), encoding="utf-8")
    assert "x.png" in console_of(page, tmp_path / "profile")
