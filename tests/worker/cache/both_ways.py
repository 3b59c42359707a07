"""What the compiled way finds in some bytes, and what Python's own finds."""

from typing import Final, Protocol

from registry.options.catalogue import Options
from registry.plans import ScriptItem
from registry.registration.renewals import Renewal
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.remoting_command import SerializeType
from tests.worker.cache.caches import requests_of
from worker.cache.cached_requests import Answers, CachedRequests
from worker.cache.views import asked_view
from worker.counters import Counters
from worker.reply import Reply

KINDS: Final = (SerializeType.JSON, SerializeType.ROCKETMQ)
TOPICS: Final = ("T", "U", "B", "E")
"""A reply, one that is no longer true, a heartbeat that has to be checked, a reply with a field."""
LOOKUPS: Final[dict[str, dict[str, str]]] = {"T": {}, "S": {"acceptStandardJsonOnly": "true"}}
"""Topics with a cached route, each asked for with these fields, too."""


class Answering(Protocol):
    """Either way."""

    def __call__(
        self, requests: CachedRequests, data: bytes, now: float, most: int, first: int = 0, /
    ) -> Answers: ...


def request(opaque: int, kind: SerializeType, topic: str) -> Command:
    return Command(105, opaque, 0, 399, 0, None, {"topic": topic}, b'"opaque":1,', kind)


def lookup(opaque: int, kind: SerializeType, topic: str, fields: dict[str, str]) -> Command:
    """Return a request that is found by its shape."""
    return Command(105, opaque, 0, 399, 0, None, {"topic": topic, **fields}, b"", kind)


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
        for topic, fields in LOOKUPS.items():
            command = lookup(7, kind, topic, fields)
            key = topic, asked_view(command, Options())
            assert frames.keep_lookup(key, encode(command), command, Reply(body=topic.encode()), source)
    return frames, counters


class BothWays:
    """What each way has cached; as at first for each search, however many there were."""

    def __init__(self) -> None:
        self._cached: dict[Answering, tuple[CachedRequests, Counters]] = {}

    def found(self, answers: Answering, data: bytes, most: int, first: int = 0) -> tuple[object, ...]:
        """Return what it answers, how many bytes those requests are, what is to be checked, and what is
        cached then. `first` is how many bytes come before what is searched."""
        frames, counters = self._cached.pop(answers) if answers in self._cached else all_cached()
        before, counted = len(frames.replies), counters.cached_requests
        pieces, length, due = answers(frames, b"\1" * first + data, 0.0, most, first)
        checks = [(one.cached.request, one.opaque, one.frame) for one in due]
        count = counters.cached_requests - counted
        result = b"".join(pieces), length, checks, count, sorted(frames.replies.entries)
        if len(frames.replies) == before:
            self._cached[answers] = frames, counters
        return result
