"""What the compiled way finds in some bytes, and what Python's own finds."""

from collections.abc import Callable
from typing import Final

from registry.plans import ScriptItem
from registry.registration.renewals import Renewal
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.remoting_command import SerializeType
from tests.worker.cache.caches import requests_of
from worker.cache.cached_requests import Answers, CachedRequests
from worker.counters import Counters
from worker.reply import Reply

KINDS: Final = (SerializeType.JSON, SerializeType.ROCKETMQ)
TOPICS: Final = ("T", "U", "B", "E")
"""A route, one that is no longer true, a heartbeat that has to be checked, a reply with a field."""


def request(opaque: int, kind: SerializeType, topic: str) -> Command:
    return Command(105, opaque, 0, 399, 0, None, {"topic": topic}, b'"opaque":1,', kind)


def all_cached() -> tuple[CachedRequests, Counters]:
    """One reply for each topic and kind of header."""
    counters = Counters()
    frames = requests_of(lambda cached: cached.reply.body != b"untrue", counters)
    heartbeat = Reply(
        renewal=Renewal(ScriptItem("heartbeat", (), (), ("m",)), ["renewed", "120000", ""], 0.12)
    )
    replies = (Reply(body=b"route"), Reply(body=b"untrue"), heartbeat, Reply(ext={"a": "b"}))
    for kind in KINDS:
        for topic, reply in zip(TOPICS, replies, strict=True):
            command = request(7, kind, topic)
            source = type("Source", (), {"generation": 0})()
            assert frames.keep(encode(command), command, reply, source)
            source.generation = int(topic == "U")
    return frames, counters


def found(
    answers: Callable[[CachedRequests, bytes, float, int], Answers], data: bytes, most: int
) -> tuple[object, ...]:
    """Return what it answers, how many bytes those requests are, what has to be checked, and what is cached then."""
    frames, counters = all_cached()
    pieces, length, due = answers(frames, data, 0.0, most)
    checks = [(one.cached.request, one.opaque, one.frame) for one in due]
    return b"".join(pieces), length, checks, counters.cached_requests, sorted(frames.replies.entries)
