"""Very many nearly idle connections: they take little memory, and other clients are not delayed."""

import resource
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager

from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.version import CURRENT
from testbed.eventually import eventually, stays
from tests.hostile.watch import GROWTH_BYTES, Watch, resident

MANY = 10_000
SPARE = 1000
"""File descriptors that the test and a worker need besides."""
ROUNDS = 3
NEVER_READING = 24
CONNECTION_BYTES = 8192
"""A worker's memory for a connection that has sent half a frame."""
LONG_FRAMES = 40
LONG_REQUESTS = 150
UNREAD_BYTES = 2 << 20
"""A worker's memory for a connection that sends requests and reads no reply."""


@contextmanager
def connected(port: int, count: int, received: int | None = None) -> Iterator[list[socket.socket]]:
    opened: list[socket.socket] = []
    try:
        for _ in range(count):
            connection = socket.socket()
            if received is not None:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, received)
            connection.settimeout(10)
            connection.connect(("127.0.0.1", port))
            opened.append(connection)
        yield opened
    finally:
        for connection in opened:
            connection.close()


def most_connections() -> int:
    """Return MANY, or fewer with a warning if the limit of file descriptors is lower."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    if most - SPARE >= MANY:
        return MANY
    warnings.warn(f"{most - SPARE} connections, for only {most} files may be open", stacklevel=2)
    return most - SPARE


def test_ten_thousand_that_send_a_byte_a_second(watch: Watch) -> None:
    count = most_connections()
    frame = encode(Command(105, 7, version=CURRENT, ext={"topic": "no-such-topic"}))
    before = sum(map(resident, watch.workers))
    with connected(watch.server.port, count) as opened:
        for at in range(ROUNDS):
            for connection in opened:
                connection.send(frame[at : at + 1])
            stays(lambda: True, 0.9)
        assert sum(map(resident, watch.workers)) - before < count * CONNECTION_BYTES
        for connection in opened[:: count // 50]:  # and each of them would still be answered
            connection.sendall(frame[ROUNDS:])
            assert connection.recv(1 << 16)
    eventually(lambda: watch.connections() < SPARE, 20.0)


def test_those_that_never_read_are_not_read_from(watch: Watch) -> None:
    """They send until the worker stops reading; it buffers a bounded number of replies."""
    requests = encode(Command(105, 7, version=CURRENT, ext={"topic": "TA"})) * 100
    before = sum(map(resident, watch.workers))
    with connected(watch.server.port, NEVER_READING, received=4096) as opened:
        for connection in opened:
            connection.setblocking(False)
        left = set(opened)

        def full() -> bool:
            for connection in tuple(left):
                try:
                    connection.send(requests)
                except (BlockingIOError, ConnectionError):
                    left.discard(connection)
            return not left

        eventually(full, 30.0)
        assert sum(map(resident, watch.workers)) - before < NEVER_READING * UNREAD_BYTES
    eventually(lambda: watch.connections() < SPARE, 20.0)


def test_all_but_the_end_of_many_long_frames_takes_bounded_memory(watch: Watch) -> None:
    """Short requests do not wait for them, and those that stand still are cut off, one after the other."""
    frame = memoryview(encode(Command(103, 7, version=CURRENT, ext={}, body=bytes(15 << 20))))
    before = {pid: resident(pid) for pid in watch.workers}
    with connected(watch.server.port, LONG_FRAMES) as opened:
        left = dict.fromkeys(opened, frame[: 14 << 20])
        for connection in opened:
            connection.setblocking(False)

        def cut_off() -> int:
            for connection, data in tuple(left.items()):
                try:
                    left[connection] = data[connection.send(data) :] if data else data
                    connection.recv(1)
                    del left[connection]
                except BlockingIOError:
                    pass
                except ConnectionError:
                    del left[connection]
            for pid in watch.workers:
                assert resident(pid) - before[pid] < GROWTH_BYTES
            return len(opened) - len(left)

        eventually(lambda: cut_off() >= 2 * len(before), 20.0)
    eventually(lambda: watch.connections() < SPARE, 20.0)


def test_a_connection_takes_no_memory_after_its_long_frame(watch: Watch) -> None:
    """As hundreds of brokers that stay connected after they have registered."""
    frame = encode(Command(9999, 7, version=CURRENT, body=bytes(1_500_000)))
    before = {pid: resident(pid) for pid in watch.workers}
    with connected(watch.server.port, LONG_REQUESTS) as opened:
        for connection in opened:
            connection.sendall(frame)
            assert connection.recv(1 << 16)
        for pid in watch.workers:
            assert resident(pid) - before[pid] < GROWTH_BYTES
