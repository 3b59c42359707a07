"""What a connection may expect of what carries its bytes, whichever of the two it is."""

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager
from functools import partial, wraps
from time import perf_counter
from types import SimpleNamespace
from typing import cast

import pytest
import uvloop

from access.classes import ALL
from registry.options.catalogue import Options
from registry.plans import ScriptItem
from registry.registration.renewals import Renewal
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.remoting_command import SerializeType
from testbed.transports import TRANSPORTS, compiled
from tests.worker.cache.caches import requests_of
from worker.cache.cached_registrations import FRAME_LONGEST
from worker.cache.cached_requests import CHECKS_MOST, CachedReply, CachedRequests, RepeatCheck
from worker.counters import Counters
from worker.reply import Reply
from worker.transport.connection import Connection
from worker.transport.intake import Intake, IntakeConnection
from worker.transport.transports import EpollTransports, transports

HIGH = 100_000
BIG = bytes(range(256)) * 40_000


class Protocol(asyncio.Protocol):
    """Records the calls of the transport."""

    def __init__(self) -> None:
        self.direct = True
        self.rights = int(ALL)
        self.active_at = 0.0
        self.calls: list[str] = []
        self.received = b""
        self.due: list[RepeatCheck] = []
        self.wanted: list[tuple[int, int]] = []
        self.waits = False
        self.stays = False
        self.error: Exception | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.transport.set_write_buffer_limits(high=HIGH)
        self.calls.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data

    def check_repeats(self, due: list[RepeatCheck]) -> None:
        self.due += due

    def incomplete(self, length: int, received: int) -> None:
        self.wanted.append((length, received))
        if length and self.waits:
            self.transport.pause_reading()

    def eof_received(self) -> bool:
        self.calls.append("eof")
        return self.stays

    def pause_writing(self) -> None:
        self.calls.append("pause")

    def resume_writing(self) -> None:
        self.calls.append("resume")

    def connection_lost(self, exc: Exception | None) -> None:
        self.calls.append("lost")
        self.error = exc


class Ends:
    """Both ends of one connection: the protocol's, and a peer's that reads and writes when the test says so."""

    def __init__(self, epoll: bool) -> None:
        self.cached: CachedRequests | None = None
        self.counters = Counters()
        self.failed: list[Connection] = []
        options = Options(epoll_transport=epoll)
        self.loop = asyncio.get_running_loop()
        self._transports = transports(options, self.loop, lambda: self.cached, self.failed.append)
        assert isinstance(self._transports, EpollTransports) == epoll
        self.opened: list[Protocol] = []
        self.peers: list[socket.socket] = []
        self.peer = self.open()
        self.protocol = self.opened[0]

    def open(self) -> socket.socket:
        own, peer = socket.socketpair()
        for one in (own, peer):
            one.setblocking(False)
        self.opened.append(Protocol())
        self.peers.append(peer)
        self._transports.open(own, cast(Connection, self.opened[-1]))
        return peer

    async def until(self, holds: Callable[[], bool]) -> None:
        async with asyncio.timeout(20):
            while not holds():
                await asyncio.sleep(0.001)

    async def read(self, size: int) -> bytes:
        parts, left = [], size
        async with asyncio.timeout(20):
            while left and (data := await self.loop.sock_recv(self.peer, left)):
                parts.append(data)
                left -= len(data)
        return b"".join(parts)

    async def idle(self) -> None:
        """What can happen has happened."""
        for _ in range(5):
            await asyncio.sleep(0.002)

    def close(self) -> None:
        for peer in self.peers:
            peer.close()
        self._transports.close()


Test = Callable[[Ends], Coroutine[None, None, None]]


def over_either(test: Test) -> Callable[[bool], None]:
    @pytest.mark.parametrize("epoll", TRANSPORTS)
    @wraps(test)
    def run(epoll: bool) -> None:
        async def main() -> None:
            async with _opened(epoll) as ends:
                await test(ends)

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(main())

    del run.__wrapped__  # pytest would look for its arguments
    return run


@asynccontextmanager
async def _opened(epoll: bool) -> AsyncIterator[Ends]:
    ends = Ends(epoll)
    try:
        await ends.until(lambda: ends.protocol.calls == ["made"])
        yield ends
    finally:
        ends.close()
        await ends.idle()


@over_either
async def test_bytes_come_and_go(ends: Ends) -> None:
    await ends.loop.sock_sendall(ends.peer, b"question")
    await ends.until(lambda: ends.protocol.received == b"question")
    ends.protocol.transport.write(b"ans")
    ends.protocol.transport.write(b"wer")
    assert await ends.read(6) == b"answer"


@over_either
async def test_what_the_peer_does_not_take_waits_in_order(ends: Ends) -> None:
    transport = ends.protocol.transport
    for at in range(0, len(BIG), 1 << 20):
        transport.write(BIG[at : at + (1 << 20)])
    await ends.idle()
    assert transport.get_write_buffer_size() > HIGH
    assert ends.protocol.calls == ["made", "pause"]
    begin = ends.peer.recv(1 << 20)  # so that there is room, which those before have a right to
    transport.write(b"the last")
    assert begin + await ends.read(len(BIG) - len(begin)) == BIG
    assert await ends.read(8) == b"the last"
    await ends.until(lambda: ends.protocol.calls == ["made", "pause", "resume"])
    assert transport.get_write_buffer_size() == 0


@over_either
async def test_a_close_lets_everything_out_first(ends: Ends) -> None:
    ends.protocol.transport.write(BIG)
    ends.protocol.transport.close()
    assert await ends.read(len(BIG) + 1) == BIG
    await ends.until(lambda: "lost" in ends.protocol.calls)
    assert ends.protocol.error is None


@over_either
async def test_an_abort_lets_nothing_out(ends: Ends) -> None:
    ends.protocol.transport.write(BIG)
    ends.protocol.transport.abort()
    await ends.until(lambda: "lost" in ends.protocol.calls)
    assert ends.protocol.calls.count("lost") == 1
    assert len(await ends.read(len(BIG))) < len(BIG)


@over_either
async def test_nothing_is_written_after_the_end(ends: Ends) -> None:
    transport = ends.protocol.transport
    transport.close()
    transport.write(b"more")
    transport.close()
    transport.abort()
    assert await ends.read(10) == b""
    await ends.idle()
    assert ends.protocol.calls == ["made", "lost"]


@over_either
async def test_a_peer_that_reads_no_more_may_still_be_written_to(ends: Ends) -> None:
    ends.protocol.stays = True
    await ends.loop.sock_sendall(ends.peer, b"last words")
    ends.peer.shutdown(socket.SHUT_WR)
    await ends.until(lambda: ends.protocol.calls == ["made", "eof"])
    assert ends.protocol.received == b"last words"
    await ends.idle()
    assert ends.protocol.calls == ["made", "eof"]
    ends.protocol.transport.write(b"answer")
    assert await ends.read(6) == b"answer"
    ends.protocol.transport.close()
    assert await ends.read(1) == b""


@over_either
async def test_the_end_of_the_peers_words_is_the_end(ends: Ends) -> None:
    ends.peer.shutdown(socket.SHUT_WR)
    await ends.until(lambda: ends.protocol.calls == ["made", "eof", "lost"])
    assert await ends.read(1) == b""


@over_either
async def test_nothing_is_read_while_reading_pauses(ends: Ends) -> None:
    transport = ends.protocol.transport
    transport.pause_reading()
    await ends.loop.sock_sendall(ends.peer, b"question")
    await ends.idle()
    assert ends.protocol.received == b""
    transport.write(b"unasked")  # which is not held up
    assert await ends.read(7) == b"unasked"
    transport.resume_reading()
    await ends.until(lambda: ends.protocol.received == b"question")


@over_either
async def test_a_peer_that_is_gone_is_seen_at_the_next_write(ends: Ends) -> None:
    ends.protocol.transport.pause_reading()
    ends.peer.close()
    await ends.idle()
    ends.protocol.transport.write(b"still there?")
    ends.protocol.transport.write(b"still there?")
    await ends.until(lambda: "lost" in ends.protocol.calls)
    assert isinstance(ends.protocol.error, OSError)


@over_either
async def test_many_connections_are_served_in_turn(ends: Ends) -> None:
    peers = [ends.open() for _ in range(100)]
    await ends.until(lambda: all(protocol.calls for protocol in ends.opened))
    for peer in peers:
        await ends.loop.sock_sendall(peer, b"one")
    for protocol in ends.opened[1::2]:
        protocol.transport.abort()  # some of those that are ready are gone before their turn
    await ends.until(lambda: all(protocol.received == b"one" for protocol in ends.opened[2::2]))
    await ends.until(lambda: all("lost" in protocol.calls for protocol in ends.opened[1::2]))
    assert not any(protocol.received for protocol in ends.opened[1::2])


def request(opaque: int, topic: str = "T") -> bytes:
    return encode(Command(904, opaque, 0, 399, 0, None, {"brokerName": topic}, b"", SerializeType.ROCKETMQ))


class Source:
    """Of answers that stay true."""

    generation = 0


def cache(ends: Ends, answer: Reply) -> CachedReply:
    """Cache the request for T."""
    command = Command(904, 1, 0, 399, 0, None, {"brokerName": "T"}, b"", SerializeType.ROCKETMQ)
    ends.cached = requests_of(counters=ends.counters)
    cached = ends.cached.keep(request(1), command, answer, Source())
    assert cached is not None
    return cached


def answers(cached: CachedReply, opaques: Iterable[int]) -> bytes:
    return b"".join(b"".join(cached.reply_to(struct.pack(">i", opaque))) for opaque in opaques)


def over_epoll(test: Test) -> Callable[[], None]:
    """With uvloop's transports it is the connection that looks for cached requests."""

    @compiled
    def run() -> None:
        over_either(test)(True)

    return run


@over_epoll
async def test_cached_requests_are_answered_and_the_rest_handed_over(ends: Ends) -> None:
    cached = cache(ends, Reply(body=b"route"))
    stranger = request(3, "U") + request(4)
    await ends.loop.sock_sendall(ends.peer, request(1) + request(2) + stranger)
    expected = answers(cached, (1, 2))
    assert await ends.read(len(expected)) == expected
    await ends.until(lambda: ends.protocol.received == stranger)
    assert ends.counters.cached_requests == 2
    assert ends.protocol.active_at > 0


@over_epoll
async def test_no_cache_is_used_while_something_is_in_the_way(ends: Ends) -> None:
    cache(ends, Reply(body=b"route"))
    ends.protocol.direct = False
    await ends.loop.sock_sendall(ends.peer, request(1))
    await ends.until(lambda: ends.protocol.received == request(1))
    ends.protocol.direct = True
    ends.protocol.transport.write(BIG)  # more than the peer takes
    await ends.idle()
    await ends.loop.sock_sendall(ends.peer, request(2))
    await ends.until(lambda: ends.protocol.received == request(1) + request(2))
    assert ends.counters.cached_requests == 0


@over_epoll
async def test_big_answers_come_whole_and_in_order(ends: Ends) -> None:
    """More of them than the system takes at once, and than one turn may answer."""
    cached = cache(ends, Reply(body=BIG[:70_000]))
    asked = [request(opaque) for opaque in range(200)]
    await ends.loop.sock_sendall(ends.peer, b"".join(asked))
    await ends.until(lambda: len(ends.protocol.received) > 0 or ends.counters.cached_requests == 200)
    count = ends.counters.cached_requests
    assert 2 <= count < 200
    assert ends.protocol.received == b"".join(asked[count:])
    expected = answers(cached, range(count))
    assert await ends.read(len(expected)) == expected


@over_epoll
async def test_small_answers_of_one_read_fill_no_more_than_there_is_room_for(ends: Ends) -> None:
    cached = cache(ends, Reply(body=bytes(4000)))
    ends.protocol.transport.set_write_buffer_limits(high=1 << 30)
    asked = [request(opaque) for opaque in range(400)]
    await ends.loop.sock_sendall(ends.peer, b"".join(asked))
    await ends.until(lambda: ends.counters.cached_requests > 0)
    await ends.idle()
    count = ends.counters.cached_requests
    assert 100 < count < 400
    assert ends.protocol.received == b"".join(asked[count:])
    expected = answers(cached, range(count))
    assert await ends.read(len(expected)) == expected


@over_epoll
async def test_what_the_store_must_be_asked_for_is_handed_over_as_such(ends: Ends) -> None:
    again = Renewal(ScriptItem("heartbeat", (), (), ()), ["renewed", "120000"], 120_000)
    cached = cache(ends, Reply(renewal=again))
    await ends.loop.sock_sendall(ends.peer, b"".join(request(opaque) for opaque in range(CHECKS_MOST + 3)))
    await ends.until(lambda: len(ends.protocol.due) == CHECKS_MOST)
    assert [one.opaque for one in ends.protocol.due] == [struct.pack(">i", n) for n in range(CHECKS_MOST)]
    assert all(one.cached is cached for one in ends.protocol.due)
    assert ends.protocol.due[7].frame == request(7)
    await ends.until(lambda: ends.protocol.received == b"".join(request(CHECKS_MOST + n) for n in range(3)))


def frame(length: int, header: int = 20) -> bytes:
    """A frame of so many bytes in all, its header of the JSON kind."""
    return struct.pack(">iI", length - 4, header) + bytes(i % 251 for i in range(length - 8))


@over_epoll
async def test_answers_of_a_read_that_fails_go_to_no_other(ends: Ends) -> None:
    cached, errors = cache(ends, Reply(body=b"route")), list[object]()
    assert ends.cached is not None
    command = Command(904, 1, 0, 399, 0, None, {"brokerName": "other"}, b"", SerializeType.ROCKETMQ)
    broken = ends.cached.keep(request(1, "other"), command, Reply(body=b"other"), Source())
    assert broken is not None
    del broken.source
    ends.protocol.direct = True
    ends.loop.set_exception_handler(lambda _, context: errors.append(context["exception"]))
    await ends.loop.sock_sendall(ends.peer, request(1) + request(1, "other"))
    await ends.until(lambda: "lost" in ends.protocol.calls)
    assert [type(error) for error in errors] == [AttributeError]
    ends.peer = ends.open()
    ends.opened[-1].direct = True
    await ends.loop.sock_sendall(ends.peer, request(2))
    expected = answers(cached, (2,))
    assert await ends.read(len(expected)) == expected


@over_epoll
async def test_a_long_frame_that_may_be_compared_is_handed_over_whole(ends: Ends) -> None:
    handed: list[bytes] = []
    ends.protocol.data_received = handed.append  # type: ignore[assignment, method-assign]
    long, short = frame(FRAME_LONGEST - 4), frame(100)
    await ends.loop.sock_sendall(ends.peer, long + short)
    await ends.until(lambda: handed == [long, short])


@over_epoll
async def test_of_a_longer_frame_the_head_goes_ahead_so_that_the_body_is_not_copied(ends: Ends) -> None:
    handed: list[bytes] = []
    ends.protocol.data_received = handed.append  # type: ignore[assignment, method-assign]
    long, short = frame(3_000_000), frame(100)
    head = 8 + (int.from_bytes(long[4:8]) & 0xFFFFFF)
    await ends.loop.sock_sendall(ends.peer, long + short)
    await ends.until(lambda: handed == [long[:head], long[head:], short])


@over_epoll
async def test_a_head_that_no_read_takes_whole_stays_with_its_body(ends: Ends) -> None:
    handed: list[bytes] = []
    ends.protocol.data_received = handed.append  # type: ignore[assignment, method-assign]
    long = struct.pack(">iI", 3_000_000, 500_000) + bytes(2_999_996)
    await ends.loop.sock_sendall(ends.peer, long)
    await ends.until(lambda: handed == [long])


@over_epoll
async def test_the_first_read_of_a_frame_may_end_about_where_its_head_does(ends: Ends) -> None:
    head = 60_000
    long = struct.pack(">iI", 3_000_000, head - 8) + bytes(2_999_996)
    for end in (head - 1, head, head + 1):
        ends.protocol.wanted.clear()
        ends.protocol.received = b""
        await ends.loop.sock_sendall(ends.peer, long[:end])
        await ends.until(lambda: bool(ends.protocol.wanted))
        await ends.loop.sock_sendall(ends.peer, long[end:])
        await ends.until(lambda: ends.protocol.received == long)


@over_epoll
async def test_a_long_frame_is_read_on_when_there_is_room(ends: Ends) -> None:
    ends.protocol.waits = True
    long = frame(3_000_000)
    sent = ends.loop.create_task(ends.loop.sock_sendall(ends.peer, long))
    await ends.until(lambda: [length for length, _ in ends.protocol.wanted] == [len(long)])
    await ends.idle()
    assert not sent.done()  # the system takes no more
    ends.protocol.waits = False
    ends.protocol.transport.resume_reading()
    await ends.until(lambda: ends.protocol.received == long)
    assert {length for length, _ in ends.protocol.wanted} == {len(long)}  # it counts until it is handed over
    assert [n for _, n in ends.protocol.wanted] == sorted({n for _, n in ends.protocol.wanted} - {0})
    await sent


@over_epoll
async def test_a_long_frame_is_gathered_only_where_a_frame_begins(ends: Ends) -> None:
    ends.protocol.direct = False
    await ends.loop.sock_sendall(ends.peer, frame(3_000_000)[:70_000])
    await ends.until(lambda: len(ends.protocol.received) == 70_000)


@over_epoll
async def test_a_peer_that_stops_in_a_long_frame_is_disconnected(ends: Ends) -> None:
    await ends.loop.sock_sendall(ends.peer, frame(3_000_000)[:-1])
    await ends.idle()
    assert ends.protocol.active_at > 0
    ends.peer.shutdown(socket.SHUT_WR)
    await ends.until(lambda: ends.protocol.calls == ["made", "eof", "lost"])
    assert len(ends.protocol.received) < 100  # its head


@compiled
@pytest.mark.parametrize(
    "start",
    [
        struct.pack(">iI", (16 << 20) - 3, 20),
        struct.pack(">iI", -1, 20),
        struct.pack(">iI", 1_000_000, 0),
        struct.pack(">iI", 1_000_000, 1_000_000),
        struct.pack(">iI", 10_000_000, (1 << 20) + 1),
        struct.pack(">iI", 1_000_000, 0x02000014),
    ],
    ids=["too long", "negative", "no header", "header beyond the end", "long header", "kind"],
)
def test_a_long_frame_that_is_none_is_handed_over_at_once(start: bytes) -> None:
    @over_epoll
    async def test(ends: Ends) -> None:
        await ends.loop.sock_sendall(ends.peer, start)
        await ends.until(lambda: ends.protocol.received == start)

    test()


@over_epoll
async def test_a_slow_time_slice_leaves_out_those_that_it_ended(ends: Ends) -> None:
    """One connection at a time takes longer than a turn may, and ends others that were found ready with it."""
    peers = [ends.open() for _ in range(15)]
    await ends.until(lambda: all(one.calls for one in ends.opened))
    handed: list[Protocol] = []

    def slowly(protocol: Protocol, data: bytes) -> None:
        until = perf_counter() + 0.003
        while perf_counter() < until:
            pass
        handed.append(protocol)
        if len(handed) == 1:
            for other in [one for one in ends.opened if one is not protocol][:7]:
                other.transport.abort()
                del other.transport

    for one in ends.opened:
        one.data_received = partial(slowly, one)  # type: ignore[method-assign]
    for peer in [ends.peer, *peers]:
        peer.send(b"one")
    await ends.until(lambda: len(handed) == 9)
    await ends.idle()
    assert len(handed) == 9
    assert sum("lost" in one.calls for one in ends.opened) == 7


@over_either
async def test_a_worker_knows_of_bytes_that_it_has_not_read(ends: Ends) -> None:
    connection = SimpleNamespace(closed=False)
    intake = Intake(cast(IntakeConnection, connection), ends.protocol.transport)
    assert intake.unread == 0
    ends.protocol.transport.pause_reading()
    await ends.idle()
    ends.peer.send(b"x" * 256)
    assert intake.unread == 256
    ends.protocol.transport.resume_reading()
    await ends.until(lambda: len(ends.protocol.received) == 256)
    assert intake.unread == 0
    ends.protocol.transport.abort()
    connection.closed = True
    await ends.until(lambda: "lost" in ends.protocol.calls)
    assert intake.unread == 0
