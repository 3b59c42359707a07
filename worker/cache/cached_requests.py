"""Cached requests: replies under the very bytes that asked for them, so that they need no decoding and no encoding.

Peers ask the same again and again, and nothing in such a request differs but the opaque that ties the reply to it.
So a heartbeat (904, 322) is cached under its frame without the opaque; if its lease was not renewed just now, it costs
one item of a script as well. A lookup is cached under its topic and view, and found by the shape of its frame
(`worker.cache.request_shapes`), so that clients of all releases share one reply. A frame that has no opaque in its
place, or whose like was never seen, is decoded.
"""

from collections.abc import Callable
from math import inf
from struct import Struct
from typing import Any, Final, NamedTuple, Protocol

from access.classes import ALL, class_of
from registry.caching.bounded import Bounded
from registry.caching.stamp import Source, Stamp
from registry.registration.straight import Change
from rocketmq_remoting.command import encode_header
from rocketmq_remoting.remoting_command import ONEWAY_FLAG, Command, SerializeType
from worker.cache.request_shapes import OPAQUE, Cuts, RequestShapes, cuts_of, is_understood, shape_of
from worker.cache.views import Key
from worker.counters import Counters
from worker.reply import Reply

__all__ = ["FRAME_MOST", "Answers", "CachedReply", "CachedRequests", "RepeatCheck", "Routes"]

FRAME_MOST: Final = 512
"""Bytes of a frame worth caching: a topic has at most 255."""
CHECKS_MOST: Final = 256
"""Heartbeats of one connection that may be asked of the store at once."""
COST: Final = 700
"""Bytes that one takes beside its own, measured."""

Heartbeat = tuple[int | str | bytes, ...]
"""Which heartbeat of which member: the request's code, and what the script is asked."""

_WORDS: Final = Struct(">iI")
_SHORTEST: Final = 25
_words: Final = _WORDS.unpack_from


class CachedReply(Stamp):
    """A reply, cut where the opaque goes in; `tail` is what a JSON header has after it, -1 for a binary one.

    Once its stamp is invalid, a route (`key`) is looked up, and a heartbeat (`renewal`) checked with the store."""

    __slots__ = (
        *("body_bytes", "code", "heads", "heartbeat", "key", "needs", "parts", "renewal", "reply", "request"),
        *("tail", "uses"),
    )

    def __init__(
        self,
        request: bytes,
        command: Command,
        reply: Reply,
        tail: int,
        source: Source,
        counters: Counters,
        body_bytes: int = 0,
        *,
        proven: bool = False,
    ) -> None:
        super().__init__(source, 0.0 if reply.renewal else inf)
        head, rest = _cut_head(command, reply)
        self.request = request
        self.code = command.code
        self.needs = 0 if proven else int(class_of(command.code))
        """The class of such requests: only peers with the right get this reply; 0 where the bytes prove the caller."""
        self.reply = reply
        self.renewal = reply.renewal
        self.heads = {0: head}
        self.parts = head, rest, reply.body
        """What a binary reply has before its opaque, what comes after it, and the body."""
        self.tail = tail
        self.key: Key | None = None
        self.heartbeat: Heartbeat | None = None
        self.body_bytes = body_bytes
        """Of a registration: how long its body is."""
        self.uses = counters.uses(command.code, body_bytes)
        """Where requests that get this reply are counted."""

    def head(self, digits: int) -> bytes:
        """Return what comes before an opaque of so many digits, 0 for a binary one; the lengths in it count them."""
        head = self.heads.get(digits)
        if head is None:
            whole, header = _WORDS.unpack_from(self.heads[0])
            head = self.heads[digits] = _WORDS.pack(whole + digits, header + digits) + self.heads[0][8:]
        return head

    def reply_to(self, opaque: bytes) -> tuple[bytes, ...]:
        """Return the whole reply to the request with this opaque, as it was written there."""
        head, rest, body = self.parts
        return head if self.tail < 0 else self.head(len(opaque)), opaque, rest, body


class RepeatCheck(NamedTuple):
    """A repeated request whose cached reply is sent if the store still replies the same, or has written the change."""

    cached: CachedReply
    opaque: bytes
    frame: bytes
    change: Change | None = None


Answers = tuple[list[bytes], int, list[RepeatCheck]]
"""For the cached requests that some bytes begin with: blocks of the replies, the length of the requests, the checks."""


Longer = Callable[[bytes, int, int], tuple[CachedReply, bytes, Change | None] | None]
"""Finds the reply to a frame longer than FRAME_MOST, from `at` to `end` of some bytes, its opaque, and what is to be
written before."""


class Routes(Protocol):
    """What keeps the replies to lookups: `worker.cache.routes.RouteCache`."""

    @property
    def present(self) -> Bounded[Key, Any]:
        """The replies that it keeps."""

    def has(self, cached: CachedReply) -> bool:
        """Return whether it has the reply still, though its generation has moved."""

    def evicted(self, cached: CachedReply) -> None:
        """Forget an evicted request of one of its replies."""


class CachedRequests:
    """The cached requests of one worker, within `limit` bytes; `replies` are by frames without their opaques, those to
    lookups by what `shapes` have for the frame, and its topic."""

    def __init__(
        self, limit: int, routes: Routes, counters: Counters, longer: Longer = lambda *_: None
    ) -> None:
        self.routes = routes
        self.counters = counters
        self.replies: Bounded[bytes, CachedReply] = Bounded(limit, _cost, self._evicted)
        self.shapes = RequestShapes()
        self._heartbeats: dict[Heartbeat, CachedReply] = {}
        self._longer = longer

    def __len__(self) -> int:
        return len(self.replies)

    def record_use(self, cached: CachedReply, shape: bytes) -> None:
        """Make a reply, its route and the shape that it was found by the last to be evicted."""
        self.shapes.get(shape)
        self.replies.get(cached.request)
        if cached.key is not None:
            self.routes.present.get(cached.key)

    def answers(self, data: bytes, now: float, most: int, first: int = 0, rights: int = ALL) -> Answers:
        """Return the replies to the cached requests that `data` has from `first` on, from a peer with these rights.

        Stops at the first frame that is not cached, not whole or beyond the rights, behind a change, which takes
        longer, at `most` bytes of replies, and at many checks."""
        blocks: list[bytes] = []
        checks: list[RepeatCheck] = []
        at, size = first, 0
        last = len(data) - _SHORTEST
        while at <= last and size < most and len(checks) < CHECKS_MOST:
            length, word = _words(data, at)
            end = at + 4 + length
            if end > len(data) or length < _SHORTEST - 4:
                break
            if length > FRAME_MOST:
                found = self._longer(data, at, end)
                if found is None:
                    break
                longer, opaque, change = found
                if longer.needs & ~rights:
                    break
                if change is not None:
                    checks.append(RepeatCheck(longer, opaque, data[at:end], change))
                    at = end
                    break
                if longer.is_valid(now):
                    blocks += longer.reply_to(opaque)
                    size += len(longer.parts[2])
                    longer.uses[0] += 1
                    longer.uses[1] += longer.body_bytes
                else:
                    checks.append(RepeatCheck(longer, opaque, data[at:end]))
                at = end
                continue
            cuts = cuts_of(data, at, end, word)
            if cuts is None:
                break
            shape = shape_of(data, at, end, cuts)
            cached = self._of_shape(shape, data[cuts[2] : cuts[3]], end - at - 8 == word & 0xFFFFFF)
            if cached is None or cached.needs & ~rights:
                break
            start, stop = cuts[:2]
            digits, opaque = 0 if word >> 24 else stop - start, data[start:stop]
            if digits and at + 8 + word != (end if cached.key else stop + cached.tail):
                break
            if self.replies.crowded or self.shapes.crowded or self.routes.present.crowded:
                self.record_use(cached, shape)
            if (cached.generation == cached.source.generation and now < cached.until) or self.is_true(cached):
                _, rest, body = cached.parts
                blocks += (cached.head(digits), opaque, rest, body)
                size += len(body)
                cached.uses[0] += 1
            elif cached.renewal is not None:
                checks.append(RepeatCheck(cached, opaque, data[at:end]))
            else:
                break
            at = end
        return blocks, at - first, checks

    def _of_shape(self, shape: bytes, topic: bytes, is_all_header: bool) -> CachedReply | None:
        """Return the reply to a request of this shape, with that topic if one was cut out."""
        cached = None if topic else self.replies.entries.get(shape)
        if cached is None and is_all_header:
            request = self.shapes.request(shape, topic)
            cached = None if request is None else self.replies.entries.get(request)
        return cached

    def answered(self, cached: CachedReply) -> None:
        """Count a request that was answered with this reply."""
        cached.uses[0] += 1
        cached.uses[1] += cached.body_bytes

    def keep(
        self, frame: bytes, command: Command, reply: Reply, source: Source, *, proven: bool = False
    ) -> CachedReply | None:
        """Cache the reply to the frame that `command` was read from; return it, or None if it must not be cached.

        `proven`: its signature is that of a caller that may ask it, so each caller that sends these bytes may.
        A frame with a topic is none of these: it is looked for by its shape."""
        word, cuts = _cuts_to_keep(frame, command, reply)
        if cuts is None or cuts[2] or not is_understood(frame, cuts, command):
            return None
        tail = -1 if command.serialize_type else 8 + word - cuts[1]
        shape = shape_of(frame, 0, len(frame), cuts)
        cached = CachedReply(shape, command, reply, tail, source, self.counters, proven=proven)
        if reply.renewal is not None:
            self._replace(cached, (command.code, *reply.renewal.item.args))
        return cached if self.replies.put(cached.request, cached) else None

    def keep_lookup(
        self,
        key: Key,
        frame: bytes,
        command: Command,
        reply: Reply,
        source: Source,
        *,
        proven: bool = False,
    ) -> CachedReply | None:
        """Cache the reply kept under `key` for requests of this shape; return it if it was not cached and may be.

        `proven` is as in `keep`."""
        cuts = _cuts_to_keep(frame, command, reply)[1]
        request = None if cuts is None else self.shapes.learn(frame, cuts, command, key, proven=proven)
        if request is None or ((known := self.replies.get(request)) is not None and known.reply is reply):
            return None
        tail = -1 if command.serialize_type else 0
        cached = CachedReply(request, command, reply, tail, source, self.counters, proven=proven)
        cached.key = key
        return cached if self.replies.put(request, cached) else None

    def clear(self) -> None:
        """Have everything decoded again; routes stay."""
        for cached in self.replies.entries.values():
            self.routes.evicted(cached)
        self.replies.clear()
        self.shapes.clear()
        self._heartbeats.clear()

    def forget_shapes(self) -> None:
        """Have each shape learnt again: with other options a request may ask for another view."""
        self.shapes.clear()

    def drop(self, cached: CachedReply) -> None:
        """Remove a reply that is no longer kept, or no longer true."""
        if self.replies.entries.get(cached.request) is cached:
            self.replies.pop(cached.request)
        self._drop_heartbeat(cached)

    def is_true(self, cached: CachedReply) -> bool:
        """Return whether a reply is true though its stamp is no longer valid; one that is not is dropped or checked."""
        if cached.renewal is not None:
            return False
        if self.routes.has(cached):
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
        self.routes.evicted(cached)


def _cost(request: bytes, cached: CachedReply) -> int:
    """Without the body, which is the route cache's too, or short."""
    return COST + len(request) + len(cached.parts[1])


def _cuts_to_keep(frame: bytes, command: Command, reply: Reply) -> tuple[int, Cuts | None]:
    """Return the header word of a frame, and where it is cut if the reply to it may be cached."""
    word: int = _words(frame)[1]
    if len(frame) > FRAME_MOST or command.flag & ONEWAY_FLAG or reply.remark is not None:
        return word, None
    return word, cuts_of(frame, 0, len(frame), word)


def _cut_head(command: Command, reply: Reply) -> tuple[bytes, bytes]:
    """Return what a reply has before its opaque and after it, up to its body; no digits of it count in the lengths."""
    head = encode_header(command.reply(reply.code, ext=reply.ext), len(reply.body))
    if command.serialize_type == SerializeType.ROCKETMQ:
        return head[:13], head[17:]
    start = head.index(OPAQUE) + len(OPAQUE)
    stop = head.index(b",", start)
    whole, header = _WORDS.unpack_from(head)
    digits = stop - start
    return _WORDS.pack(whole - digits, header - digits) + head[8:start], head[stop:]
