"""Watchers through gunicorn's workers and sockets: what they are sent, from where, and how they end."""

import http.client
import json
import os
import signal
import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis as redis_py

from metrics import files as metric_files
from mqnamesrv.store import EmbeddedStore
from registry.keys import Keys
from testbed.eventually import PATIENCE_S, eventually
from testbed.process_tree import command_line, family
from testbed.scrape import value
from testbed.watchers import Fleet, SseWatcher
from tests.api.gunicorn import http_workers
from tests.api.http import a_broker

KEYS = Keys()
AS_JSON = {"Accept": "application/json"}


class Client:
    """Requests to one address, each over a connection of its own."""

    def __init__(self, address: str) -> None:
        self.address = address
        self.host, _, port = address.partition(":")
        self.port = int(port)

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> tuple[int, Any]:
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            return ask(connection, method, path, body, **headers)
        finally:
            connection.close()

    def register(self, **members: Any) -> str:
        """Register a broker; return the id of its last entry."""
        status, answer = self("POST", "/v1/brokers", a_broker(**members))
        assert status == 200, answer
        status, page = self("GET", "/v1/events?order=desc&limit=1")
        return str(page["events"][0]["id"])

    def put(self, key: str, value: str) -> str:
        status, answer = self("PUT", f"/v1/kv/n/{key}", {"value": value})
        assert status == 200, answer
        return str(answer["eventId"])

    def poll(self, query: str = "") -> Any:
        status, answer = self("GET", f"/v1/watch?{query}", **AS_JSON)
        assert status == 200, answer
        return answer

    def counts(self, name: str, **labels: str) -> float:
        return value(self.port, name, **labels)


def ask(
    connection: http.client.HTTPConnection, method: str, path: str, body: Any = None, **headers: str
) -> tuple[int, Any]:
    """Return status and JSON of a response."""
    given = None if body is None else json.dumps(body)
    connection.request(method, path, given, {"Content-Type": "application/json", **headers})
    response = connection.getresponse()
    return response.status, json.loads(response.read() or b"null")


@pytest.fixture(autouse=True)
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(metric_files.VARIABLE, str(tmp_path))


@pytest.fixture
def client(store: EmbeddedStore) -> Iterator[Client]:
    with http_workers(store.url, workers=1) as address:
        yield Client(address)


Taken = list[tuple[str, str, Any]]


@contextmanager
def watching(
    client: Client, path: str = "/v1/watch", last_id: str = ""
) -> Iterator[tuple[Fleet, SseWatcher, Taken]]:
    """Yield a watcher whose answer has begun, and what it takes: kind, id, data."""
    taken: Taken = []
    watcher = SseWatcher(path, lambda _, kind, at, data: taken.append((kind, at, json.loads(data))))
    watcher.last_id = last_id
    fleet = Fleet(client.host, client.port, [watcher])
    try:
        assert fleet.run(lambda: watcher.is_open and watcher.last_id != "", PATIENCE_S)
        yield fleet, watcher, taken
    finally:
        fleet.close()


def ids_of(taken: Taken) -> list[str]:
    return [at for kind, at, _ in taken if kind == "change"]


def test_a_watcher_gets_what_is_recorded_once_its_answer_has_begun(client: Client) -> None:
    client.register()
    with watching(client) as (fleet, _, taken):
        assert taken == []
        ids = [client.put("k", str(number)) for number in range(3)]
        assert fleet.run(lambda: ids_of(taken) == ids, PATIENCE_S)
    _, page = client("GET", "/v1/events?limit=1&order=desc")
    assert taken[-1][2] == {"id": ids[-1], "reset": None, "events": page["events"]}


def test_the_entries_of_one_change_are_one_message(client: Client) -> None:
    client.put("k", "v")
    with watching(client) as (fleet, _, taken):
        last = client.register()
        assert fleet.run(lambda: ids_of(taken) == [last], PATIENCE_S)
    assert [entry["kind"] for entry in taken[0][2]["events"]] == ["broker_registered", "topics_changed"]


def test_one_that_comes_back_goes_on_where_it_was(client: Client) -> None:
    first = client.put("k", "0")
    with watching(client) as (fleet, watcher, _):
        assert watcher.last_id == first
        one = client.put("k", "1")
        assert fleet.run(lambda: watcher.last_id == one, PATIENCE_S)
    missed = [client.put("k", str(number)) for number in range(2, 5)]
    with watching(client, last_id=one) as (fleet, _, taken):
        more = client.put("k", "5")
        assert fleet.run(lambda: ids_of(taken) == [*missed, more], PATIENCE_S)
        assert [kind for kind, _, _ in taken] == ["change"] * 4


def test_the_header_of_one_that_comes_back_is_newer_than_its_url(client: Client) -> None:
    first, second, third = (client.put("k", str(number)) for number in range(3))
    with watching(client, f"/v1/watch?after={first}", last_id=second) as (fleet, _, taken):
        assert fleet.run(lambda: ids_of(taken) == [third], PATIENCE_S)


def test_another_worker_goes_on_where_this_one_was(store: EmbeddedStore) -> None:
    with http_workers(store.url, workers=1) as address:
        client = Client(address)
        ids = [client.put("k", str(number)) for number in range(200)]
    with (
        http_workers(store.url, workers=1) as address,
        watching(Client(address), last_id=ids[10]) as (fleet, _, taken),
    ):
        assert fleet.run(lambda: ids_of(taken) == ids[11:], PATIENCE_S), (ids[9:], taken)


def test_what_is_older_than_a_worker_caches_comes_from_the_store(store: EmbeddedStore) -> None:
    with http_workers(store.url, workers=1) as address:
        client = Client(address)
        ids = [client.put("k", str(number)) for number in range(700)]
        with watching(client, last_id=ids[0]) as (fleet, _, taken):
            assert fleet.run(lambda: len(taken) >= 699, PATIENCE_S)
            ids.append(client.put("k", "x"))
            assert fleet.run(lambda: ids_of(taken) == ids[1:], PATIENCE_S)


def test_a_filter_of_a_topic_follows_its_brokers(client: Client) -> None:
    client.register()
    client.register(brokerName="broker-b", brokerAddr="127.0.1.9:10911", topics=[{"topicName": "TopicZ"}])
    with watching(client, "/v1/watch?topic=TopicA") as (fleet, _, taken):
        client.put("k", "v")
        status, answer = client("PUT", "/v1/brokers/broker-a/drain", {"owner": "me", "reason": "work"})
        assert status == 200, answer
        assert fleet.run(lambda: len(taken) == 1, PATIENCE_S)
    assert [entry["kind"] for entry in taken[0][2]["events"]] == ["drain_changed"]


def test_a_filter_of_kinds_and_a_broker(client: Client) -> None:
    client.register()
    with watching(client, "/v1/watch?kind=kv_changed,drain_changed&actor=http") as (fleet, _, taken):
        client.register(
            dataVersion={"timestamp": 1700000000000, "counter": 2}, topics=[{"topicName": "Other"}]
        )
        at = client.put("k", "v")
        assert fleet.run(lambda: ids_of(taken) == [at], PATIENCE_S)


def test_a_long_poll_is_answered_when_there_is_something(client: Client) -> None:
    first, second = client.put("k", "1"), client.put("k", "2")
    answer = client.poll(f"after={first}")
    assert [message["id"] for message in answer["messages"]] == [second]
    assert answer["next"] == second
    with socket.create_connection((client.host, client.port)) as peer:
        peer.sendall(
            f"GET /v1/watch?after={second} HTTP/1.1\r\nHost: localhost\r\nAccept: application/json\r\n\r\n".encode()
        )
        eventually(lambda: client.counts("watchers", transport="longpoll") == 1)
        third = client.put("k", "3")
        with peer.makefile("rb") as answers:
            text = b"".join(iter(answers.readline, b"0\r\n"))
    assert f'"next":"{third}"'.encode() in text


def test_a_long_poll_without_news_ends_in_time_and_its_connection_goes_on(client: Client) -> None:
    at = client.put("k", "1")
    connection = http.client.HTTPConnection(client.address, timeout=PATIENCE_S)
    ports = set()
    for _ in range(3):
        status, answer = ask(connection, "GET", "/v1/watch?waitMillis=1", **AS_JSON)
        assert (status, answer) == (200, {"messages": [], "next": at})
        ports.add(connection.sock.getsockname()[1])
    status, _ = ask(connection, "GET", "/healthz")
    assert (status, len(ports)) == (200, 1)
    connection.close()


def test_a_peer_of_http_1_0_gets_no_chunks_and_an_end(client: Client) -> None:
    at = client.put("k", "1")
    with socket.create_connection((client.host, client.port), PATIENCE_S) as peer:
        peer.sendall(
            b"GET /v1/watch?waitMillis=1 HTTP/1.0\r\nHost: localhost\r\nAccept: application/json\r\n\r\n"
        )
        whole = b"".join(iter(lambda: peer.recv(4096), b""))
    head, _, body = whole.partition(b"\r\n\r\n")
    assert b"chunked" not in head
    assert json.loads(body) == {"messages": [], "next": at}


def test_a_head_is_answered_at_once(client: Client) -> None:
    connection = http.client.HTTPConnection(client.address, timeout=PATIENCE_S)
    connection.request("HEAD", "/v1/watch")
    response = connection.getresponse()
    assert (response.status, response.read()) == (200, b"")
    assert response.headers["Content-Type"].startswith("text/event-stream")
    connection.close()


@pytest.mark.parametrize(
    ("query", "headers", "field"),
    [
        ("after=x", {}, "after"),
        ("waitMillis=60001", AS_JSON, "waitMillis"),
        ("waitMillis=-1", AS_JSON, "waitMillis"),
        ("topic=", {}, "topic"),
        ("color=red", {}, "color"),
        ("", {"Last-Event-ID": "12"}, "Last-Event-ID"),
    ],
)
def test_bad_input_is_named(client: Client, query: str, headers: dict[str, str], field: str) -> None:
    status, problem = client("GET", f"/v1/watch?{query}", **headers)
    assert (status, problem["field"]) == (422, field)


def test_there_are_no_more_watchers_than_the_option_allows(store: EmbeddedStore) -> None:
    with http_workers(store.url, workers=1, http_max_watchers=2) as address:
        client = Client(address)
        with watching(client), watching(client):
            eventually(lambda: client("GET", "/v1/watch")[0] == 503)
            status, problem = client("GET", "/v1/watch")
            assert (status, problem["type"]) == (503, "urn:redis-namesrv:too-many-watchers")
            eventually(lambda: client.counts("limit_refusals_total", limit="httpMaxWatchers") >= 2)
        eventually(lambda: client("GET", "/v1/watch?waitMillis=1", **AS_JSON)[0] == 200)


def test_other_requests_are_answered_while_there_are_more_watchers_than_threads(client: Client) -> None:
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(watching(client))
        assert client("GET", "/v1/clusters")[0] == 200


def test_an_emptied_store_is_a_reset(client: Client, redis: redis_py.Redis) -> None:
    client.put("k", "1")
    with watching(client) as (fleet, _, taken):
        redis.flushall()
        at = client.put("k", "2")
        assert fleet.run(lambda: ids_of(taken) == [at], PATIENCE_S)
    assert [(kind, data["reset"]) for kind, _, data in taken] == [("reset", "incarnation"), ("change", None)]


def test_writes_that_the_store_lost_are_a_reset(client: Client, redis: redis_py.Redis) -> None:
    client.put("k", "1")
    with watching(client) as (fleet, watcher, taken):
        lost = client.put("k", "2")
        assert fleet.run(lambda: watcher.last_id == lost, PATIENCE_S)
        taken.clear()
        redis.xdel(KEYS.events, lost)
        redis.hincrby(KEYS.events_meta, "seq", -1)
        again = client.put("k", "3")
        assert fleet.run(lambda: ids_of(taken) == [again], PATIENCE_S)
    assert [data["reset"] for _, _, data in taken] == ["rollback", None]


def test_what_was_trimmed_while_one_was_away_is_a_reset(client: Client, redis: redis_py.Redis) -> None:
    ids = [client.put("k", str(number)) for number in range(5)]
    redis.xtrim(KEYS.events, minid=ids[3], approximate=False)
    with watching(client, last_id=ids[1]) as (fleet, _, taken):
        assert fleet.run(lambda: ids_of(taken) == ids[3:], PATIENCE_S)
    assert [data["reset"] for _, _, data in taken] == ["trimmed", None, None]


def test_watchers_stay_while_the_store_is_away(tmp_path: Path) -> None:
    own = EmbeddedStore(tmp_path)
    own.start()
    try:
        with (
            http_workers(own.url, workers=1) as address,
            watching(Client(address)) as (fleet, watcher, taken),
        ):
            client = Client(address)
            os.kill(own.child.pid, signal.SIGSTOP)
            fleet.run(lambda: False, 5.0)  # longer than a read of the follower may take
            os.kill(own.child.pid, signal.SIGCONT)
            eventually(lambda: client("PUT", "/v1/kv/n/k", {"value": "v"})[0] == 200)
            assert fleet.run(lambda: len(ids_of(taken)) >= 1, PATIENCE_S)
            assert watcher.connections == 1
    finally:
        own.stop()


def test_one_that_does_not_read_is_cut_off_and_others_are_not(store: EmbeddedStore) -> None:
    options = {
        "http_answer_timeout_millis": 1000,
        "http_held_bytes": 4 << 20,
        "max_kv_namespace_bytes": 1 << 30,
    }
    with http_workers(store.url, workers=1, **options) as address:
        client = Client(address)
        client.put("k", "v")
        with (
            socket.create_connection((client.host, client.port)) as idle,
            watching(client) as (fleet, watcher, taken),
        ):
            idle.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
            idle.sendall(b"GET /v1/watch HTTP/1.1\r\nHost: localhost\r\n\r\n")
            eventually(lambda: client.counts("watchers", transport="sse") == 2)
            ids = []
            for number in range(60):
                ids.append(client.put("k", str(number).rjust(60_000, "x")))
                fleet.run(lambda: ids_of(taken) == ids, 1.0)
            assert fleet.run(lambda: ids_of(taken) == ids, PATIENCE_S)
            assert fleet.run(lambda: client.counts("watch_events_total", result="dropped") == 1, PATIENCE_S)
            assert watcher.connections == 1


def test_a_reload_loses_and_repeats_nothing(store: EmbeddedStore) -> None:
    with http_workers(store.url, workers=2) as address:
        client = Client(address)
        client.put("k", "v")
        taken: dict[SseWatcher, list[str]] = {}
        fleet = Fleet(
            client.host,
            client.port,
            (
                SseWatcher("/v1/watch", lambda one, _, at, __: taken.setdefault(one, []).append(at))
                for _ in range(40)
            ),
        )
        try:
            assert fleet.run(lambda: all(one.last_id for one in fleet.watchers), PATIENCE_S)
            ids = [client.put("k", str(number)) for number in range(5)]
            os.kill(_master(), signal.SIGHUP)
            while not fleet.run(
                lambda: all(one.connections > 1 and one.is_open for one in fleet.watchers), 0.05
            ):
                ids.append(client.put("k", str(time.time())))
            ids.append(client.put("k", "last"))
            assert fleet.run(lambda: all(taken[one] == ids for one in fleet.watchers), PATIENCE_S)
        finally:
            fleet.close()


def _master() -> int:
    """Return the gunicorn master among this process's children."""
    (master,) = [pid for pid in family(os.getpid()) if "master [mqnamesrv-http]" in command_line(pid)]
    return master
