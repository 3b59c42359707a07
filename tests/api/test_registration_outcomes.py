"""Registrations over HTTP by what came of them, and the line of a refused one."""

import logging
from collections.abc import Mapping

import pytest
import redis as redis_py

from api import counters, registration_outcomes
from api.app import create_app
from metrics.counts import Observed
from metrics.registrations import RegistrationCounts
from registry.options.catalogue import Options
from tests.api.http import MASTER, Http, a_broker
from worker.logs.rate_limited_log import RateLimitedLog

RESULTS = "registration_events_total"
FILTERS = [f"127.0.0.1:{port}" for port in range(10_000, 10_200)]
ONE_TOPIC = {"topics": [{"topicName": "T"}]}


@pytest.fixture(autouse=True)
def fresh(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counters.COUNTERS, "_registrations", RegistrationCounts())
    log = logging.getLogger(registration_outcomes.__name__)
    monkeypatch.setattr(registration_outcomes, "log", RateLimitedLog(log))


def counted() -> Mapping[tuple[str, ...], float]:
    """Return what is not 0; of histograms how much was observed."""
    found: dict[tuple[str, ...], float] = {}
    for read in counters.COUNTERS.read():
        value = sum(read.histogram.counts) if isinstance(read, Observed) else read.value
        if value:
            found[read.metric.name, *read.labels] = value
    return found


def of(name: str) -> dict[str, float]:
    return {labels[1]: value for labels, value in counted().items() if labels[0] == name}


def test_registrations_and_heartbeats(http: Http) -> None:
    for body in (a_broker(), a_broker(), a_broker(**ONE_TOPIC, dataVersion={"timestamp": 5})):
        http.ok("POST", "/v1/brokers", body)
    member = {"cluster": "c1", "brokerAddr": MASTER}
    http.ok("POST", "/v1/brokers/broker-a/heartbeat", member)
    http.refused("POST", "/v1/brokers/broker-b/heartbeat", member)
    http.ok("GET", "/v1/brokers")
    assert of(RESULTS) == {"new": 1, "unchanged": 1, "changed": 1}
    assert of("registration_duration_seconds") == of(RESULTS)
    assert of("heartbeats_total") == {"http": 4}


def test_a_dry_run_is_no_registration(http: Http, caplog: pytest.LogCaptureFixture) -> None:
    http.ok("POST", "/v1/brokers?dryRun=true", a_broker())
    http.refused("POST", "/v1/brokers?dryRun=true", a_broker(filterServers=FILTERS))
    http.ok("POST", "/v1/brokers", a_broker())
    http.ok("POST", "/v1/brokers/broker-a/heartbeat?dryRun=true", {"cluster": "c1", "brokerAddr": MASTER})
    assert of(RESULTS) == {"new": 1}
    assert of("heartbeats_total") == {"http": 1}
    assert caplog.text == ""


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        pytest.param(a_broker(brokerId="x"), "brokerId: has to be", id="field"),
        pytest.param(a_broker(filterServers=FILTERS), "more than maxFilterServersBytes=2048", id="limit"),
        pytest.param([1], "body: ", id="no object"),
    ],
)
def test_a_refused_registration_is_counted_and_said(
    http: Http, caplog: pytest.LogCaptureFixture, body: object, reason: str
) -> None:
    with caplog.at_level(logging.WARNING):
        http.refused("POST", "/v1/brokers", body)
        http.refused("POST", "/v1/brokers", body)
    assert of(RESULTS) == of("registration_duration_seconds") == {"rejected": 2}
    assert of("heartbeats_total") == {}
    assert of("limit_refusals_total") == ({"maxFilterServersBytes": 2} if "max" in reason else {})
    (line,) = [
        record.getMessage() for record in caplog.records if "the registration of" in record.getMessage()
    ]
    names = (
        (f"broker {str(body['brokerName'])[:64]} at {MASTER} ", "cluster c1")
        if isinstance(body, dict)
        else ()
    )
    for text in (*names, "127.0.0.1 over HTTP", reason):
        assert text in line


def test_a_newcomer_with_a_lower_state_version(http: Http, caplog: pytest.LogCaptureFixture) -> None:
    newer = {"stateVersion": 2, "timestamp": 1}
    http.ok("POST", "/v1/brokers", a_broker(dataVersion=newer))
    with caplog.at_level(logging.WARNING):
        http.refused("POST", "/v1/brokers", a_broker(brokerAddr="127.0.1.9:1"))
    assert of(RESULTS) == {"new": 1, "conflict": 1}
    assert "at 127.0.1.9:1 in cluster c1" in caplog.text


def test_a_store_that_is_away_rejects(storeless: Http) -> None:
    storeless.refused("POST", "/v1/brokers", a_broker())
    assert of(RESULTS) == {"rejected": 1}


def test_limits_of_other_requests(redis: redis_py.Redis) -> None:
    http = Http(create_app(Options(max_kv_value_bytes=3), redis=redis).test_client())
    http.refused("PUT", "/v1/kv/n/k", {"value": "long"})
    assert of("limit_refusals_total") == {"maxKvValueBytes": 1}
