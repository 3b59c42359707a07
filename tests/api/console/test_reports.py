"""Pages of the pipeline's reports: which there are, and the rows of each."""

import fakeredis
import msgspec
import pytest
import redis as redis_py

from api.app import create_app
from api.console import cells
from api.console.cells import MOMENTS
from api.console.formats import DASH
from api.report_views import VIEWS
from mqpipeline.serving.publish import publish
from registry.options.catalogue import Options
from tests.api.console.page import assert_well_formed, page
from tests.api.http import Http
from tests.mqpipeline.serving.example import AS_OF, RUN, W0, availability, results

PATHS = ["/console/reports", *(f"/console/reports/{view.name}" for view in VIEWS)]


@pytest.fixture
def run(http: Http, redis: redis_py.Redis) -> Http:
    """Return a client of an application that serves the example's run."""
    publish(redis, "default", RUN, results())
    return http


def test_the_reports_there_are_and_the_run_that_made_them(run: Http) -> None:
    shown = page(run.client, "/console/reports")
    assert_well_formed(shown)
    assert "Up to 2026-01-01 01:00:00 UTC" in shown.content
    assert "Entries read 14" in shown.content
    assert "The last figures are provisional" in shown.content
    for view in VIEWS:
        assert shown.links[view.title] == f"/console/reports/{view.name}"


def test_what_the_run_missed_is_said(http: Http, redis: redis_py.Redis) -> None:
    publish(redis, "default", msgspec.structs.replace(RUN, holes=3, rejected=2), results())
    shown = page(http.client, "/console/reports")
    assert "3 entries were trimmed before the pipeline read them" in shown.content
    assert "2 entries could not be read" in shown.content


@pytest.mark.parametrize("path", PATHS)
def test_without_a_run_the_page_says_how_to_make_one(http: Http, path: str) -> None:
    shown = page(http.client, path)
    assert_well_formed(shown)
    assert "There are no reports yet" in shown.content
    assert "make pipeline" in shown.content
    assert shown.status == (200 if path == "/console/reports" else 404)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("availability", f"broker a c1 51 min 9 min 0 ms 0 ms 85 % {DASH} 2 25 min 30 s 4 min 30 s 5m 0 %"),
        ("slo", "cluster c1 99.9 % 8 s 14 min"),
        ("detect", "cluster c1 3 2 min"),
        ("repair", "cluster c1 3 1 8 min"),
        ("flap", f"slot c id 0 c1 793.7 no {DASH}"),
        ("churn", "c1 first 4 5"),
        ("skew", "topic T1"),
        ("incidents", "mass expiry 2026-01-01 00:32:00 UTC 2026-01-01 00:32:31 UTC 4 20 % c1 expired 4"),
        ("conflicts", "slot a id 0:state_version c1 state_version"),
        ("timeouts", "cluster c1"),
    ],
)
def test_a_report_is_a_table_of_figures(run: Http, name: str, words: str) -> None:
    shown = page(run.client, f"/console/reports/{name}")
    assert_well_formed(shown)
    assert words in shown.content
    assert "What the columns mean" in shown.content
    assert shown.links["All reports"] == "/console/reports"


def test_rows_lead_to_what_they_are_of(run: Http) -> None:
    shown = page(run.client, "/console/reports/availability")
    assert shown.links["a"] == "/console/brokers/a"
    assert shown.links["T1"] == "/console/topics/T1"
    assert shown.links["c1"] == "/console/brokers?cluster=c1"
    entry = f"{W0 + 1_923_400}-0"
    incidents = page(run.client, "/console/reports/incidents")
    assert incidents.links[entry] == f"/console/events?since={W0 + 1_923_400}&until={W0 + 1_923_400}"


def test_the_window_that_is_served_is_chosen(run: Http) -> None:
    assert page(run.client, "/console/reports/availability").status == 200  # the example has no 24h
    day = page(run.client, "/console/reports/availability?window=day:2026-01-01&unit=cluster")
    assert "cluster c1" in day.content
    none = page(run.client, "/console/reports/availability?window=9h")
    assert (none.status, "no window '9h'; there are: 1h" in none.content) == (404, True)


def test_a_heading_sorts_and_a_second_time_the_other_way(run: Http) -> None:
    first = page(run.client, "/console/reports/availability")
    down = page(run.client, first.link("outages"))
    assert down.address.endswith("sort=-outages")
    assert 'aria-sort="descending"' in down.html
    assert page(run.client, down.link("outages")).address.endswith("sort=outages")
    assert "worst" not in first.links


def test_units_are_filtered_and_pages_lead_on(http: Http, redis: redis_py.Redis) -> None:
    rows = tuple(availability(f"broker:c1:b{number:02}", (3600, 0, 0, 0), 0) for number in range(60))
    publish(redis, "default", RUN, results(report_availability=rows))
    first = page(http.client, "/console/reports/availability?unit=broker")
    assert "Rows on this page: 50" in first.content
    rest = page(http.client, first.links["Next page"])
    assert "Rows on this page: 10" in rest.content
    assert rest.values["unit"] == "broker"
    none = page(http.client, "/console/reports/availability?unit=topic")
    assert "No unit of that name has a row." in none.content


def test_a_report_that_found_nothing(http: Http, redis: redis_py.Redis) -> None:
    publish(redis, "default", RUN, msgspec.structs.replace(results(), tables={}))
    assert "The run found none." in page(http.client, "/console/reports/incidents").content


def test_a_report_that_there_is_not(run: Http) -> None:
    shown = page(run.client, "/console/reports/weather")
    assert (shown.status, "there is no report" in shown.content) == (404, True)


def test_hostile_names_are_text(http: Http, redis: redis_py.Redis) -> None:
    rows = (availability('topic:"><script>x</script>/a', (1, 0, 0, 0), 0),)
    publish(redis, "default", RUN, results(report_availability=rows))
    shown = page(http.client, "/console/reports/availability")
    assert_well_formed(shown)
    assert "/console/topics/%22%3E%3Cscript%3Ex%3C%2Fscript%3E%2Fa" in shown.links.values()


def test_columns_that_are_times_are_called_so() -> None:
    """Of each column in ms its meaning says whether it is a time or a duration."""
    columns = {column.name: column.meaning for view in VIEWS for column in view.columns}
    times = {name for name, meaning in columns.items() if "when" in meaning.split(",")[0].split()[:2]}
    assert times == MOMENTS


@pytest.mark.parametrize(
    ("value", "form", "text"),
    [
        (None, "number", DASH),
        (1234567, "number", "1\u202f234\u202f567"),
        (0.2222222, "number", "0.222"),
        (3.0, "number", "3"),
        (-95.5517, "percent", "-9\u202f555.17 %"),
        (1.0, "percent", "100 %"),
        (8700.0, "span", "8 s"),
        (AS_OF, "moment", "2026-01-01 01:00:00 UTC"),
        (True, "text", "yes"),
        ({"5m": 0.5, "1h": None}, "percent", f"5m 50 %, 1h {DASH}"),
        ([], "text", DASH),
        (["a", "b"], "text", "a, b"),
    ],
)
def test_figures(value: object, form: cells.Form, text: str) -> None:
    assert cells.figure_text(value, form) == text


@pytest.mark.parametrize("path", PATHS)
def test_a_store_that_is_away_is_said(storeless: Http, path: str) -> None:
    shown = page(storeless.client, path)
    assert_well_formed(shown)
    assert "The store is away" in shown.content
    assert shown.status == 503


@pytest.mark.parametrize("path", PATHS[:2])
def test_a_caller_without_the_class_is_denied(path: str) -> None:
    store = fakeredis.FakeRedis(decode_responses=True)
    http = Http(create_app(Options(access_audit="off"), redis=store).test_client())
    shown = page(http.client, path)
    assert (shown.status, "You may not see this" in shown.content) == (401, True)
