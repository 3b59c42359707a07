"""What keeps children running: restarts, reloads, ends all, and leaves nothing behind."""

import os
import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mqnamesrv.child import Child
from mqnamesrv.program import Program
from mqnamesrv.supervisor import (
    RELOAD_EVERY_S,
    SAME_SIGNAL_S,
    BackOff,
    Signals,
    StartFailed,
    Stopped,
    Supervisor,
)
from testbed.eventually import eventually

# Notes its pid, then waits; a line of argv[2] is run before that.
CODE = """
import os, signal, subprocess, sys, time
exec(sys.argv[2])
with open(sys.argv[1], "a") as notes:
    print(os.getpid(), file=notes)
while True:
    signal.pause()
"""


class Notes:
    """The pids that a child wrote, one for each start."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.touch()

    def pids(self) -> list[int]:
        return [int(line) for line in self.path.read_text().split()]

    def child(
        self, before: str = "", *, grace_s: float = 5.0, reload: signal.Signals = signal.SIGTERM
    ) -> Child:
        argv = [sys.executable, "-c", CODE, str(self.path), before]
        return Child("child", Program(argv), grace_s=grace_s, reload=reload)


@pytest.fixture
def notes(tmp_path: Path) -> Notes:
    return Notes(tmp_path / "notes")


@pytest.fixture
def signals() -> Iterator[Signals]:
    with Signals() as signals:
        yield signals


def runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def starts(notes: Notes, number: int) -> dict[str, Callable[[], bool]]:
    """A readiness check: the child has started that often."""
    return {"started": lambda: len(notes.pids()) >= number}


def test_leaving_ends_all(notes: Notes, signals: Signals) -> None:
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child())
        supervisor.wait_ready(starts(notes, 1))
        (pid,) = notes.pids()
        assert runs(pid)
        begin = time.monotonic()
    assert not runs(pid)
    assert time.monotonic() - begin < 3  # it was asked to, not waited for


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_signal_stops(notes: Notes, signals: Signals, number: signal.Signals) -> None:
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child())
        supervisor.wait_ready(starts(notes, 1))
        with pytest.raises(Stopped):
            supervisor.run(lambda: os.kill(os.getpid(), number))
    assert not runs(notes.pids()[0])


@pytest.mark.parametrize(
    ("number", "said"),
    [(signal.SIGKILL, "by signal 9 (Killed)"), (signal.SIGRTMIN + 6, "by signal 40 (Real-time signal 6)")],
)
def test_a_dead_child_starts_again(
    notes: Notes, signals: Signals, caplog: pytest.LogCaptureFixture, number: int, said: str
) -> None:
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child())
        supervisor.wait_ready(starts(notes, 1))
        os.kill(notes.pids()[0], number)
        supervisor.wait_ready(starts(notes, 2))
        assert runs(notes.pids()[1])
    assert f"child ended {said}; restarted in 0.1 s" in caplog.text


def test_restarts_back_off() -> None:
    back_off = BackOff()
    assert [back_off.next_delay_s(lived_s=0) for _ in range(8)] == [0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 5.0, 5.0]
    assert back_off.next_delay_s(lived_s=10) == 0
    assert back_off.next_delay_s(lived_s=9.9) == 0.1


def test_a_child_that_does_not_stay_up_fails_the_start(signals: Signals) -> None:
    with Supervisor(signals) as supervisor:
        supervisor.keep(Child("broken", Program([sys.executable, "-c", "raise SystemExit(3)"])))
        with pytest.raises(StartFailed, match="broken does not stay up"):
            supervisor.wait_ready({"never": lambda: False})


def test_a_check_that_stays_false_fails_the_start(notes: Notes, signals: Signals) -> None:
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child())
        checks = {"late": lambda: False, "at once": lambda: True, "never": lambda: False}
        with pytest.raises(StartFailed, match="no answer in time: late, never"):
            supervisor.wait_ready(checks, timeout_s=0.1)
    assert not any(runs(pid) for pid in notes.pids())


def test_a_start_that_fails_half_way_leaves_nothing(notes: Notes, signals: Signals) -> None:
    with pytest.raises(FileNotFoundError), Supervisor(signals) as supervisor:  # noqa: PT012
        supervisor.keep(notes.child())
        supervisor.wait_ready(starts(notes, 1))
        supervisor.keep(Child("no such program", Program(["/nonexistent/program"])))
    assert not runs(notes.pids()[0])


def test_what_a_child_started_goes_with_it(notes: Notes, signals: Signals, tmp_path: Path) -> None:
    grandchild = Notes(tmp_path / "grandchild")
    before = f"subprocess.Popen([sys.executable, '-c', {CODE!r}, {str(grandchild.path)!r}, ''])"
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child(before))
        supervisor.wait_ready(starts(notes, 1) | {"grandchild": starts(grandchild, 1)["started"]})
    eventually(lambda: not runs(grandchild.pids()[0]))


def test_what_a_dead_child_left_is_gone_before_it_starts_again(
    notes: Notes, signals: Signals, tmp_path: Path
) -> None:
    grandchild = Notes(tmp_path / "grandchild")
    before = f"subprocess.Popen([sys.executable, '-c', {CODE!r}, {str(grandchild.path)!r}, ''])"
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child(before))
        supervisor.wait_ready(starts(notes, 1) | {"grandchild": starts(grandchild, 1)["started"]})
        os.kill(notes.pids()[0], signal.SIGKILL)
        supervisor.wait_ready(starts(notes, 2))
        eventually(lambda: not runs(grandchild.pids()[0]))


def test_a_stubborn_child_is_killed_after_its_grace(notes: Notes, signals: Signals) -> None:
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child("signal.signal(signal.SIGTERM, signal.SIG_IGN)", grace_s=0.2))
        supervisor.wait_ready(starts(notes, 1))
        begin = time.monotonic()
    assert not runs(notes.pids()[0])
    assert 0.2 <= time.monotonic() - begin < 3


def test_a_second_signal_kills(notes: Notes, signals: Signals) -> None:
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child("signal.signal(signal.SIGTERM, signal.SIG_IGN)", grace_s=30))
        supervisor.wait_ready(starts(notes, 1))
        begin = time.monotonic()
        later = threading.Timer(SAME_SIGNAL_S + 0.2, os.kill, (os.getpid(), signal.SIGINT))
        later.start()
    later.join()
    assert time.monotonic() - begin < 3


def test_the_same_signal_twice_in_a_moment_is_one(notes: Notes, signals: Signals) -> None:
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child("signal.signal(signal.SIGTERM, signal.SIG_IGN)", grace_s=2))
        supervisor.wait_ready(starts(notes, 1))
        os.kill(os.getpid(), signal.SIGINT)
        begin = time.monotonic()
    assert time.monotonic() - begin > 1.5


def test_reloads_are_joined_and_wait_until_all_is_ready(
    notes: Notes, signals: Signals, tmp_path: Path
) -> None:
    """A gunicorn without handlers dies of SIGHUP, and one that has got many of them is long to end."""
    reloads = Notes(tmp_path / "reloads")
    line = f"signal.signal(signal.SIGHUP, lambda *_: open({str(reloads.path)!r}, 'a').write('1 '))"
    with Supervisor(signals) as supervisor:
        os.kill(os.getpid(), signal.SIGHUP)
        child = notes.child(f"time.sleep(0.3); {line}", reload=signal.SIGHUP)
        supervisor.keep(child)
        first = child.pid
        supervisor.wait_ready(starts(notes, 1))
        for _ in range(20):
            os.kill(os.getpid(), signal.SIGHUP)
            supervisor.wait_ready(passed(0.01))
        supervisor.wait_ready(passed(1.2 * RELOAD_EVERY_S))
        assert notes.pids() == [first]
        assert 2 <= len(reloads.pids()) <= 4


def passed(seconds: float) -> dict[str, Callable[[], bool]]:
    """A check that is true once so much time has passed."""
    end = time.monotonic() + seconds
    return {"time": lambda: time.monotonic() >= end}


def test_reload_restarts_what_cannot_reload_itself(notes: Notes, signals: Signals, tmp_path: Path) -> None:
    other = Notes(tmp_path / "other")
    again = f"signal.signal(signal.SIGHUP, lambda *_: open({str(other.path)!r}, 'a').write('1 '))"
    reloading = Notes(tmp_path / "reloading")
    watched = Notes(tmp_path / "watched")
    store = watched.child()
    with Supervisor(signals) as supervisor:
        supervisor.keep(notes.child())
        supervisor.keep(reloading.child(again, reload=signal.SIGHUP))
        store.start()
        supervisor.watch(store)
        started = {
            name: starts(n, 1)["started"] for name, n in (("a", notes), ("b", reloading), ("c", watched))
        }
        supervisor.wait_ready(started)
        os.kill(os.getpid(), signal.SIGHUP)
        supervisor.wait_ready(starts(notes, 2) | {"reloaded": lambda: len(other.pids()) == 1})
        assert (len(reloading.pids()), len(watched.pids())) == (1, 1)
    store.stop()


def test_a_watched_child_is_restarted_but_not_ended(notes: Notes, signals: Signals) -> None:
    store = notes.child()
    store.start()
    with Supervisor(signals) as supervisor:
        supervisor.watch(store)
        supervisor.wait_ready(starts(notes, 1))
        os.kill(notes.pids()[0], signal.SIGKILL)
        supervisor.wait_ready(starts(notes, 2))
    assert runs(notes.pids()[1])
    store.stop()
    assert not runs(notes.pids()[1])
