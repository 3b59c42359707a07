"""Cached requests: replies under the very bytes that asked for them, so that they need no decoding and no encoding.

Peers ask the same again and again, and nothing in such a request differs but the opaque that ties the reply to it.
So a reply is cached under the frame that asked for it without its opaque; a hit costs a look into a dict. A heartbeat
(904, 322) whose lease was not renewed just now costs one item of a script as well. A frame that has no opaque in its
place, or was never seen, is decoded.
"""

from collections.abc import Callable
from math import inf
from struct import Struct
from typing import Final, NamedTuple, Protocol

from msgspec.structs import replace

from registry.bounded import Bounded
from registry.stamp import Source, Stamp
from rocketmq_remoting.command import encode_header
from rocketmq_remoting.errors import FrameError
from rocketmq_remoting.header_json import decode_json_command
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, Command, SerializeType
from worker.counters import Counters
from worker.reply import Reply
from worker.views import Key

__all__ = ["FRAME_MOST", "Answers", "CachedReply", "CachedRequests", "RepeatCheck", "Routes", "cut_head"]

FRAME_MOST: Final = 512
"""Bytes of a frame worth caching: a topic has at most 255."""
CHECKS_MOST: Final = 256
"""Heartbeats of one connection that may be asked of the store at once."""
COST: Final = 700
"""Bytes that one takes beside its own, measured."""

Heartbeat = tuple[int | str | bytes, ...]
"""Which heartbeat of which member: the request's code, and what the script is asked."""

_WORDS: Final = Struct(">iI")
_OPAQUE: Final = b'"opaque":'
_SHORTEST: Final = 25
_ZERO: Final = ord("0")
_words: Final = _WORDS.unpack_from


class CachedReply(Stamp):
    """A reply, cut where the opaque goes in; `tail` is what a JSON header has after it, -1 for a binary one.

    Once its stamp is invalid, a route (`key`) is looked up, and a heartbeat (`renewal`) checked with the store."""

    __slots__ = ("body", "heads", "heartbeat", "key", "renewal", "reply", "request", "rest", "tail")

    def __init__(
        self, request: bytes, reply: Reply, head: bytes, rest: bytes, tail: int, source: Source
    ) -> None:
        super().__init__(source, 0.0 if reply.renewal else inf)
        self.request = request
        self.reply = reply
        self.renewal = reply.renewal
        self.heads = {0: head}
        self.rest = rest
        self.body = reply.body
        self.tail = tail
        self.key: Key | None = None
        self.heartbeat: Heartbeat | None = None

    def head(self, digits: int) -> bytes:
        """Return what comes before an opaque of so many digits, 0 for a binary one; the lengths in it count them."""
        head = self.heads.get(digits)
        if head is None:
            whole, header = _WORDS.unpack_from(self.heads[0])
            head = self.heads[digits] = _WORDS.pack(whole + digits, header + digits) + self.heads[0][8:]
        return head

    def reply_to(self, opaque: bytes) -> tuple[bytes, ...]:
        """Return the whole reply to the request with this opaque, as it was written there."""
        return self.head(0 if self.tail < 0 else len(opaque)), opaque, self.rest, self.body


class RepeatCheck(NamedTuple):
    """A repeated request whose cached reply is sent if the store still replies the same."""

    cached: CachedReply
    opaque: bytes
    frame: bytes


Answers = tuple[list[bytes], int, list[RepeatCheck]]
"""Of the cached requests that some bytes begin with: blocks of the replies, the length of the requests, the checks."""


class Routes(Protocol):
    """What keeps the replies to lookups: `worker.cache.routes.RouteCache`."""

    @property
    def crowded(self) -> bool:
        """Return whether a reply may be near its eviction."""

    def use(self, key: Key) -> None:
        """Make a reply the last to be evicted."""

    def has(self, cached: CachedReply) -> bool:
        """Return whether it has the reply still, though its generation has moved."""

    def evicted(self, cached: CachedReply) -> None:
        """Forget an evicted request of one of its replies."""


class CachedRequests:
    """Of one worker, within `limit` bytes; `replies` are by the frame without its opaque."""

    def __init__(self, limit: int, routes: Routes, counters: Counters) -> None:
        self._routes = routes
        self._counters = counters
        self.replies: Bounded[bytes, CachedReply] = Bounded(limit, _cost, self._evicted)
        self._heartbeats: dict[Heartbeat, CachedReply] = {}
        self.longer: Callable[[bytes, int, int], RepeatCheck | None] = lambda data, at, end: None
        """What is cached of a frame longer than FRAME_MOST, from `at` to `end` of some bytes."""

    def __len__(self) -> int:
        return len(self.replies)

    @property
    def use(self) -> Callable[[CachedReply], None] | None:
        """Return what records a hit, or None while neither a request nor a route is near its eviction."""
        return self._use if self.replies.crowded or self._routes.crowded else None

    def _use(self, cached: CachedReply) -> None:
        self.replies.get(cached.request)
        if cached.key is not None:
            self._routes.use(cached.key)

    def answers(self, data: bytes, now: float, most: int) -> Answers:
        """Return the replies to the cached requests that `data` begins with.

        Stops at the first frame that is not cached or not whole, at `most` bytes of replies, and at many checks."""
        blocks: list[bytes] = []
        checks: list[RepeatCheck] = []
        entries, find = self.replies.entries, data.find
        cached_as, use = entries.get, self.use
        at = count = size = 0
        last = len(data) - _SHORTEST
        while at <= last and size < most and len(checks) < CHECKS_MOST:
            length, word = _words(data, at)
            end = at + 4 + length
            if end > len(data) or length < _SHORTEST - 4:
                break
            if length > FRAME_MOST:
                repeat = self.longer(data, at, end)
                if repeat is None:
                    break
                if repeat.cached.is_valid(now):
                    blocks += repeat.cached.reply_to(repeat.opaque)
                    size += len(repeat.cached.body)
                    count += 1
                else:
                    checks.append(repeat)
                at = end
                continue
            if word >> 24:
                digits, opaque = 0, data[at + 13 : at + 17]
                cached = cached_as(data[at : at + 13] + data[at + 17 : end])
                if cached is None:
                    break
            else:
                start = find(_OPAQUE, at + 8, end) + 9
                stop = find(b",", start, start + 10)
                digits, opaque = stop - start, data[start:stop]
                if start < 9 or digits < 1 or not opaque.isdigit() or (digits > 1 and opaque[0] == _ZERO):
                    break
                cached = cached_as(data[at + 8 : start] + data[stop:end])
                if cached is None or cached.tail != at + 8 + word - stop:
                    break
            if use is not None:
                use(cached)
            if (cached.generation == cached.source.generation and now < cached.until) or self.is_true(cached):
                blocks += (cached.head(digits), opaque, cached.rest, cached.body)
                size += len(cached.body)
                count += 1
            elif cached.renewal is not None:
                checks.append(RepeatCheck(cached, opaque, data[at:end]))
            else:
                break
            at = end
        self.answered(count)
        return blocks, at, checks

    def answered(self, count: int) -> None:
        """Count requests that were answered from here."""
        self._counters.cached_requests += count

    def keep(self, frame: bytes, command: Command, reply: Reply, source: Source) -> CachedReply | None:
        """Cache the reply to the frame that `command` was read from; return it, or None if it must not be cached."""
        if len(frame) > FRAME_MOST or command.flag & ONEWAY_FLAG or reply.remark is not None:
            return None
        head, rest = cut_head(command, reply)
        if command.serialize_type == SerializeType.ROCKETMQ:
            cached = CachedReply(frame[:13] + frame[17:], reply, head, rest, -1, source)
        else:
            (start, stop), end = _number_in(frame), 8 + _WORDS.unpack_from(frame)[1]
            if not _is_the_opaque(frame, start, stop, end, command):
                return None
            cached = CachedReply(frame[8:start] + frame[stop:], reply, head, rest, end - stop, source)
        if reply.renewal is not None:
            self._replace(cached, (command.code, *reply.renewal.item.args))
        return cached if self.replies.put(cached.request, cached) else None

    def drop(self, cached: CachedReply) -> None:
        """Remove a reply that is no longer kept, or no longer true."""
        if self.replies.entries.get(cached.request) is cached:
            self.replies.pop(cached.request)
        self._drop_heartbeat(cached)

    def is_true(self, cached: CachedReply) -> bool:
        """Return whether a reply is true though its stamp is no longer valid; one that is not is dropped or checked."""
        if cached.renewal is not None:
            return False
        if self._routes.has(cached):
            cached.generation = cached.source.generation
            return True
        self.drop(cached)
        return False

    def _replace(self, cached: CachedReply, heartbeat: Heartbeat) -> None:
        """Keep only a member's last heartbeat of a kind: 322 names a data version, which moves on."""
        before = self._heartbeats.get(heartbeat)
        if before is not None:
            self.drop(before)
        cached.heartbeat = heartbeat
        self._heartbeats[heartbeat] = cached

    def _drop_heartbeat(self, cached: CachedReply) -> None:
        if cached.heartbeat is not None and self._heartbeats.get(cached.heartbeat) is cached:
            del self._heartbeats[cached.heartbeat]

    def _evicted(self, _: bytes, cached: CachedReply) -> None:
        self._drop_heartbeat(cached)
        self._routes.evicted(cached)


def _cost(request: bytes, cached: CachedReply) -> int:
    """Without the body, which is the route cache's too, or short."""
    return COST + len(request) + len(cached.rest)


def cut_head(command: Command, reply: Reply) -> tuple[bytes, bytes]:
    """Return what a reply has before its opaque and after it, up to its body; no digits of it count in the lengths."""
    head = encode_header(command.reply(reply.code, ext=reply.ext), len(reply.body))
    if command.serialize_type == SerializeType.ROCKETMQ:
        return head[:13], head[17:]
    start, stop = _number_in(head)
    whole, header = _WORDS.unpack_from(head)
    digits = stop - start
    return _WORDS.pack(whole - digits, header - digits) + head[8:start], head[stop:]


def _number_in(frame: bytes) -> tuple[int, int]:
    """Return where the digits of the opaque are, as `answers` finds them, or an empty range."""
    start = frame.find(_OPAQUE, 8) + 9
    stop = frame.find(b",", start, start + 10)
    return (start, stop) if start >= 9 and frame[start:stop].isdigit() else (0, 0)


def _is_the_opaque(frame: bytes, start: int, stop: int, end: int, command: Command) -> bool:
    """Return whether another number there means another opaque and nothing else."""
    other = 1 if frame[start:stop] != b"1" else 2
    changed = b"%s%d%s" % (frame[8:start], other, frame[stop:end])
    try:
        return start > 0 and decode_json_command(changed, frame[end:]) == replace(command, opaque=other)
    except FrameError:
        return False
