"""What a running server publishes: requests over the wire and HTTP, and what of it stays when a worker is killed."""

import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest
from prometheus_client.parser import text_string_to_metric_families
from prometheus_client.utils import floatToGoString

from metrics.catalogue import CATALOGUE
from metrics.files import MADE
from metrics.metric import NS, PREFIX, Metric, Scope
from registry.options.catalogue import BY_KEY
from rocketmq_remoting.codes import RequestCode
from testbed.broker import Broker
from testbed.certificates import VALID, make_certificates
from testbed.eventually import eventually
from tests.mqnamesrv.process import NameServer

Labels = tuple[tuple[str, str], ...]
LOOKUPS = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NameServer]:
    folder = tmp_path_factory.mktemp("metrics")
    tls = make_certificates(folder / "certificates").server_properties
    options = {BY_KEY[key].env: text for key, text in tls.items()}
    with NameServer(folder, MQNS_REMOTING_WORKERS="2", **options) as server:
        yield server


def scrape(server: NameServer) -> dict[tuple[str, Labels], float]:
    """Return all samples by name without prefix and sorted labels but `ns`."""
    text = httpx.get(f"http://127.0.0.1:{server.http_port}/metrics").text
    found: dict[tuple[str, Labels], float] = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation, family.name
        for sample in family.samples:
            assert sample.labels[NS] == "default"
            key = tuple(sorted(item for item in sample.labels.items() if item[0] != NS))
            assert (sample.name, key) not in found
            found[sample.name.removeprefix(PREFIX), key] = sample.value
    return found


def value(server: NameServer, name: str, **labels: str) -> float:
    return scrape(server).get((name, tuple(sorted(labels.items()))), 0.0)


def parts(metric: Metric) -> tuple[str, ...]:
    """Return what its samples have behind its name."""
    return ("_bucket", "_count", "_sum") if metric.type == "histogram" else ("",)


def shown_of(metric: Metric) -> set[tuple[str, Labels]]:
    """Return the samples that a metric of processes has from the start: each combination of closed labels, and of a
    histogram each bucket."""
    found: set[tuple[str, Labels]] = set()
    for values in metric.combinations():
        labels = tuple(zip(metric.label_names, values, strict=True))
        if metric.type != "histogram":
            found.add((metric.name, tuple(sorted(labels))))
            continue
        found |= {(f"{metric.name}_{part}", tuple(sorted(labels))) for part in ("count", "sum")}
        for bound in (*map(floatToGoString, metric.buckets), "+Inf"):
            found.add((f"{metric.name}_bucket", tuple(sorted((*labels, ("le", bound))))))
    return found


OF_PROCESSES = [metric for metric in CATALOGUE if Scope.STORE not in metric.scopes]
OF_ACCESS_FILE = {"access_expiry_timestamp_seconds", "access_file_last_reload_successful"}
"""Without one, there is nothing to show."""
NAMED = {f"{metric.name}{part}": metric for metric in CATALOGUE for part in parts(metric)}
"""The catalogue's metrics by the names of their samples."""


def test_all_that_processes_count_is_there_from_the_start(server: NameServer) -> None:
    """Without a request to this worker: name by name, label by label, bucket by bucket."""
    always = [metric for metric in OF_PROCESSES if metric.name not in OF_ACCESS_FILE]
    wanted = set[tuple[str, Labels]]().union(*map(shown_of, always))

    def all_there() -> bool:
        assert wanted - scrape(server).keys() == set()
        return True

    eventually(all_there, 10)


def test_a_scrape_has_nothing_that_the_catalogue_has_not(server: NameServer) -> None:
    for name, labels in scrape(server):
        metric = NAMED[name]
        shown = {label: value for label, value in labels if label != "le"}
        assert shown.keys() == {*metric.label_names}, name
        for label in metric.labels:
            assert not label.values or shown[label.name] in label.values, (name, label.name)


def test_lookups_are_counted_and_timed(server: NameServer) -> None:
    def answered() -> float:
        return value(server, "requests_total", request_code="105", result="not_found")

    before = answered()
    for _ in range(LOOKUPS):
        server.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "NoSuchTopic"})
    eventually(lambda: answered() == before + LOOKUPS, 10)
    found = scrape(server)
    assert found["request_duration_seconds_count", (("request_code", "105"),)] > 0
    assert found["route_cache_events_total", (("result", "miss"),)] >= 1
    assert found["route_cache_events_total", (("result", "negative_hit"),)] >= LOOKUPS - 2
    assert found["connection_events_total", (("event", "accepted"),)] >= LOOKUPS
    assert found["request_bytes_total", ()] > 1000


def test_the_end_of_the_certificate(server: NameServer) -> None:
    ends_s = value(server, "tls_cert_expiry_timestamp_seconds", listener="remoting")
    assert time.time() + VALID.total_seconds() == pytest.approx(ends_s, abs=600)


def test_http_requests_are_counted_by_route(server: NameServer) -> None:
    address = f"http://127.0.0.1:{server.http_port}"
    assert [httpx.get(address + path).status_code for path in ("/healthz", "/healthz", "/nothing")] == [
        200,
        200,
        404,
    ]

    def counted(route: str, status: str) -> float:
        return value(server, "http_requests_total", method="GET", route=route, status=status)

    eventually(lambda: counted("/healthz", "200") >= 2 and counted("other", "404") == 1, 10)


def test_a_broker_that_dies_with_its_connection_is_down(server: NameServer) -> None:
    """A scheduler notes it, and what serves HTTP reads it; it is there no more."""
    broker = Broker(name="dead", addr="127.0.3.20:10911")
    body = broker.body()
    assert server.ask(RequestCode.REGISTER_BROKER, broker.ext(body), body).code == 0
    labels = (("broker", "dead"), ("broker_id", "0"), ("cluster", "c1"))
    eventually(lambda: scrape(server).get(("broker_up", labels)) == 0, 30)
    assert httpx.get(f"http://127.0.0.1:{server.http_port}/v1/brokers/dead").status_code == 404


def test_a_worker_that_is_killed_leaves_what_it_counted(server: NameServer) -> None:
    def total() -> float:
        return value(server, "requests_total", request_code="105", result="not_found")

    def living() -> float:
        return value(server, "workers", role="remoting")

    server.ask(RequestCode.GET_ROUTEINFO_BY_TOPIC, {"topic": "NoSuchTopic"})
    eventually(lambda: total() >= 1 and living() == 2, 10)
    before = total()
    (folder,) = Path("/dev/shm").glob(f"{MADE}{server.pid}-*")
    pids = {int(path.stem.rpartition(".")[2]) for path in folder.glob("counter_remoting.*.db")}
    for pid in pids:
        os.kill(pid, signal.SIGKILL)
    eventually(lambda: {*pids} != {*_pids(folder)}, 10)
    eventually(lambda: living() == 2, 10)
    assert total() >= before


def _pids(folder: Path) -> set[int]:
    return {int(path.stem.rpartition(".")[2]) for path in folder.glob("gauge_livesum_remoting.*.db")}


def test_the_folder_goes_with_the_server(tmp_path: Path) -> None:
    with NameServer(tmp_path) as server:
        pid = server.pid
        assert list(Path("/dev/shm").glob(f"{MADE}{pid}-*"))
    assert not list(Path("/dev/shm").glob(f"{MADE}{pid}-*"))


def test_refusals_by_limit(tmp_path: Path) -> None:
    limits = {
        "MQNS_MAX_CONNECTIONS_PER_IP": "2",
        "MQNS_PROXY_TRUSTED_CIDRS": "10.0.0.0/8",
        "MQNS_HTTP_HEAD_MAX_BYTES": "4096",
        "MQNS_HTTP_BODY_MAX_BYTES": "99",
    }
    with NameServer(tmp_path, MQNS_REMOTING_WORKERS="1", **limits) as server, ExitStack() as stack:
        for _ in range(5):
            stack.enter_context(socket.create_connection(("127.0.0.1", server.port)))
        address = f"http://127.0.0.1:{server.http_port}/v1/kv/n/k"
        assert httpx.get(address, headers={"X": "x" * 5000}).status_code == 431
        assert httpx.put(address, json={"value": "x" * 100}).status_code == 413
        wanted = {"maxConnectionsPerIp": 3, "httpHeadMaxBytes": 1, "httpBodyMaxBytes": 1}

        def refused() -> dict[str, float]:
            found = scrape(server).items()
            return {
                labels[0][1]: value
                for (name, labels), value in found
                if name == "limit_refusals_total" and value
            }

        eventually(lambda: refused() == wanted, 10)


def test_a_refused_registration_is_counted_and_said(server: NameServer) -> None:
    broker = {"brokerName": "bad", "brokerAddr": "127.0.0.9:1", "clusterName": "c1", "brokerId": "0"}
    server.ask(RequestCode.REGISTER_BROKER, broker | {"bodyCrc32": "1"})
    eventually(lambda: value(server, "registration_events_total", result="rejected") == 1, 10)
    assert (
        "the registration of broker bad at 127.0.0.9:1 in cluster c1, which came from 127." in server.output
    )
    assert "crc32 not match" in server.output
