"""The thread of the watchers over real sockets: how it begins and ends, who may stay, and what silence brings."""

import logging
import socket
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import redis as redis_py

from api.transport.answer import LAST_CHUNK, Answer
from api.watchers import backlog, catching_up, crowd, feed, history, holders, hub, stalled, thread
from api.watchers.thread import Watchers, WatchRequest
from api.watchers.watcher import Audience
from mqnamesrv.store import EmbeddedStore
from registry import kv
from registry.drivers import run
from registry.events.entry import EventId
from registry.events.watched import Wanted
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from testbed.eventually import PATIENCE_S, eventually

KEYS = Keys()
EVERYTHING = WatchRequest(Audience(Wanted()), None)


class Peer:
    """The far end of a watcher's connection."""

    def __init__(self) -> None:
        self.socket, self.near = socket.socketpair()
        self.near.setblocking(False)
        self.socket.settimeout(PATIENCE_S)
        self.text = b""
        self.given_back = threading.Event()

    def read_until(self, text: bytes) -> bool:
        """Read until this has come; False if the connection ends before."""
        while text not in self.text:
            try:
                data = self.socket.recv(4096)
            except ConnectionResetError:
                data = b""
            if not data:
                return False
            self.text += data
        return True


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "TICK_S", 0.02)
    monkeypatch.setattr(holders, "EVERY_S", 0.02)
    monkeypatch.setattr(thread, "JUDGE_S", 0.02)
    monkeypatch.setattr(thread, "IDLE_S", 0.1)


@pytest.fixture
def begin(store: EmbeddedStore) -> Iterator[Callable[..., Watchers]]:
    begun: list[Watchers] = []

    def make(admits: Callable[[Any], bool] = lambda _: True, **options: Any) -> Watchers:
        begun.append(Watchers(KEYS, Options(redis_url=store.url, **options), admits))
        return begun[-1]

    yield make
    for watchers in begun:
        watchers.stop()


@pytest.fixture
def hubs(monkeypatch: pytest.MonkeyPatch) -> list[hub.Hub]:
    """Return those that threads of the test make."""
    made: list[hub.Hub] = []

    class Kept(hub.Hub):
        def __init__(self, *given: Any, **more: Any) -> None:
            super().__init__(*given, **more)
            made.append(self)

    monkeypatch.setattr(thread, "Hub", Kept)
    return made


def taken(watchers: Watchers, request: WatchRequest = EVERYTHING) -> Peer:
    peer = Peer()
    watchers.take(peer.near, Answer(), request, peer.given_back.set)
    return peer


def put(redis: redis_py.Redis, text: str) -> str:
    return run(kv.put(KEYS, "n", "k", text, Origin("o", "cli:test")), redis)


def threads() -> int:
    return sum(one.name == "watchers" for one in threading.enumerate())


def test_a_reader_of_little_goes_on_from_now_too(begin: Any, redis: redis_py.Redis) -> None:
    begun = put(redis, "0")
    peer = taken(begin(), WatchRequest(Audience(Wanted(topic="None")), None))
    assert peer.read_until(f"id: {begun}\n".encode())
    at = put(redis, "1")
    assert peer.read_until(f":\nid: {at}\n".encode())
    assert b"data:" not in peer.text


def test_the_thread_ends_without_watchers_and_begins_with_the_next(begin: Any, redis: redis_py.Redis) -> None:
    watchers = begin()
    for text in ("1", "2"):
        peer = taken(watchers)
        assert peer.read_until(b"id: ")
        at = put(redis, text)
        assert peer.read_until(b"id: %s\ndata: " % at.encode())
        assert threads() == 1
        peer.socket.close()
        eventually(lambda: threads() == 0)


def test_one_that_may_watch_no_more_is_ended_and_others_stay(begin: Any, redis: redis_py.Redis) -> None:
    good = {"a", "b"}
    watchers = begin(good.__contains__)
    first, second = (taken(watchers, WatchRequest(Audience(Wanted()), name)) for name in ("a", "b"))
    assert first.read_until(b"id: ")
    assert second.read_until(b"id: ")
    good.remove("a")
    assert first.read_until(LAST_CHUNK)
    assert first.given_back.wait(PATIENCE_S)
    at = put(redis, "1")
    assert second.read_until(at.encode())
    assert not second.given_back.is_set()


def test_all_are_ended_with_the_worker_and_none_comes_then(begin: Any) -> None:
    watchers = begin()
    peer = taken(watchers)
    assert peer.read_until(b"id: ")
    watchers.stop()
    assert peer.read_until(LAST_CHUNK)
    assert peer.socket.recv(1) == b""
    assert taken(watchers).socket.recv(1) == b""
    assert threads() == 0


def test_a_long_poll_that_is_ended_says_where_to_go_on(begin: Any, redis: redis_py.Redis) -> None:
    at, watchers = put(redis, "0"), begin()
    poll = taken(watchers, WatchRequest(Audience(Wanted(), is_long_poll=True), None, EventId.parse(at), 60.0))
    assert taken(watchers).read_until(b"id: ")
    watchers.stop()
    assert poll.read_until(LAST_CHUNK)
    assert b'{"messages":[],"next":"%s"}\n' % at.encode() in poll.text


def test_behind_a_hole_the_brokers_of_a_topic_are_read_again(
    begin: Any, redis: redis_py.Redis, hubs: list[hub.Hub]
) -> None:
    """b9 holds the topic by an entry that is missing."""
    put(redis, "0")
    watchers = begin()
    peer = taken(watchers, WatchRequest(Audience(Wanted(topic="T1")), None))
    assert peer.read_until(b"id: ")
    eventually(lambda: hubs and not hubs[-1].holders.unknown())
    redis.hset(KEYS.route("T1"), "b9", "1,8,8,6,0")
    redis.hincrby(KEYS.events_meta, "seq", 1)
    put(redis, "1")
    assert peer.read_until(b"event: reset")
    at = _removed(redis, "b9")
    assert peer.read_until(b"id: %s\ndata: " % at.encode())


def test_a_watcher_of_a_topic_gets_no_change_of_other_brokers(
    begin: Any, redis: redis_py.Redis, hubs: list[hub.Hub]
) -> None:
    put(redis, "0")
    redis.hset(KEYS.route("T1"), "b1", "1,8,8,6,0")
    peer = taken(begin(), WatchRequest(Audience(Wanted(topic="T1")), None))
    assert peer.read_until(b"id: ")
    eventually(lambda: hubs and not hubs[-1].holders.unknown())
    for broker in ("b2", "b1"):
        at = _removed(redis, broker)
    assert peer.read_until(b"id: %s\ndata: " % at.encode())
    assert peer.text.count(b"data: ") == 1


def _removed(redis: redis_py.Redis, broker: str) -> str:
    meta = redis.hgetall(KEYS.events_meta)
    seq = str(redis.hincrby(KEYS.events_meta, "seq", 1))
    entry = {"v": "1", "kind": "broker_removed", "broker": broker, "inc": meta["inc"], "seq": seq}
    return str(redis.xadd(KEYS.events, entry))  # type: ignore[arg-type]


def test_what_watchers_do_not_read_takes_no_more_than_it_may(
    begin: Any, redis: redis_py.Redis, hubs: list[hub.Hub], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each comes back from long ago, so it has bytes of its own."""
    ids = [put(redis, str(number).rjust(60_000, "x")) for number in range(12)]
    monkeypatch.setattr(backlog, "MOST_MESSAGES", 5)
    most, held = 4_000_000, [0]
    add = stalled.Stalled.add

    def noted(self: Any, watcher: Any, block: Any, now: float) -> None:
        held[0] = max(held[0], self._held)
        add(self, watcher, block, now)

    monkeypatch.setattr(stalled.Stalled, "add", noted)
    watchers = begin(http_held_bytes=most)
    request = WatchRequest(Audience(Wanted()), None, EventId.parse(ids[0]))
    peers = [taken(watchers, request) for _ in range(40)]
    eventually(lambda: hubs and held[0] and len(hubs[-1].watchers) < 5)
    assert most / 2 < held[0] <= most
    assert len(peers) == 40


def test_one_that_catches_up_and_wants_little_is_sent_where_it_is(
    begin: Any, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [put(redis, str(number)) for number in range(300)]
    monkeypatch.setattr(backlog, "MOST_MESSAGES", 5)
    monkeypatch.setattr(catching_up, "HEARTBEAT_TICKS", 0)
    wanted = Wanted(frozenset({"drain_changed"}))
    peer = taken(begin(), WatchRequest(Audience(wanted), None, EventId.parse(ids[0])))
    assert peer.read_until(b":\nid: %s\n" % ids[64].encode())
    assert b"data" not in peer.text


def test_those_that_come_the_same_way_are_read_for_once(
    begin: Any, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    ids = [put(redis, str(number)) for number in range(1000)]
    monkeypatch.setattr(backlog, "MOST_MESSAGES", 5)
    monkeypatch.setattr(feed, "PAGES", 1)
    reads: list[EventId] = []
    next_messages = history.History.next_messages

    def noted(self: history.History) -> Any:
        reads.append(self.position)
        return next_messages(self)

    monkeypatch.setattr(history.History, "next_messages", noted)
    watchers = begin()
    peers = [
        taken(watchers, WatchRequest(Audience(Wanted()), None, EventId.parse(ids[0]))) for _ in range(10)
    ]
    for peer in peers:
        assert peer.read_until(b"id: %s\ndata: " % ids[-1].encode())
        assert peer.text.count(b"data: ") == 999
    assert len(reads) < 60  # 10 readers of 16 blocks each


def test_what_a_peer_says_ends_its_answer(begin: Any) -> None:
    watchers = begin()
    peer = taken(watchers)
    assert peer.read_until(b"id: ")
    peer.socket.sendall(b"GET / HTTP/1.1\r\n")
    assert not peer.read_until(b"never")
    assert not peer.given_back.is_set()


def test_a_thread_that_a_fault_ends_is_reported_and_the_next_watcher_has_another(
    begin: Any, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def broken(*_: Any, **__: Any) -> None:
        raise RuntimeError("broken")

    watchers = begin()
    with monkeypatch.context() as faulty, caplog.at_level(logging.ERROR):
        faulty.setattr(thread, "Hub", broken)
        assert taken(watchers).socket.recv(1) == b""
    assert "ended by a fault of this server" in caplog.text
    eventually(lambda: threads() == 0)
    assert taken(watchers).read_until(b"id: ")


def test_a_fault_with_one_watcher_cuts_it_off_alone(
    begin: Any, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchers = begin()
    first = taken(watchers)
    assert first.read_until(b"id: ")
    monkeypatch.setattr(history.History, "next_messages", lambda _: 1 / 0)
    late = taken(watchers, WatchRequest(Audience(Wanted()), None, EventId(1)))
    assert not late.read_until(b"never")
    at = put(redis, "1")
    assert first.read_until(at.encode())


def test_those_that_could_not_be_sent_a_change_are_cut_off_and_miss_nothing(
    begin: Any, redis: redis_py.Redis, monkeypatch: pytest.MonkeyPatch
) -> None:
    watchers = begin()
    first = taken(watchers)
    other = taken(watchers, WatchRequest(Audience(Wanted(actor="cli")), None))
    assert first.read_until(b"id: ")
    assert other.read_until(b"id: ")
    sent = crowd.Crowd._send
    failing = [True]

    async def once(self: Any, block: Any, those: Any) -> int:
        if failing and b"data" in block.data:
            failing.clear()
            raise RuntimeError("a fault")
        return await sent(self, block, those)

    monkeypatch.setattr(crowd.Crowd, "_send", once)
    at = put(redis, "1")
    ended = [peer for peer in (first, other) if not peer.read_until(b"id: %s\ndata" % at.encode())]
    assert len(ended) == 1


def test_a_head_that_was_not_read_yet_is_sent_first_and_nothing_twice(
    begin: Any, redis: redis_py.Redis
) -> None:
    first = put(redis, "0")
    peer, answer, watchers = Peer(), Answer(), begin()
    answer.sendall(b"h" * 4_000_000)
    watchers.take(peer.near, answer, EVERYTHING, peer.given_back.set)
    other = taken(watchers)
    assert other.read_until(first.encode())
    ids = [put(redis, str(number)) for number in range(1, 4)]
    assert other.read_until(ids[-1].encode())
    assert peer.read_until(b"id: %s\ndata: " % ids[-1].encode())
    ids.append(put(redis, "4"))
    assert peer.read_until(b"id: %s\ndata: " % ids[-1].encode())
    assert [peer.text.count(b"id: %s\ndata: " % at.encode()) for at in ids] == [1] * 4


def test_many_join_while_changes_come(begin: Any, redis: redis_py.Redis) -> None:
    watchers = begin()
    ids: list[str] = []
    peers = []
    for number in range(60):
        ids.append(put(redis, str(number)))
        after = EventId.parse(ids[0])
        peers.append(
            taken(
                watchers, WatchRequest(Audience(Wanted(actor="cli") if number % 2 else Wanted()), None, after)
            )
        )
    ids.append(put(redis, "last"))
    for peer in peers:
        assert peer.read_until(b"id: %s\ndata: " % ids[-1].encode())
        whole = peer.text[: peer.text.rindex(b"\n\n")]  # the last event may have come in part
        at = [line[4:].decode() for line in whole.splitlines() if line.startswith(b"id: ")]
        data = peer.text.count(b"data: ")
        assert data == len(ids) - 1
        assert at == sorted(at, key=EventId.parse)
