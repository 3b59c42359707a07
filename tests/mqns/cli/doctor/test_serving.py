"""Name servers that respond and do not serve: facts of such, and a real one whose store is taken away."""

import asyncio
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest

from mqns.cli.doctor import differences, serving, topics
from mqns.cli.doctor.contact import STORE_LATE_S, evidence
from mqns.cli.doctor.facts import BROKERS, CONFIG, ROUTES, TOPICS, Facts, HttpFacts, Refusal
from mqns.cli.doctor.http_side import STORE_UNAVAILABLE
from mqns.cli.exit_codes import ExitCode
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.version import V5_0_0
from testbed.broker import A as BROKER_A
from testbed.eventually import eventually
from testbed.nameserver import NameServer
from testbed.ports import free_port
from testbed.redis_servers import Server, running
from testbed.scene import Scene
from tests.mqns.cli.conftest import Ended, address, http_side, run
from tests.mqns.cli.doctor.rows import A, B, C, Reported, reported, server
from tests.mqns.remoting.servers import Serve, served

AWAY = Refusal(ResponseCode.SYSTEM_ERROR, "the store cannot serve now")
BUSY = Refusal(ResponseCode.SYSTEM_BUSY, "[OVERLOAD]system busy")
DISABLED = Refusal(ResponseCode.SYSTEM_ERROR, "disable")
UNKNOWN = Refusal(ResponseCode.REQUEST_CODE_NOT_SUPPORTED, " request type 206 not supported")
FORBIDDEN = Refusal(ResponseCode.NO_PERMISSION, "no")
URL = "http://ns:8080"
REFUSED, NOT_READY, LATE_FOLLOWER = "requests-refused", "not-ready", "follower-late"
STORE_GONE = "store-away"
STREAM = "1 of 16 connections are of workers that are not ready: the event stream was not read for 7.0 s"
LEASES = "leases were not watched for 7.0 s"
BOUND_S = 15.0
ORDER = "ORDER_TOPIC_CONFIG"

SERVING: list[tuple[str, dict[str, Any], list[Reported]]] = [
    (
        "one cause is one finding",
        {"refusals": {TOPICS: AWAY, BROKERS: AWAY}},
        [("error", REFUSED, (A,), (BROKERS, TOPICS))],
    ),
    ("an overload", {"refusals": {ROUTES: BUSY}}, [("error", REFUSED, (A,), (ROUTES,))]),
    (
        "what options, permissions and releases forbid",
        {"refusals": {TOPICS: DISABLED, CONFIG: FORBIDDEN, ROUTES: UNKNOWN}},
        [("info", "not-compared", (A,), (what,)) for what in (TOPICS, CONFIG, ROUTES)],
    ),
    ("a worker is not ready", {"not_ready": f"{STREAM} and {LEASES}"}, [("error", NOT_READY, (A,), (A,))]),
    ("a worker does not follow", {"not_ready": STREAM}, [("error", LATE_FOLLOWER, (A,), (A,))]),
    (
        "no worker follows",
        {
            "http": HttpFacts(
                URL, "status 503", not_ready="none follows", not_ready_kind="events-not-followed"
            )
        },
        [("error", LATE_FOLLOWER, (A,), (A,))],
    ),
    (
        "one does not follow, none watches leases",
        {
            "not_ready": STREAM,
            "http": HttpFacts(URL, "503", not_ready="late", not_ready_kind="lease-clock-late"),
        },
        [("error", NOT_READY, (A,), (A,))],
    ),
    (
        "the store is away: one cause",
        {
            "store_away": ("a lookup failed",),
            "not_ready": STREAM,
            "not_asked": (TOPICS, BROKERS),
            "refusals": {TOPICS: AWAY},
            "http": HttpFacts(URL, "503", not_ready="no store", not_ready_kind=STORE_UNAVAILABLE),
        },
        [("error", STORE_GONE, (A,), (A,)), ("info", "not-asked", (A,), (TOPICS, BROKERS))],
    ),
    (
        "no worker is ready",
        {"http": HttpFacts(URL, "status 503", not_ready="no worker")},
        [("error", NOT_READY, (A,), (A,))],
    ),
    (
        "only the HTTP side fails",
        {"http": HttpFacts(URL, "status 500", refused="GET /v1/brokers: status 500")},
        [("error", REFUSED, (A,), (URL,))],
    ),
    ("the HTTP side is not there", {"http": HttpFacts(URL, "Connection refused")}, []),
]


@pytest.mark.parametrize(("facts", "expected"), [row[1:] for row in SERVING], ids=[row[0] for row in SERVING])
def test_checks(facts: dict[str, Any], expected: list[Reported]) -> None:
    assert sorted(reported(serving.check, server(A, **facts))) == sorted(expected)


async def ready(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a redis-namesrv that is ready, and knows no other requests."""
    await replying(reader, writer, V5_0_0, ResponseCode.SUCCESS)


def test_a_store_that_is_away_is_one_finding_of_all_name_servers() -> None:
    away: dict[str, Any] = {"store_away": ("a lookup failed",), "topics": None}
    (finding,) = serving.check(Facts((server(A, {}, {}, **away), server(B, {}, {}, **away), server(C))))
    assert (finding.check, finding.name_servers, finding.what.count("a lookup failed")) == (
        STORE_GONE,
        (A, B),
        1,
    )
    assert "Do not restart workers" in finding.advice


@pytest.mark.parametrize("name_server", [ready, None], ids=["ready", "silent"])
def test_an_http_side_whose_store_is_away(name_server: Serve | None, unreachable: str) -> None:
    """Both of its answers say so; and where no worker answers, `/readyz` alone is believed."""
    body = b'{"type":"urn:redis-namesrv:store-unavailable","detail":"no store"}'
    reply = (
        b"HTTP/1.1 503 Service Unavailable\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % len(body)
        + body
    )

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        writer.close()

    with ExitStack() as stack:
        url = stack.enter_context(served(answer))
        where = unreachable if name_server is None else stack.enter_context(served(name_server))
        ended = run("doctor", where, "--http", url, "--recheck", "0", "-o", "json")
    found = {f["check"]: f["what"] for f in ended.document["findings"] if f["severity"] == "error"}
    assert f"http://{url}/readyz: no store" in found.pop(STORE_GONE)
    assert [*found] == ([] if name_server else ["name-server-silent"])


def test_an_http_side_that_hangs(silent: str) -> None:
    """Its port is open, as of a worker that stands still; that the findings of the name server are missing is said."""
    with served(ready) as where:
        ended = run("--timeout", "1", "doctor", where, "--http", silent, "--recheck", "0", "-o", "json")
    (hung,) = (f for f in ended.document["findings"] if f["check"] == "http-silent")
    assert (ended.code, hung["severity"], hung["nameServers"]) == (ExitCode.FINDINGS, "error", [where])
    assert f"http://{silent} does not answer: no whole answer within 1 s" in hung["what"]
    assert "the name server finds about itself is missing here" in hung["what"]
    assert "a worker that stands still" in hung["advice"].lower()


def test_connections_that_there_was_no_time_for_are_named() -> None:
    (finding,) = serving.check(Facts((server(A),), {}, ("10.0.0.1:10911",)))
    assert (finding.check, finding.subjects, bool(finding.why)) == ("not-asked", ("10.0.0.1:10911",), True)


SIGNS = [
    # workers' lateness, what the lookup got, the kind of problem of /readyz: whether the store is away
    (None, None, None, False),
    (None, None, STORE_UNAVAILABLE, False),  # half a second was too short
    (STREAM, None, None, False),  # the store is full, or refuses
    (STREAM, None, STORE_UNAVAILABLE, True),
    (None, "code 1 (the store cannot serve now)", None, True),
    (None, "no answer within 5 s", None, False),
    (None, "no answer within 5 s", STORE_UNAVAILABLE, True),
    (STREAM, "no answer within 5 s", None, True),
    (STREAM, "no answer within 5 s", "lease-clock-late", True),
    (None, None, "lease-clock-late", False),
]


@pytest.mark.parametrize(("late", "lookup", "kind", "away"), SIGNS)
def test_what_says_that_the_store_is_away(
    late: str | None, lookup: str | None, kind: str | None, away: bool
) -> None:
    http = None if kind is None else HttpFacts(URL, "503", not_ready="why", not_ready_kind=kind)
    assert bool(evidence(late, lookup, http)) is away


def test_brokers_that_are_not_listed_are_not_missing() -> None:
    unlisted = server(B, {}, {}, topics=None, refusals={BROKERS: AWAY}, kv={ORDER: {"T": "broker-a:8"}})
    assert reported(differences.check, server(A), unlisted) == []
    assert reported(topics.check, unlisted) == []


async def refusing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a name server of 5.x that does not know the requests."""
    await replying(reader, writer, V5_0_0, UNKNOWN.code)


async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as one of 4.x, which says nothing to a request that it does not know."""
    await replying(reader, writer, V5_0_0 - 1, None)


async def replying(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, version: int, readiness: int | None
) -> None:
    """Refuse all requests, but that for readiness, which gets this code or no reply."""
    frames = FrameReader()
    while data := await reader.read(1 << 16):
        frames.feed(data)
        while (request := frames.next_command()) is not None:
            code = readiness if request.code == RequestCode.CHECK_READINESS else UNKNOWN.code
            if code is not None:
                reply = request.reply(code, remark=UNKNOWN.remark if code else None)
                writer.write(encode(msgspec.structs.replace(reply, version=version)))
    writer.close()


@pytest.mark.parametrize("name_server", [refusing, mute])
def test_readiness_of_javas_is_no_finding(name_server: Serve) -> None:
    with served(name_server) as where:
        ended = run("doctor", where, "--recheck", "0", "-o", "json")
    assert (ended.code, errors(ended)) == (ExitCode.OK, {})
    assert counts(ended) == [(None, None, None)]


async def ready_in_part(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a redis-namesrv: of all connections that are open at once the fourth has a worker that is not ready."""
    OPEN.add(writer)
    is_late = len(OPEN) == 4
    frames = FrameReader()
    while data := await reader.read(1 << 16):
        frames.feed(data)
        while (request := frames.next_command()) is not None:
            if request.code == RequestCode.CHECK_READINESS:
                reply = request.reply(
                    ResponseCode.SYSTEM_ERROR if is_late else 0, remark=LATE if is_late else None
                )
            else:
                reply = request.reply(UNKNOWN.code, remark=UNKNOWN.remark)
            writer.write(encode(msgspec.structs.replace(reply, version=V5_0_0)))
    writer.close()


OPEN: set[asyncio.StreamWriter] = set()
LATE = "not ready: leases were not watched for 7.0 s"


def test_one_worker_of_many_that_is_not_ready_is_found() -> None:
    OPEN.clear()
    with served(ready_in_part) as where:
        ended = run("doctor", where, "--recheck", "0", "-o", "json")
    found = "1 of 16 connections are of workers that are not ready: leases were not watched for 7.0 s"
    assert errors(ended) == {NOT_READY: found}


async def late(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a redis-namesrv whose store is late: the first lookup in time, and no list."""
    frames = FrameReader()
    while data := await reader.read(1 << 16):
        frames.feed(data)
        while (request := frames.next_command()) is not None:
            if request.code in (RequestCode.GET_NAMESRV_CONFIG, RequestCode.GET_KV_CONFIG):
                reply = request.reply(UNKNOWN.code, remark=UNKNOWN.remark)
            elif request.code == RequestCode.CHECK_READINESS:
                reply = request.reply(ResponseCode.SYSTEM_ERROR, remark=LATE)
            else:
                continue
            writer.write(encode(msgspec.structs.replace(reply, version=V5_0_0)))
    writer.close()


def test_a_store_that_is_late_is_away_and_no_name_server_is_silent() -> None:
    with served(late) as where:
        ended = run("doctor", where, "--recheck", "0", "-o", "json", "--timeout", "1")
    found = errors(ended)[STORE_GONE]
    assert "a request that needs it got no answer within 1 s; 16 of 16 connections" in found
    assert counts(ended) == [(None, None, None)]


async def later(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer as a redis-namesrv whose store takes longer than a second, and which is not ready."""
    frames = FrameReader()
    while data := await reader.read(1 << 16):
        frames.feed(data)
        while (request := frames.next_command()) is not None:
            ready = request.code != RequestCode.CHECK_READINESS
            if request.code == RequestCode.GET_KV_CONFIG:
                await asyncio.sleep(STORE_LATE_S + 0.1)
            reply = (
                request.reply(UNKNOWN.code)
                if ready
                else request.reply(ResponseCode.SYSTEM_ERROR, remark=LATE)
            )
            writer.write(encode(msgspec.structs.replace(reply, version=V5_0_0)))
    writer.close()


def test_a_first_lookup_that_is_late_is_a_sign() -> None:
    with served(later) as where:
        ended = run("doctor", where, "--recheck", "0", "-o", "json")
    found = errors(ended)[STORE_GONE]
    assert "a lookup got its answer after 1.1 s; 16 of 16 connections" in found


class Stored(msgspec.Struct, frozen=True):
    """A name server with one broker, and its store."""

    store: Server
    scene: Scene

    def doctor(self, *others: Scene) -> Ended:
        """Return its result, by HTTP too if no other name server is named."""
        http = () if others else ("--http", http_side(self.scene.server))
        return self.run(*others, arguments=("-o", "json", *http))

    def run(self, *others: Scene, arguments: tuple[str, ...] = ()) -> Ended:
        servers = [address(scene.server) for scene in (self.scene, *others)]
        return run("doctor", *servers, "--no-connect", "--recheck", "0", *arguments)


@pytest.fixture
def stored(tmp_path: Path) -> Iterator[Stored]:
    port = free_port()
    store = Server(tmp_path / "store", port, {"port": port})
    with running(store):
        server = NameServer(tmp_path / "server", {}, url=f"redis://127.0.0.1:{port}/0").start()
        try:
            scene = Scene(server)
            BROKER_A.register(scene.k1)
            yield Stored(store, scene)
        finally:
            server.stop()


def errors(ended: Ended) -> dict[str, str]:
    """Return what the errors say, by rule; those of the broker's address apart, which is of this machine."""
    found = {f["check"]: f["what"] for f in ended.document["findings"] if f["severity"] == "error"}
    assert (ended.code == ExitCode.FINDINGS) == bool(found)
    return {check: what for check, what in found.items() if not check.startswith("address-")}


def counts(ended: Ended) -> list[Any]:
    return [(s["clusters"], s["brokers"], s["topics"]) for s in ended.document["nameServers"]]


def when(look: Callable[[], Ended], holds: Callable[[Ended], object]) -> Ended:
    """Return the first result of `look` for which `holds`."""

    def found() -> Ended:
        ended = look()
        if not holds(ended):
            time.sleep(0.1)  # a run takes a worker's time too
            raise AssertionError(ended.out)
        return ended

    return eventually(found)


def is_all_refused(ended: Ended) -> bool:
    """Return whether no count came from a cache of a worker."""
    return bool(counts(ended)[0] == (None, None, None))


def test_a_user_with_too_few_rights_and_then_no_store(stored: Stored, ns: Scene) -> None:
    healthy = stored.doctor()
    assert (errors(healthy), counts(healthy)) == ({}, [(1, 1, 2)])
    client: Any = stored.store.client
    client.execute_command("ACL", "SETUSER", "default", "-evalsha", "-eval", "-sscan")
    found = errors(when(stored.doctor, is_all_refused))
    assert "no permissions to run the 'evalsha' command" in found[REFUSED]
    assert f"{TOPICS}: refused (NoPermissionError: " in found[REFUSED]
    assert NOT_READY in found or "GET /v1/brokers: status 503: the store refuses: " in found[REFUSED]

    stored.store.process.stop()
    ended = when(stored.doctor, is_all_refused)
    assert set(errors(ended)) == {STORE_GONE}
    assert "a lookup got code 1 (the store cannot serve now)" in errors(ended)[STORE_GONE]
    assert "/readyz: the store cannot serve: Error 111" in errors(ended)[STORE_GONE]
    assert [f["check"] for f in ended.document["findings"]] == [STORE_GONE, "not-asked"]
    shown = when(stored.run, lambda shown: shown.words[1][3:] == ["-", "-", "-"])
    assert (shown.code, "Do not restart workers" in shown.out) == (ExitCode.FINDINGS, True)

    BROKER_A.register(ns.k1)
    beside = when(lambda: stored.doctor(ns), is_all_refused)
    assert set(errors(beside)) == {STORE_GONE}, "what is refused is no difference"


@pytest.mark.parametrize("with_http", [True, False])
def test_a_store_that_hangs_is_away(stored: Stored, with_http: bool) -> None:
    """Within the time that was promised, from the first second on."""
    arguments = ("--http", http_side(stored.scene.server)) if with_http else ()
    assert stored.store.process.pid is not None
    os.kill(stored.store.process.pid, signal.SIGSTOP)
    try:
        for _ in range(2):
            began = time.monotonic()
            ended = stored.run(arguments=("-o", "json", *arguments))
            assert time.monotonic() - began < BOUND_S
            assert set(errors(ended)) == {STORE_GONE}
    finally:
        os.kill(stored.store.process.pid, signal.SIGCONT)


def test_events_of_a_wrong_type(stored: Stored) -> None:
    """They are a stream again with the next change, which deletes the key."""
    client: Any = stored.store.client
    key = stored.scene.server.keys.events
    client.eval("redis.call('DEL', KEYS[1]) return redis.call('SET', KEYS[1], 'no stream')", 1, key)
    ended = when(stored.doctor, does_not_follow)
    assert "/readyz: no remoting worker follows the stream of events" in errors(ended)[LATE_FOLLOWER]
    assert set(errors(ended)) == {LATE_FOLLOWER}
    assert BROKER_A.but(timestamp=2).register(stored.scene.k1).code == ResponseCode.SUCCESS
    when(stored.doctor, lambda found: not errors(found))


def does_not_follow(ended: Ended) -> bool:
    """Return whether both the worker and `/readyz` say so."""
    what = errors(ended).get(LATE_FOLLOWER, "")
    return "the event stream was not read for" in what and "/readyz: " in what
