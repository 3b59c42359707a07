"""Defects planted in the watchers' code: each is caught, by the rule that it breaks."""

import asyncio
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
import redis as redis_py

from api.transport.answer import Answer
from api.watchers import crowd, feed, hub
from api.watchers.messages import Message, change
from api.watchers.thread import Watchers, WatchRequest
from api.watchers.watcher import Audience
from mqnamesrv.store import EmbeddedStore
from registry import kv
from registry.drivers import run
from registry.events.entry import EventId
from registry.keys import Keys
from registry.options.catalogue import Options
from registry.plans import Origin
from testbed.eventually import PATIENCE_S
from tests.watch.judgement import complaints
from tests.watch.recording import RecordedWatcher, StreamReader

KEYS = Keys()
ORIGIN = Origin("o", "cli:test")
CHANGES = 60


def _joins_whatever_is_pending(self: Any, watcher: Any) -> None:
    self._members.setdefault(watcher.audience, crowd._Members()).watchers[watcher] = None


def _forgets_where_it_was(self: Any, watcher: Any) -> None:
    members = self._members.get(watcher.audience)
    if members is not None and watcher in members.watchers:
        del members.watchers[watcher]
        if not members.watchers:
            del self._members[watcher.audience]


def _knows_no_holders(self: Message, wanted: Any, holders: Any) -> Any:
    return WANTED(self, wanted, frozenset() if holders is None else holders)


WANTED = Message.wanted
PASS_OR = crowd.Crowd.pass_or


async def _late(self: Any, *given: Any) -> None:
    """More joins meet what is to be sent."""
    await asyncio.sleep(0.03)
    await PASS_OR(self, *given)


PLANTED: dict[str, tuple[Callable[[pytest.MonkeyPatch], object], str]] = {
    "a watcher joins while others are to be sent a change": (
        lambda patch: (
            patch.setattr(crowd.Crowd, "join", _joins_whatever_is_pending),
            patch.setattr(crowd.Crowd, "pass_or", _late),
        ),
        "nothing is missing",
    ),
    "a slow watcher forgets where it was": (
        lambda patch: patch.setattr(crowd.Crowd, "leave", _forgets_where_it_was),
        "each once, in order",
    ),
    "what is caught up with lacks changes of a topic's brokers": (
        lambda patch: patch.setattr(Message, "wanted", _knows_no_holders),
        "nothing is missing",
    ),
    "each entry is a message": (
        lambda patch: patch.setattr(
            feed, "messages_of", lambda group, _: [change([event]) for event in group]
        ),
        "only what was recorded",
    ),
}


@pytest.fixture
def seen(store: EmbeddedStore, redis: redis_py.Redis) -> Iterator[Callable[[], set[str]]]:
    watchers = Watchers(KEYS, Options(redis_url=store.url), lambda _: True)

    def rules() -> set[str]:
        return _broken_rules(watchers, redis)

    yield rules
    watchers.stop()


def _broken_rules(watchers: Watchers, redis: redis_py.Redis) -> set[str]:
    """Return the rules that are broken for watchers that come while changes are made."""
    reader, rng = StreamReader(redis, KEYS), random.Random(1)
    reader.start()
    ids, peers = [_change(redis, 0)], []
    with ExitStack() as stack:
        for number in range(1, CHANGES):
            ids.append(_change(redis, number))
            if number % 2 == 0:
                query = rng.choice(
                    ["", "topic=T1", f"kind=kv_changed,audience_{number}", f"kind=kv_changed,{number}"]
                )
                peers.append(_Reader(watchers, query, rng.choice(ids), stack))
        ids.append(_change(redis, CHANGES))
        for peer in peers:
            peer.read(ids[-1])
    stream = reader.whole(ids[-1])
    return {
        text.partition(":")[0]
        for peer in peers
        for text in complaints(peer.watcher.wanted, peer.watcher.seen, stream)
    }


def _change(redis: redis_py.Redis, number: int) -> str:
    """Make a change: first that a broker holds a topic, then KV, and groups of two about the broker, in turn."""
    if number == 0:
        redis.hset(KEYS.route("T1"), "b1", "1,8,8,6,0")
        _add(redis, 1, kind="stream_started")
        return _add(redis, 2, kind="topics_changed", rows='[["b1","","8,8,6,0",["T1"]]]', count="1")
    if number % 2:
        return run(kv.put(KEYS, "n", "k", "x" * 20_000 + str(number), ORIGIN), redis)
    with redis.pipeline() as both:
        seq = int(redis.hget(KEYS.events_meta, "seq") or 0)
        for part in (1, 2):
            _add(both, seq + part, kind="drain_changed", broker="b1", part=f"{part}/2")
        return str(both.execute()[2])


def _add(redis: redis_py.Redis, seq: int, **fields: str) -> str:
    entry = {"v": "1", "inc": "1", "seq": str(seq)} | fields
    event_id = redis.xadd(KEYS.events, entry)  # type: ignore[arg-type]
    redis.hset(KEYS.events_meta, mapping={"inc": "1", "seq": str(seq)})
    return str(event_id)


class _Reader:
    """A watcher over a pair of sockets, of which little fits into the kernel."""

    def __init__(self, watchers: Watchers, query: str, after: str, stack: ExitStack) -> None:
        self.watcher = RecordedWatcher(query, after)
        self.watcher.is_open = True
        self._socket, near = socket.socketpair()
        stack.enter_context(self._socket)
        self._socket.settimeout(PATIENCE_S)
        near.setblocking(False)
        near.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        audience = Audience(self.watcher.wanted, chunked=False)
        watchers.take(
            near, Answer(), WatchRequest(audience, None, EventId.parse(after)), threading.Event().set
        )

    def read(self, last: str) -> None:
        """Read until the watcher is at this entry."""
        while self.watcher.last_id != last:
            data = self._socket.recv(1 << 16)
            assert data
            self.watcher.take(data)


@pytest.fixture(autouse=True)
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "TICK_S", 0.05)


def test_without_a_defect_no_rule_is_broken(seen: Callable[[], set[str]]) -> None:
    assert seen() == set()


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_defect_is_caught(
    name: str, seen: Callable[[], set[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant, rule = PLANTED[name]
    plant(monkeypatch)
    assert rule in seen()
