"""One connection without a socket: what it hands over, writes, delays and refuses."""

import asyncio
import gc
import itertools
import ssl
from collections.abc import Callable, Iterable
from socket import socketpair
from unittest.mock import Mock

import pytest

from access.classes import ALL
from access.failures import Failures
from registry.options.catalogue import Options
from rocketmq_remoting.command import Command, decode, encode
from tests.worker.cache.caches import requests_of
from tests.worker.transport.client import ONEWAY, RESPONSE, insecure, request
from tests.worker.transport.echo_worker import ECHO, NoCache
from worker.cache.cached_registrations import WAITING_MOST
from worker.cache.cached_requests import CachedReply, CachedRequests, RepeatCheck
from worker.cache.views import asked_view
from worker.peer import Peer
from worker.reply import Reply
from worker.transport.connection import Connection
from worker.transport.ends import End
from worker.transport.frame_memory import FrameLimits, FrameMemory
from worker.transport.handshakes import Handshakes
from worker.transport.owner import Limits, Service
from worker.transport.reply_memory import ReplyMemory
from worker.transport.reply_writer import (
    AT_ONCE,
    PIECE,
    UNANSWERED_BYTES_MOST,
    UNANSWERED_MOST,
    ReplyWriter,
)
from worker.transport.request_reader import FIRST_COMMANDS, SLICE_COMMANDS, UNREAD_MOST, RequestReader
from worker.transport.time_slices import SLICE_S, TimeSlices
from worker.transport.tls import ServerTls
from worker.transport.tls_session import TlsSession
from worker.transport.trusted_proxies import Introduced

PROXY = b"PROXY TCP4 1.2.3.4 5.6.7.8 1111 9876\r\n"


@pytest.fixture(autouse=True)
def no_slice_takes_long(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is."""
    monkeypatch.setattr("worker.transport.request_reader.perf_counter", lambda: 0.0)


QUIET = socketpair()
"""Over which nothing ever comes."""


class Socket(asyncio.Transport):
    """Keeps what is written; `unread` is what the peer's system has not taken."""

    def __init__(self) -> None:
        super().__init__()
        self.writes: list[bytes] = []
        self.unread = 0
        self.reading = True
        self.closed = self.aborted = False
        self.written: Callable[[], None] = lambda: None

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self.writes.append(bytes(data))
        self.written()

    def get_extra_info(self, name: str, default: object = None) -> object:
        return QUIET[0] if name == "socket" else default

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return self.unread

    def pause_reading(self) -> None:
        assert self.reading
        self.reading = False

    def resume_reading(self) -> None:
        assert not self.reading
        self.reading = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.aborted = True


LIMITS = FrameLimits(known=1_000_000, unknown=750_000, host=700_000, admitted=700_000)


class Surroundings(NoCache):
    """Owner, service and clock of one connection."""

    def __init__(self, answer: Callable[[Command, Peer], None] | None = None, **options: str | bool) -> None:
        given = Options(**{"tls_config_file": "/none", **options})  # type: ignore[arg-type]
        self.limits = Limits(idle_s=120, connections=0, unread_bytes=1 << 20)
        self.service: Service = self
        self.tls = ServerTls(given)
        self.proxy_protocol = given.proxy_protocol
        self.time: Callable[[], float] = lambda: self.now
        self.call_soon: Callable[[Callable[[], None]], object] = lambda call: self.calls.append(call)
        self.calls: list[Callable[[], None]] = []
        self.time_slices = TimeSlices(self.call_soon)
        self.now: float = 0.0
        self.handshakes = Handshakes(1)
        self.reply_memory = ReplyMemory(self.limits.long_replies_bytes)
        self.failures = Failures()
        self.frame_memory = FrameMemory(lambda: self.now, LIMITS)
        self.handled: list[Command] = []
        self.ends = 0
        self.asked = self.bytes_read = 0
        self.ended_by: list[End] = []
        self.unreadable_by: list[str] = []
        self._answer = answer or echo
        self.socket = Socket()
        self.connection = Connection("1", "127.0.0.1:4711", self)
        self.connection.connection_made(self.socket)

    def handle(self, command: Command, peer: Peer) -> None:
        self.handled.append(command)
        self._answer(command, peer)

    def connected(self, peer: Peer) -> None:
        pass

    def opened(self, connection: Connection) -> None:
        pass

    def ended(self, end: End) -> None:
        self.ended_by.append(end)

    def unreadable(self, reason: str) -> None:
        self.unreadable_by.append(reason)

    def introduced(self, connection: Introduced, source: str | None) -> None:
        connection.address = source or connection.address

    def when_rights_change(self, changed: Callable[[], None]) -> None:
        """As the real one; they never do."""

    def identified(self, peer: Peer) -> None:
        """As the service, of peers that may ask everything."""
        peer.rights = int(ALL)

    def disconnected(self, _peer: Peer, *, shutting_down: bool = False) -> None:
        """As the table of connections; the service's goes by the same name and is not called."""
        self.handshakes.end(self.connection)
        self.ends += 1

    def receive(self, data: bytes, cut: int = 0) -> None:
        for at in range(0, len(data), cut or len(data)):
            self.connection.data_received(data[at : at + (cut or len(data))])

    def iterate(self) -> None:
        """Let the loop run what is due, once."""
        calls, self.calls = self.calls, []
        for call in calls:
            call()

    @property
    def bodies(self) -> list[bytes]:
        """Of the answers written."""
        bodies, data = [], b"".join(self.socket.writes)
        while data:
            length = 4 + int.from_bytes(data[:4], "big")
            bodies.append(decode(data[4:length]).body)
            data = data[length:]
        return bodies


def echo(command: Command, peer: Peer) -> None:
    if not command.is_oneway:
        peer.send(encode(command.reply(0, body=command.body)))


def silence(_command: Command, _peer: Peer) -> None:
    pass


FRAMES = request(1, b"a") + request(1, b"b") + request(1, b"c")


@pytest.mark.parametrize("cut", [0, 1, 3, 50])
@pytest.mark.parametrize(
    "before", [pytest.param(b"", id="bare"), pytest.param(PROXY, id="behind a PROXY header")]
)
def test_frames_are_answered_however_they_are_cut(before: bytes, cut: int) -> None:
    around = Surroundings()
    around.receive(before + FRAMES, cut)
    assert around.bodies == [b"a", b"b", b"c"]


def test_answers_to_one_read_leave_in_one_write() -> None:
    around = Surroundings()
    around.receive(FRAMES)
    assert len(around.socket.writes) == 1
    assert not around.calls


def test_answers_of_one_iteration_of_the_loop_leave_in_one_write() -> None:
    around = Surroundings(silence)
    around.receive(FRAMES)
    for command in around.handled:
        around.connection.send((b"head ", b"body "))
        assert not around.socket.writes, command
    around.iterate()
    assert around.socket.writes == [b"head body " * 3]


def test_a_time_slice_ends_when_its_time_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever a peer asks for, the others wait for one slow answer of it at most."""
    now = 0.0
    monkeypatch.setattr("worker.transport.request_reader.perf_counter", lambda: now)

    def slowly(command: Command, peer: Peer) -> None:
        nonlocal now
        now += SLICE_S
        echo(command, peer)

    around = Surroundings(slowly)
    around.receive(FRAMES)
    assert (len(around.handled), around.socket.reading) == (1, False)
    around.iterate()
    around.iterate()
    assert (len(around.handled), around.bodies) == (3, [command.body for command in around.handled])
    around.iterate()
    assert around.socket.reading


def test_of_many_connections_with_slow_requests_one_has_a_time_slice_in_an_iteration(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A peer that sends one request does not wait until all the others had a slice."""
    now = 0.0
    for module in ("request_reader", "time_slices"):
        monkeypatch.setattr(f"worker.transport.{module}.perf_counter", lambda: now)
    asked: list[str] = []

    def slowly(_command: Command, peer: Peer) -> None:
        nonlocal now
        now += SLICE_S
        asked.append(peer.id)

    around = Surroundings(slowly)
    around.receive(FRAMES)
    other = Connection("2", "127.0.0.1:4712", around)
    other.connection_made(Socket())
    other.data_received(FRAMES)
    while len(asked) < 6:
        before = len(asked)
        around.iterate()
        assert len(asked) == before + 1
    assert asked == ["1", "2"] * 3


def test_responses_are_not_handed_over_and_oneways_not_waited_for() -> None:
    around = Surroundings(silence)
    around.receive(request(1, flag=RESPONSE) + request(2, flag=ONEWAY) + request(3, flag=RESPONSE | ONEWAY))
    assert [command.code for command in around.handled] == [2]
    assert not around.connection.busy


@pytest.mark.parametrize(
    "bad",
    [
        pytest.param(b"\xff\xff\xff\xff", id="length -1"),
        pytest.param(b"\0\0\0\0", id="length 0"),
        pytest.param(b"\0\0\0\3", id="length 3"),
        pytest.param((16777213).to_bytes(4, "big"), id="length beyond 16 MiB"),
        pytest.param(b"\0\0\0\x08\0\0\0\x09", id="header longer than the frame"),
        pytest.param(b"\0\0\0\x08\2\0\0\4abcd", id="serialize type 2"),
        pytest.param(b"\0\x20\0\0\0\x10\0\1", id="header over 1 MiB"),
        pytest.param(b'\0\0\0\x0e\0\0\0\x0a{"code":105', id="half a JSON header"),
        pytest.param(b"GET / HTTP/1.1\r\n\r\n", id="HTTP"),
        pytest.param(b"PROXY nonsense\r\n", id="PROXY without sense"),
    ],
)
def test_what_is_no_frame_closes_without_a_byte(bad: bytes) -> None:
    around = Surroundings()
    around.receive(bad)
    assert (around.socket.closed, around.socket.writes, around.handled) == (True, [], [])


def test_frames_before_a_bad_one_are_answered() -> None:
    around = Surroundings()
    around.receive(request(1, b"good") + b"GET /")
    assert (around.socket.closed, around.bodies) == (True, [b"good"])


def test_a_fault_of_this_server_ends_the_connection_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def fail(_command: Command, _peer: Peer) -> None:
        raise RuntimeError("oh")

    around = Surroundings(fail)
    around.receive(FRAMES)
    assert (around.socket.aborted, len(around.handled)) == (True, 1)
    record = caplog.records[0]
    assert record.getMessage().endswith("met a fault of this server; report it")
    assert record.exc_info is not None
    assert str(record.exc_info[1]) == "oh"


def test_a_time_slice_is_bounded_and_the_rest_follows() -> None:
    around = Surroundings()
    around.receive(request(1) * (2 * SLICE_COMMANDS + 1))
    assert (len(around.handled), around.socket.reading) == (SLICE_COMMANDS, False)
    around.iterate()
    assert len(around.handled) == 2 * SLICE_COMMANDS
    around.iterate()
    assert (len(around.handled), around.socket.reading) == (2 * SLICE_COMMANDS + 1, True)
    assert len(around.socket.writes) == 3


class Caching(Surroundings):
    """Answers what is cached; a lookup of any other topic is handled, and cached with that topic as its body."""

    generation = 0

    def __init__(self, *, at_once: bool) -> None:
        self._at_once = at_once
        self._requests = requests_of()
        super().__init__(self._learn)

    def cached_for(self, peer: Peer) -> CachedRequests:
        return self._requests

    def _learn(self, command: Command, peer: Peer) -> None:
        reply = Reply(body=(command.get("topic") or "").encode())
        key = reply.body.decode(), asked_view(command, Options())
        self._requests.keep_lookup(key, peer.frame(), command, reply, self)
        if self._at_once:
            peer.send(encode(command.reply(0, body=reply.body)))


def lookups(topics: str, opaques: Iterable[int]) -> bytes:
    """Frames, each of another opaque."""
    commands = [
        Command(105, opaque, 0, 513, 0, None, {"topic": topic})
        for topic, opaque in zip(topics, opaques, strict=False)
    ]
    return b"".join(map(encode, commands))


def test_behind_a_request_that_is_answered_at_once_the_cached_are_looked_for() -> None:
    around = Caching(at_once=True)
    around.receive(lookups("aabbabaac", itertools.count(1)))
    assert [command.get("topic") for command in around.handled] == ["a", "b", "c"]
    assert around.bodies == [b"a", b"a", b"b", b"b", b"a", b"b", b"a", b"a", b"c"]
    assert not around.connection.busy


@pytest.mark.parametrize("cut", [1, 50, 100, 250])
def test_cached_or_not_each_request_has_its_reply_however_they_are_cut(cut: int) -> None:
    around = Caching(at_once=True)
    around.receive(lookups("aabbabaac", itertools.count(1)), cut)
    assert around.bodies == [b"a", b"a", b"b", b"b", b"a", b"b", b"a", b"a", b"c"]
    assert not around.connection.busy


def test_a_further_slice_begins_with_the_cached() -> None:
    """Those of the first asked the store for what is cached when the next begins."""
    around = Caching(at_once=False)
    around.time_slices.add(lambda: None)  # another waits, so the first slice is short
    around.receive(lookups("a" * (FIRST_COMMANDS + 20) + "b", itertools.count(1)))
    assert len(around.handled) == FIRST_COMMANDS
    while not around.socket.reading:
        around.iterate()
    assert [command.get("topic") for command in around.handled[FIRST_COMMANDS:]] == ["b"]
    assert around.bodies == [b"a"] * 20


def test_cached_replies_in_a_slice_leave_no_more_unread_than_others() -> None:
    around = Caching(at_once=True)
    topic = "t" * 200
    count = 4 * UNREAD_MOST // 200
    frames = [Command(105, opaque, 0, 513, 0, None, {"topic": topic}) for opaque in range(count)]
    around.receive(b"".join(map(encode, frames)))
    assert not around.socket.reading
    assert len(around.handled) == 1
    assert UNREAD_MOST <= len(b"".join(around.socket.writes)) < 2 * UNREAD_MOST
    while not around.socket.reading:
        around.iterate()
    assert len(around.bodies) == count


def test_a_slice_that_begins_with_long_replies_unwritten_looks_for_no_cached() -> None:
    around = Caching(at_once=False)
    around.receive(
        lookups("a", [0]) + lookups("xyz" * SLICE_COMMANDS, itertools.count(1)) + lookups("a", [9])
    )
    around.connection.send(bytes(UNREAD_MOST + 1))
    around.iterate()
    assert not around.socket.aborted
    assert len(around.socket.writes[0]) == UNREAD_MOST + 1


def test_while_others_wait_the_first_slice_is_short() -> None:
    around = Surroundings()
    other = Connection("2", "127.0.0.1:4712", around)
    other.connection_made(Socket())
    around.receive(request(1) * (SLICE_COMMANDS + 1))
    other.data_received(request(1) * (FIRST_COMMANDS + 1))
    assert len(around.handled) == SLICE_COMMANDS + FIRST_COMMANDS
    while around.calls:
        around.iterate()
    assert len(around.handled) == SLICE_COMMANDS + FIRST_COMMANDS + 2


def test_input_waits_while_much_is_unanswered() -> None:
    around = Surroundings(silence)
    around.receive(request(1) * (UNANSWERED_MOST + 1))
    while around.calls:
        around.iterate()
    assert (len(around.handled), around.socket.reading) == (UNANSWERED_MOST, False)
    around.connection.send(b"answer")
    while around.calls:
        around.iterate()
    assert len(around.handled) == UNANSWERED_MOST + 1


def test_of_many_that_leave_their_transports_full_the_first_is_cut_off() -> None:
    around, sockets = Surroundings(), [Socket() for _ in range(4)]
    for number, socket in enumerate(sockets, 2):
        connection = Connection(str(number), f"127.0.0.1:{number}", around)
        connection.connection_made(socket)
        socket.unread = around.limits.long_replies_bytes // 3
        connection.pause_writing()
        if number == 3:
            connection.resume_writing()  # it reads
            connection.pause_writing()
    assert [socket.aborted for socket in sockets] == [True, False, False, False]


def test_input_waits_while_big_requests_are_unanswered() -> None:
    around = Surroundings(silence)
    big = request(1, bytes(15 << 20))
    for _ in range(3):
        around.receive(big)
    assert len(around.handled) * (15 << 20) > UNANSWERED_BYTES_MOST
    assert not around.socket.reading
    for _ in around.handled:
        around.connection.send(b"answer")
    while around.calls:
        around.iterate()
    assert around.socket.reading


class Unconfirmed(Surroundings):
    """Whose store says nothing of repeated requests."""

    def check_repeat(self, due: RepeatCheck, peer: Peer) -> None:
        pass


def test_input_waits_while_big_repeated_requests_are_unanswered() -> None:
    around, cached = Unconfirmed(), Mock(CachedReply)
    due = [RepeatCheck(cached, b"", bytes(WAITING_MOST))] * (UNANSWERED_BYTES_MOST // WAITING_MOST)
    around.connection.check_repeats(due[1:])
    around.receive(request(1))
    assert around.socket.reading
    around.connection.check_repeats(due[:1])
    around.receive(request(2))
    assert not around.socket.reading


def test_input_waits_while_the_peer_does_not_read() -> None:
    around = Surroundings()
    around.connection.pause_writing()
    around.receive(FRAMES)
    assert (around.handled, around.socket.reading) == ([], False)
    around.connection.resume_writing()
    around.iterate()
    assert (around.bodies, around.socket.reading) == ([b"a", b"b", b"c"], True)


def test_one_time_slice_does_not_pile_up_answers() -> None:
    around = Surroundings(lambda _command, peer: peer.send(bytes(UNREAD_MOST // 2)))
    around.receive(request(1) * 10)
    assert len(around.handled) == 2
    while around.calls:
        around.iterate()
    assert len(around.handled) == 10


@pytest.mark.parametrize(
    ("unread", "cut"),
    [pytest.param(1 << 20, False, id="at the bound"), pytest.param((1 << 20) + 1, True, id="beyond")],
)
def test_a_peer_that_leaves_too_much_unread_is_cut_off(unread: int, cut: bool) -> None:
    around = Surroundings(silence)
    around.receive(FRAMES)
    around.socket.unread = unread
    around.connection.send(b"answer")
    around.iterate()
    assert around.socket.aborted is cut
    assert around.connection.closed is cut


def test_a_big_answer_alone_is_no_reason_to_cut_off() -> None:
    around = Surroundings(lambda _command, peer: peer.send(bytes(2 << 20)))
    around.receive(request(1))
    around.iterate()
    assert (sum(map(len, around.socket.writes)), around.socket.aborted) == (2 << 20, False)


LONG_BODY = bytes(range(256)) * (4 << 10)


def answers_at_length() -> Surroundings:
    """A connection whose peer has read little when a long reply is due to it, the first of two."""
    around = Surroundings(lambda command, peer: peer.send((b"head", LONG_BODY, command.body)))
    around.socket.written = around.connection.pause_writing
    around.receive(request(1, b"a") + request(1, b"b"))
    return around


def reads_all(around: Surroundings) -> None:
    """Let the peer read what there is, piece after piece."""
    count = 0
    while count < len(around.socket.writes):
        count = len(around.socket.writes)
        around.connection.resume_writing()


def test_a_long_answer_leaves_in_pieces_as_the_peer_reads_and_nothing_comes_between() -> None:
    around = answers_at_length()
    assert [len(written) for written in around.socket.writes] == [PIECE]
    assert (len(around.handled), around.connection.direct) == (1, False)
    assert around.reply_memory.taken == len(LONG_BODY)
    reads_all(around)
    assert b"".join(around.socket.writes) == b"head" + LONG_BODY + b"a"
    assert max(map(len, around.socket.writes)) == PIECE
    assert around.reply_memory.taken == 0
    around.iterate()
    reads_all(around)
    assert b"".join(around.socket.writes) == b"head" + LONG_BODY + b"ahead" + LONG_BODY + b"b"
    assert len(around.handled) == 2


def test_other_connections_are_served_while_a_long_answer_is_read_fast() -> None:
    around = Surroundings(lambda _command, peer: peer.send(bytes(8 * AT_ONCE)))
    around.receive(request(1))
    for turn in range(1, 8):
        assert sum(map(len, around.socket.writes)) == turn * AT_ONCE
        around.iterate()
    assert sum(map(len, around.socket.writes)) == 8 * AT_ONCE


def test_nothing_is_handed_over_behind_a_request_whose_reply_may_be_long() -> None:
    around = Surroundings(lambda _command, peer: peer.await_long())
    around.receive(request(1) * 100)
    assert (len(around.handled), around.connection.direct, around.socket.reading) == (1, False, False)
    around.connection.send(b"reply")
    around.iterate()
    around.iterate()
    assert len(around.handled) == 2


@pytest.mark.parametrize("ended", [True, False], ids=["after the peer's end", "by the service"])
def test_a_connection_that_closes_sends_a_long_answer_whole(ended: bool) -> None:
    around = Surroundings(silence)
    around.socket.written = around.connection.pause_writing
    around.receive(request(1))
    around.connection.send((b"head", LONG_BODY))
    if ended:
        around.connection.eof_received()
        around.iterate()
    else:
        around.connection.close("enough")
    assert around.connection.eof_received()  # there is something for it to read
    assert (around.connection.closed, around.socket.closed) == (True, False)
    reads_all(around)
    assert b"".join(around.socket.writes) == b"head" + LONG_BODY
    assert around.socket.closed


def test_a_connection_that_is_cut_off_frees_its_long_answers() -> None:
    around = answers_at_length()
    around.connection.abort("too slow")
    assert around.reply_memory.taken == 0
    around.connection.resume_writing()
    assert len(around.socket.writes) == 1


def test_a_peer_that_ended_its_side_still_gets_its_answers() -> None:
    around = Surroundings(silence)
    around.receive(request(1))
    assert around.connection.eof_received()
    around.connection.send(b"answer")
    around.iterate()
    assert (around.socket.writes, around.socket.closed) == ([b"answer"], True)


def test_a_peer_that_ended_with_nothing_under_way_is_disconnected() -> None:
    around = Surroundings()
    around.receive(FRAMES + b"\0\0")
    assert not around.connection.eof_received()


def test_nothing_is_sent_or_handled_after_the_close() -> None:
    around = Surroundings(lambda _command, peer: peer.close("enough"))
    around.receive(FRAMES)
    around.connection.send(b"late")
    around.receive(FRAMES)
    while around.calls:
        around.iterate()
    assert (len(around.handled), around.socket.writes, around.socket.closed) == (1, [], True)
    around.connection.connection_lost(None)
    around.connection.close("again")
    assert around.ends == 1


IDLE = "idle"


@pytest.mark.parametrize(
    ("data", "silent_s", "reason"),
    [
        pytest.param(b"", 119.9, None, id="silent for less than the limit"),
        pytest.param(b"", 120, IDLE, id="silent for the limit"),
        pytest.param(FRAMES, 120, IDLE, id="silent after frames"),
        pytest.param(b"\0\0", 120, IDLE, id="silent within a frame"),
        pytest.param(PROXY, 119.9, None, id="silent behind a PROXY header"),
        pytest.param(PROXY, 120, IDLE, id="too long behind a PROXY header"),
        pytest.param(PROXY[:10], 9.9, None, id="half a PROXY header"),
        pytest.param(PROXY[:10], 10, "unfinished PROXY header", id="half a PROXY header for too long"),
        pytest.param(b"\x16\x03", 10, "unfinished TLS handshake", id="half a handshake for too long"),
    ],
)
def test_silence_has_its_bounds(data: bytes, silent_s: float, reason: str | None) -> None:
    around = Surroundings()
    if data:
        around.receive(data)
    around.now = silent_s
    assert around.connection.overdue(around.now) == reason


def test_a_header_that_drips_in_is_not_waited_for_longer() -> None:
    around = Surroundings()
    for byte in PROXY[:10]:
        around.receive(bytes([byte]))
        around.now += 1
    assert around.connection.overdue(around.now) == "unfinished PROXY header"


def test_a_header_that_came_in_pieces_bounds_nothing_afterwards() -> None:
    around = Surroundings()
    around.receive(PROXY, cut=10)
    assert around.connection.overdue(119) is None


def test_an_answer_counts_as_activity() -> None:
    around = Surroundings(silence)
    around.receive(request(1))
    around.now = 100
    around.connection.send(b"answer")
    around.iterate()
    assert around.connection.overdue(219) is None
    assert around.connection.overdue(220) == IDLE


def test_a_peer_that_reads_slowly_is_not_idle() -> None:
    around = Surroundings()
    around.receive(FRAMES)
    around.socket.unread = 500
    assert around.connection.overdue(120) is None
    around.socket.unread = 400
    assert around.connection.overdue(240) is None
    assert around.connection.overdue(360) == IDLE


def test_a_close_that_the_peer_does_not_let_happen_is_bounded() -> None:
    around = Surroundings()
    around.connection.close("enough")
    assert around.connection.overdue(4.9) is None
    assert around.connection.overdue(5) == "not gone in time"


@pytest.mark.parametrize(
    ("mode", "answered"),
    [
        pytest.param("disabled", True, id="disabled"),
        pytest.param("permissive", True, id="permissive"),
        pytest.param("enforcing", False, id="enforcing"),
    ],
)
def test_plain_by_mode(mode: str, answered: bool) -> None:
    around = Surroundings(tls_server_mode=mode)
    around.receive(FRAMES)
    assert (len(around.handled), around.socket.closed) == ((3, False) if answered else (0, True))


def shake_hands(
    around: Surroundings, before: bytes = b"", cut: int = 0
) -> tuple[ssl.SSLObject, ssl.MemoryBIO, ssl.MemoryBIO]:
    """Return a TLS client, and what it reads and has written."""
    incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
    client = insecure().wrap_bio(incoming, outgoing)
    with pytest.raises(ssl.SSLWantReadError):
        client.do_handshake()
    around.receive(before + outgoing.read(), cut)
    incoming.write(b"".join(around.socket.writes))
    around.socket.writes.clear()
    client.do_handshake()
    around.receive(outgoing.read(), cut)
    incoming.write(b"".join(around.socket.writes))
    around.socket.writes.clear()
    return client, incoming, outgoing


@pytest.mark.parametrize("mode", ["permissive", "enforcing"])
@pytest.mark.parametrize("cut", [0, 1])
@pytest.mark.parametrize(
    "before", [pytest.param(b"", id="bare"), pytest.param(PROXY, id="behind a PROXY header")]
)
def test_tls_by_mode(mode: str, before: bytes, cut: int) -> None:
    around = Surroundings(tls_server_mode=mode)
    client, incoming, outgoing = shake_hands(around, before, cut)
    client.write(FRAMES)
    around.receive(outgoing.read(), cut)
    incoming.write(b"".join(around.socket.writes))
    around.socket.writes = [client.read()]
    assert around.bodies[:1] == [b"a"]
    assert len(around.handled) == 3
    assert around.connection.address == ("1.2.3.4:1111" if before else "127.0.0.1:4711")
    with pytest.raises(ssl.SSLWantReadError):
        client.unwrap()
    around.receive(outgoing.read())
    assert around.socket.closed


def test_of_too_many_handshakes_one_is_cut_off_but_none_that_is_over() -> None:
    done, first, last = (Surroundings() for _ in range(3))
    first.handshakes = last.handshakes = done.handshakes
    shake_hands(done)
    for around in (first, last):
        around.receive(b"\x16\x03\x01")
    assert [around.connection.closed for around in (done, first, last)] == [False, True, False]


def test_what_a_connection_had_is_freed_when_it_ends() -> None:
    """A TLS session is some 30 KB, and Python's collector seldom looks for cycles here."""

    def had() -> list[object]:
        kinds = (Connection, ReplyWriter, RequestReader, TlsSession)
        return [one for one in gc.get_objects() if isinstance(one, kinds)]

    gc.collect()
    gc.disable()
    try:
        before = len(had())
        around = Surroundings()
        around.receive(b"\x16\x03\x01\x02\x00")
        assert len(had()) == before + 4
        around.connection.close("because")
        around.connection.connection_lost(None)
        del around.connection
        assert len(had()) == before
    finally:
        gc.enable()


def test_tls_when_disabled_is_closed_without_a_byte() -> None:
    around = Surroundings(tls_server_mode="disabled")
    around.receive(b"\x16\x03\x01\x02\x00")
    assert (around.socket.closed, around.socket.writes) == (True, [])


def test_tls_without_a_certificate_is_closed_and_plain_goes_on() -> None:
    refused, plain = Surroundings(tls_test_mode_enable=False), Surroundings(tls_test_mode_enable=False)
    refused.receive(b"\x16\x03\x01\x02\x00")
    plain.receive(FRAMES)
    assert (refused.socket.closed, len(plain.handled)) == (True, 3)


def test_without_the_option_a_proxy_header_is_no_frame() -> None:
    around = Surroundings(proxy_protocol=False)
    around.receive(PROXY + FRAMES)
    assert (around.socket.closed, around.handled) == (True, [])


LONG = request(ECHO, bytes(700_000))


def reserve(around: Surroundings, length: int) -> object:
    """A request of another connection is under way; it stays until it is released."""
    other = object()
    around.frame_memory.reserve(other, length, False)
    return other


def test_a_frame_waits_for_memory_and_is_read_on_then() -> None:
    around = Surroundings()
    other = reserve(around, 1_000_000)
    around.receive(LONG[:1000])
    assert not around.socket.reading
    around.frame_memory.release(other)
    assert around.socket.reading
    around.receive(LONG[1000:], 50_000)
    assert around.bodies == [bytes(700_000)]
    assert around.frame_memory.taken == 0


def test_a_long_proxy_header_is_counted_and_waits_as_a_frame_does() -> None:
    around = Surroundings()
    head = bytes.fromhex("0d0a0d0a000d0a515549540a 2111 ffff") + bytes(4) * 3
    header = head + bytes(0xFFFF - 12)
    around.receive(header[:4000], 1000)
    assert around.frame_memory.taken == 0
    around.receive(header[4000:60_000], 1000)
    assert around.frame_memory.taken == 60_000
    other = reserve(around, 1_000_000)
    around.receive(header[60_000:61_000])
    assert not around.socket.reading
    around.frame_memory.release(other)
    assert around.socket.reading
    around.receive(header[61_000:] + FRAMES)
    assert (around.bodies, around.frame_memory.taken) == ([b"a", b"b", b"c"], 0)


def test_requests_before_a_frame_that_waits_are_answered() -> None:
    around = Surroundings()
    other = reserve(around, 1_000_000)
    around.receive(FRAMES + LONG[:1000])
    assert (around.bodies, around.socket.reading) == ([b"a", b"b", b"c"], False)
    around.frame_memory.release(other)


def test_a_connection_that_ends_frees_its_memory() -> None:
    around = Surroundings()
    around.receive(LONG[:600_000], 1000)
    waiting = Surroundings()
    waiting.frame_memory = around.frame_memory
    other = reserve(around, 400_000)
    waiting.receive(LONG[:1000])
    assert not waiting.socket.reading
    around.connection.connection_lost(None)
    around.frame_memory.release(other)
    assert waiting.socket.reading
    assert around.frame_memory.taken == 1000


def test_a_connection_that_ends_while_it_waits_is_not_waited_for() -> None:
    around = Surroundings()
    other = reserve(around, 1_000_000)
    around.receive(LONG[:1000])
    around.connection.close("because")
    around.connection.connection_lost(None)
    around.frame_memory.release(other)
    assert not around.socket.reading


def test_a_frame_of_few_bytes_needs_no_memory() -> None:
    around = Surroundings()
    other = reserve(around, 2_000_000)
    short = request(ECHO, bytes(60_000))
    around.receive(short[:1000])
    assert around.socket.reading
    around.receive(short[1000:5000])
    assert not around.socket.reading
    around.frame_memory.release(other)
    assert around.socket.reading


def test_each_of_several_frames_is_counted_by_itself() -> None:
    around = Surroundings()
    first = request(ECHO, bytes(100_000))
    around.receive(first[:1000])
    assert around.frame_memory.taken == 1000
    around.receive(first[1000:] + LONG[:5000])
    assert around.frame_memory.taken == 5000
    around.now = 9.0
    around.receive(LONG[5000:] + LONG[:6000])  # has begun, and its time with it, only now
    around.iterate()
    assert around.frame_memory.taken == 6000
    around.frame_memory.too_slow()
    around.now = 9.9
    assert around.frame_memory.too_slow() == []


def test_memory_does_not_resume_what_an_unread_reply_has_paused() -> None:
    around = Surroundings()
    other = reserve(around, 1_000_000)
    around.receive(LONG[:1000])
    around.connection.pause_writing()
    around.connection.incomplete(len(LONG), 2000)
    assert not around.socket.reading
    around.receive(LONG[1000:3000])
    around.frame_memory.release(other)
    assert not around.socket.reading
    around.connection.resume_writing()
    around.iterate()
    assert around.socket.reading


def test_memory_is_still_waited_for_when_the_reply_was_read() -> None:
    around = Surroundings()
    around.connection.pause_writing()
    around.receive(LONG[:1000])
    other = reserve(around, 1_000_000)
    around.connection.resume_writing()
    around.iterate()
    assert not around.socket.reading
    around.frame_memory.release(other)
    assert around.socket.reading


@pytest.mark.parametrize("cut", [0, 50_000], ids=["at once", "in parts"])
def test_a_whole_frame_behind_an_unread_reply_counts(cut: int) -> None:
    around = Surroundings()
    around.connection.pause_writing()
    around.receive(LONG, cut)
    assert around.frame_memory.taken == len(LONG)
    around.connection.resume_writing()
    around.iterate()
    assert (around.bodies, around.frame_memory.taken) == ([bytes(700_000)], 0)


def slow(around: Surroundings, for_s: float) -> list[object]:
    """What is found too slow, looked for as the table of connections does."""
    found: list[object] = []
    for _ in range(int(for_s / 0.5)):
        around.now += 0.5
        found += [reading for reading, _ in around.frame_memory.too_slow()]
    return found[:1]


def test_no_peer_is_slow_while_an_unread_reply_keeps_its_frame_from_being_read() -> None:
    around = Surroundings()
    around.connection.pause_writing()
    around.receive(LONG[:1000])
    around.connection.incomplete(len(LONG), 70_000)  # the transport has more of it
    assert around.connection._requests is not None
    intake = around.connection._requests.intake
    assert slow(around, 60.0) == []
    around.connection.resume_writing()
    around.iterate()
    assert slow(around, 5.0) == [intake]


def test_a_paused_frame_takes_no_other_ones_turn() -> None:
    """It would be admitted and not read."""
    around, waiting = Surroundings(), Surroundings()
    waiting.frame_memory = around.frame_memory
    other = reserve(around, 1_000_000)
    around.connection.pause_writing()
    around.receive(LONG[:-1])
    waiting.receive(LONG[:1000])
    around.frame_memory.release(other)
    assert waiting.socket.reading


def test_a_request_is_freed_when_it_is_answered_though_its_reply_is_not_read() -> None:
    around = Surroundings(lambda _command, peer: peer.send((b"head", LONG_BODY)))
    around.socket.written = around.connection.pause_writing
    around.receive(LONG, 50_000)
    assert (len(around.handled), around.socket.reading) == (1, False)
    assert around.connection.frame() == b""
