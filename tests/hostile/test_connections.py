"""Very many connections that do next to nothing: they cost little, and nobody else notices them."""

import resource
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from remoting.command import Command, encode
from remoting.version import CURRENT
from tests.harness.patience import eventually, stays
from tests.hostile.watch import GROWTH_BYTES, Watch, resident

MANY = 10_000
SPARE = 1000
"""File descriptors that the test and a worker need beside."""
ROUNDS = 3
NEVER_READING = 24
CONNECTION_BYTES = 8192
"""Of a worker's memory for a connection that has sent half a frame."""
LONG_FRAMES = 40
LONG_REQUESTS = 150
UNREAD_BYTES = 2 << 20
"""Of a worker's memory for a connection that asks on and on and takes no answer."""


@contextmanager
def connected(port: int, count: int, received: int | None = None) -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            one = socket.socket()
            if received is not None:
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)
            one.settimeout(10)
            one.connect(("127.0.0.1", port))
            opened.append(one)
        yield opened
    finally:
        for one in opened:
            one.close()


def as_many_as_may_be() -> int:
    """MANY, or what the limit of file descriptors leaves; a warning tells."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most - SPARE >= MANY:
        return MANY
    warnings.warn(f"{most - SPARE} connections, for only {most} files may be open", stacklevel=2)
    return most - SPARE


def test_ten_thousand_that_send_a_byte_a_second(watch: Watch) -> None:
    count = as_many_as_may_be()
    frame = encode(Command(105, 7, version=CURRENT, ext={"topic": "nobody"}))
    before = sum(map(resident, watch.workers))
    with connected(watch.server.port, count) as opened:
        for at in range(ROUNDS):
            for one in opened:
                one.send(frame[at : at + 1])
            stays(lambda: True, 0.9)
        assert sum(map(resident, watch.workers)) - before < count * CONNECTION_BYTES
        for one in opened[:: count // 50]:  # and each of them would still be answered
            one.sendall(frame[ROUNDS:])
            assert one.recv(1 << 16)
    eventually(lambda: watch.connections() < SPARE, 20.0)


def test_those_that_never_read_are_not_read_from(watch: Watch) -> None:
    """They ask until nothing more is taken of them; a worker keeps a bounded part of the answers."""
    asked = encode(Command(105, 7, version=CURRENT, ext={"topic": "TA"})) * 100
    before = sum(map(resident, watch.workers))
    with connected(watch.server.port, NEVER_READING, received=4096) as opened:
        for one in opened:
            one.setblocking(False)
        left = set(opened)

        def full() -> bool:
            for one in tuple(left):
                try:
                    one.send(asked)
                except (BlockingIOError, ConnectionError):
                    left.discard(one)
            return not left

        eventually(full, 30.0)
        assert sum(map(resident, watch.workers)) - before < NEVER_READING * UNREAD_BYTES
    eventually(lambda: watch.connections() < SPARE, 20.0)


def test_all_but_the_end_of_many_long_frames_takes_bounded_memory(watch: Watch) -> None:
    """A worker reads two of them at once, and nobody with short ones waits for them."""
    frame = memoryview(encode(Command(103, 7, version=CURRENT, ext={}, body=bytes(15 << 20))))
    before = {pid: resident(pid) for pid in watch.workers}
    with connected(watch.server.port, LONG_FRAMES) as opened:
        left = dict.fromkeys(opened, frame[: 14 << 20])
        for one in opened:
            one.setblocking(False)

        def taken() -> int:
            for one, data in left.items():
                with suppress(BlockingIOError):
                    left[one] = data[one.send(data) :]
            return sum(not rest for rest in left.values())

        eventually(lambda: taken() == 2 * len(before), 5.0)
        stays(lambda: taken() == 2 * len(before), 0.9)
        for pid in watch.workers:
            assert resident(pid) - before[pid] < GROWTH_BYTES
    eventually(lambda: watch.connections() < SPARE, 20.0)


def test_whoever_has_sent_a_long_frame_takes_no_memory_for_it(watch: Watch) -> None:
    """As hundreds of brokers that stay connected after they have registered."""
    frame = encode(Command(9999, 7, version=CURRENT, body=bytes(1_500_000)))
    before = {pid: resident(pid) for pid in watch.workers}
    with connected(watch.server.port, LONG_REQUESTS) as opened:
        for one in opened:
            one.sendall(frame)
            assert one.recv(1 << 16)
        for pid in watch.workers:
            assert resident(pid) - before[pid] < GROWTH_BYTES
