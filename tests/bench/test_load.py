"""bench/load.c: its requests and their times, its counts, and that it counts a slow server's delays."""

import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.asking import Asking
from bench.generator import Load, Stream
from bench.servers import canned
from bench.workloads import lookup
from rocketmq_remoting.command import Command, SerializeType
from testbed.ports import free_port
from tests.bench.odd_server import OddServer, reply_to

TOPICS = [f"t{i}" for i in range(6)]


@pytest.fixture
def stream(tmp_path: Path) -> Callable[[int], Stream]:
    """Return a factory of streams of lookups of TOPICS over so many connections."""
    frames = tmp_path / "frames"
    frames.write_bytes(b"".join(lookup(topic) for topic in TOPICS))
    return lambda connections: Stream(connections, frames)


def prompt(number: int, command: Command) -> bytes:
    return reply_to(command)


def test_a_closed_loop_counts_every_answer_of_the_canned_server(
    load_program: Path, canned_program: Path, stream: Callable[[int], Stream], tmp_path: Path
) -> None:
    file = tmp_path / "answer"
    file.write_bytes(reply_to(Command(105, 1, 0)))
    with (
        canned(canned_program, free_port(), file, core=0) as server,
        Load(load_program, server.port, [stream(3)]) as load,
    ):
        for depth in (1, 100):
            (sample,) = load.run(0.1, f"0=closed:{depth}")
            assert sample.answers == sample.sent >= 3 * depth
            assert (sample.errors, sample.lost) == (0, 0)
            assert 0 < sample.p50_us <= sample.p99_us <= sample.p999_us <= sample.max_us * 1.02


def test_the_canned_server_answers_each_request_under_its_own_opaque(
    canned_program: Path, tmp_path: Path
) -> None:
    file = tmp_path / "answer"
    file.write_bytes(reply_to(Command(105, 1, 0)))
    frames = [
        lookup(topic)[:13] + opaque.to_bytes(4, "big") + lookup(topic)[17:]
        for opaque, topic in enumerate(TOPICS, 70)
    ]
    with canned(canned_program, free_port(), file, core=0) as server, Asking(server.port) as asking:
        asking.send(b"".join(frames)[:-5])
        asking.send(frames[-1][-5:])
        assert [asking.receive().opaque for _ in frames] == [70, 71, 72, 73, 74, 75]


def test_a_connection_begins_with_its_own_frame_and_goes_on_in_strides(
    load_program: Path, stream: Callable[[int], Stream]
) -> None:
    with OddServer(prompt) as server, Load(load_program, server.port, [stream(2)]) as load:
        (sample,) = load.run(0, "0=once")
        assert (sample.sent, sample.answers) == (6, 6)
        assert server.asked == {0: ["t0", "t2", "t4"], 1: ["t1", "t3", "t5"]}
        load.run(0.05, "0=open:100")
        assert [asked[3:] for asked in server.asked.values()] == [["t0", "t2", "t4"], ["t1", "t3"]]


def test_an_open_loop_sends_what_the_schedule_says_on_each_stream(
    load_program: Path, stream: Callable[[int], Stream]
) -> None:
    with OddServer(prompt) as server, Load(load_program, server.port, [stream(4), stream(2)]) as load:
        many, few = load.run(0.2, "0=open:1000", "1=open:50")
        assert (many.sent, few.sent) == (200, 10)
        assert (many.answers, few.answers) == (200, 10)
        assert [len(server.asked[number]) for number in range(6)] == [50, 50, 50, 50, 5, 5]
        (only,) = load.run(0.1, "1=open:100")
        assert only.sent == 10


def test_a_stall_counts_for_all_that_was_due_meanwhile(
    load_program: Path, stream: Callable[[int], Stream]
) -> None:
    """The first answer takes 300 ms, all others no time; half of the requests were due in the first 100 ms."""
    stalled = threading.Event()

    def stall_once(number: int, command: Command) -> bytes:
        if not stalled.is_set():
            stalled.set()
            time.sleep(0.3)
        return reply_to(command)

    with OddServer(stall_once) as server, Load(load_program, server.port, [stream(1)]) as load:
        (sample,) = load.run(0.2, "0=open:1000")
    assert (sample.sent, sample.lost) == (200, 0)
    assert sample.p50_us >= 190_000
    assert sample.max_us >= 300_000


def test_a_closed_loop_sees_how_slow_a_server_is(load_program: Path, stream: Callable[[int], Stream]) -> None:
    def slow(number: int, command: Command) -> bytes:
        time.sleep(0.02)
        return reply_to(command)

    with OddServer(slow) as server, Load(load_program, server.port, [stream(2)]) as load:
        (sample,) = load.run(0.2, "0=closed:1")
    assert sample.p50_us >= 19_900
    assert 2 <= sample.answers <= 2 * 0.2 / 0.02 + 2


@pytest.mark.parametrize("kind", [SerializeType.ROCKETMQ, SerializeType.JSON])
def test_answers_that_are_errors_are_counted(
    load_program: Path, stream: Callable[[int], Stream], kind: SerializeType
) -> None:
    def erring(number: int, command: Command) -> bytes:
        return reply_to(command, 17 if (command.ext or {})["topic"] == "t1" else 0, kind)

    with OddServer(erring) as server, Load(load_program, server.port, [stream(1)]) as load:
        (sample,) = load.run(0.12, "0=open:100")
        assert (sample.answers, sample.errors) == (12, 2)
        (sample,) = load.run(0, "0=once")
        assert sample.errors == 1


def test_a_late_generator_does_not_make_the_server_look_quick(
    load_program: Path, stream: Callable[[int], Stream]
) -> None:
    """It stands still for 400 ms, until after its end: all that was due is sent, and counts from when it was due."""
    generators: list[Load] = []

    def halt(generator: Load) -> None:
        time.sleep(0.005)  # the first answer is there, and the second request not due yet
        generator.send_signal(signal.SIGSTOP)
        time.sleep(0.4)
        generator.send_signal(signal.SIGCONT)

    def halt_once(number: int, command: Command) -> bytes:
        if generators:
            threading.Thread(target=halt, args=[generators.pop()], daemon=True).start()
        return reply_to(command)

    with OddServer(halt_once) as server, Load(load_program, server.port, [stream(1)]) as load:
        generators.append(load)
        (sample,) = load.run(0.3, "0=open:100")
    assert sample.sent == sample.answers == 30
    assert sample.max_us >= 100_000
    assert sample.late_us >= 100_000


def test_replies_are_matched_by_their_opaque(load_program: Path, stream: Callable[[int], Stream]) -> None:
    """The first request is answered last, behind the fifth, which is due 80 ms after it."""
    held: list[Command] = []

    def first_last(number: int, command: Command) -> bytes:
        held.append(command)
        if len(held) == 1:
            return b""
        return reply_to(command) + (reply_to(held[0]) if len(held) == 5 else b"")

    with OddServer(first_last) as server, Load(load_program, server.port, [stream(1)]) as load:
        (sample,) = load.run(0.1, "0=open:50")
    assert (sample.answers, sample.lost) == (5, 0)
    assert sample.max_us >= 80_000


def test_a_request_without_a_reply_is_lost_and_counts_as_slow(
    impatient_load_program: Path, stream: Callable[[int], Stream]
) -> None:
    late: list[bytes] = []
    listening = threading.Event()

    def deaf(number: int, command: Command) -> bytes:
        late.append(reply_to(command))
        if not listening.is_set():
            return b""
        everything = b"".join(late)
        late.clear()
        return everything

    with OddServer(deaf) as server, Load(impatient_load_program, server.port, [stream(1)]) as load:
        (sample,) = load.run(0.1, "0=open:50")
        assert (sample.sent, sample.answers, sample.lost) == (5, 0, 5)
        assert sample.p50_us >= 300_000
        listening.set()
        (sample,) = load.run(0.1, "0=closed:1")
        assert sample.sent == sample.answers >= 1
        assert sample.lost == 0
        assert sample.max_us < 30e6  # what came too late is of no run


def test_the_end_of_a_connection_is_the_end_of_the_load(
    load_program: Path, stream: Callable[[int], Stream]
) -> None:
    with OddServer(prompt) as server, Load(load_program, server.port, [stream(1)]) as load:
        load.run(0, "0=once")
        server.hang_up()
        with pytest.raises(RuntimeError, match="the server closed a connection"):
            load.run(0.1, "0=open:100")


def test_a_mode_that_does_not_exist_is_an_error(load_program: Path, stream: Callable[[int], Stream]) -> None:
    with (
        OddServer(prompt) as server,
        Load(load_program, server.port, [stream(1)]) as load,
        pytest.raises(RuntimeError, match="not STREAM=MODE: 0=ajar"),
    ):
        load.run(0.1, "0=ajar")
