"""A forked child is like a spawned one but for its modules: what it has of its parent, and how it ends.

Each test forks from an interpreter of its own, since the one of pytest may have threads."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from testbed.eventually import eventually
from testbed.process_tree import command_line
from tests.mqnamesrv.process import runs

ROOT = Path(__file__).resolve().parents[2]
BEGIN = """
import atexit, gc, json, logging, os, random, secrets, signal, socket, sys, tempfile, threading, time
from functools import partial
from pathlib import Path
from mqnamesrv.child import Child
from mqnamesrv.fork import Fork

def child(main, *fds, **env):
    return Child("child", Fork(main, ("a", "b c"), env, fds, Path("/")))

def code(main, *fds, **env):
    started = child(main, *fds, **env)
    started.start()
    while started.exit_code() is None:
        time.sleep(0.005)
    return started.exit_code()
"""


def run(script: str) -> "subprocess.CompletedProcess[str]":
    """Run a script that has `child` and `code`, whose parameter is what the child runs."""
    return subprocess.run(
        [sys.executable, "-c", BEGIN + script],
        cwd=ROOT,
        env={name: text for name, text in os.environ.items() if name != "PYTHONUNBUFFERED"},
        stdin=subprocess.PIPE,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )


def test_what_it_has() -> None:
    state = run("""
logging.basicConfig(level=logging.INFO)
for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD):
    signal.signal(number, lambda *_: None)
signal.signal(signal.SIGUSR1, signal.SIG_IGN)
passed, kept = socket.socket(), socket.socket()

def main():
    print(json.dumps({
        "handlers": [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD, signal.SIGUSR1)],
        "interrupt": signal.getsignal(signal.SIGINT) is signal.default_int_handler,
        "mask": list(signal.pthread_sigmask(signal.SIG_BLOCK, ())),
        "files": [fd for fd in range(100) if os.path.exists(f"/proc/self/fd/{fd}")],
        "input": os.readlink("/proc/self/fd/0"),
        "leads": os.getsid(0) == os.getpid(),
        "cwd": os.getcwd(),
        "argv": sys.argv,
        "title": Path("/proc/self/cmdline").read_text().rstrip("\\0"),
        "env": os.environ["ONE"],
        "logging": [logging.root.handlers, logging.root.level],
    }))

code(main, passed.fileno(), ONE="1")
parent = [os.environ.get("ONE"), sys.argv, os.getcwd(), list(signal.pthread_sigmask(signal.SIG_BLOCK, ()))]
print(json.dumps({"parent": parent, "passed": passed.fileno()}))
""")
    child, parent = map(json.loads, state.stdout.splitlines())
    default, ignored = int(signal.SIG_DFL), int(signal.SIG_IGN)
    assert child == {
        "handlers": [default, default, default, ignored],
        "interrupt": True,
        "mask": [],
        "files": [0, 1, 2, parent["passed"]],
        "input": "/dev/null",
        "leads": True,
        "cwd": "/",
        "argv": ["a", "b c"],
        "title": "a b c",
        "env": "1",
        "logging": [[], 30],
    }
    assert parent["parent"] == [None, ["-c"], str(ROOT), []]


@pytest.mark.parametrize(
    ("main", "code", "printed"),
    [
        ("None", 0, ""),
        ("sys.exit()", 0, ""),
        ("sys.exit(3)", 3, ""),
        ("sys.exit('no store')", 1, "no store\n"),
        ("1 / 0", 1, "ZeroDivisionError: division by zero\n"),
        ("os.kill(os.getpid(), signal.SIGTERM)", -signal.SIGTERM, ""),
    ],
)
def test_how_it_ends(main: str, code: int, printed: str) -> None:
    done = run(f"print(code(lambda: {main}))")
    assert done.stdout == f"{code}\n"
    assert done.stderr.endswith(printed)
    assert bool(done.stderr) == bool(printed)


def test_a_child_that_cannot_begin_says_why() -> None:
    done = run('print(Fork(print, ("a",), {}, (), Path("/nonexistent")).start() and code(lambda: 0))')
    assert "No such file or directory: '/nonexistent'" in done.stderr


def test_output_is_written_once_and_no_end_of_the_parent_s_runs_in_the_child() -> None:
    done = run("""
print("parent")
atexit.register(print, "end of the parent")
code(lambda: print("child"))
""")
    assert done.stdout.splitlines() == ["parent", "child", "end of the parent"]


def test_it_waits_for_its_threads() -> None:
    done = run("""
def late():
    time.sleep(0.1)
    print("late")
code(lambda: threading.Thread(target=late).start())
""")
    assert done.stdout == "late\n"


def test_a_signal_right_after_the_start_is_not_lost() -> None:
    done = run("""
signal.signal(signal.SIGTERM, lambda *_: None)
for _ in range(30):
    started = child(signal.pause)
    started.start()
    started.signal(signal.SIGTERM)
    deadline = time.monotonic() + 5
    started.end(deadline)
    print(time.monotonic() < deadline)
""")
    assert done.stdout == "True\n" * 30


def test_what_is_random_differs() -> None:
    done = run("""
for _ in range(2):
    code(lambda: print(random.random(), secrets.token_hex(8)))
""")
    assert len(set(done.stdout.split())) == 4


def test_no_object_of_the_parent_is_freed_in_the_child() -> None:
    """Its end would close a file whose number may be another file's in the child."""
    done = run("""
class Circle:
    def __init__(self):
        self.me = self
    def __del__(self):
        print("freed in", "parent" if os.getpid() == parent else "child")

parent = os.getpid()
gc.disable()
Circle()
code(gc.collect)
gc.collect()
""")
    assert done.stdout == "freed in parent\n"


def test_it_ends_with_its_parent(tmp_path: Path) -> None:
    script = f"""
started = child(signal.pause)
started.start()
Path({str(tmp_path / "pid")!r}).write_text(str(started.pid))
signal.pause()
"""
    with subprocess.Popen([sys.executable, "-c", BEGIN + script], cwd=ROOT) as parent:
        pid = int(eventually(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text()))
        eventually(lambda: command_line(pid).strip() == "a b c")
        parent.kill()
    eventually(lambda: not runs(pid))


def test_what_is_left_of_its_session_is_killed_with_it() -> None:
    done = run("""
def main():
    if os.fork() == 0:
        signal.pause()
    signal.pause()

started = child(main)
started.start()
tasks = Path(f"/proc/{started.pid}/task/{started.pid}/children")
while not (grandchild := tasks.read_text()):
    time.sleep(0.005)
started.stop()
print(grandchild)
""")
    eventually(lambda: not runs(int(done.stdout)))
    assert not os.path.exists(f"/proc/{int(done.stdout)}/exe")


def test_a_full_disk_keeps_no_child_from_starting() -> None:
    done = run("""
sys.stdout = open("/dev/full", "w")
sys.stdout.write("a line of the log")
ended = code(lambda: None)
os.write(1, str(ended).encode())
os._exit(0)
""")
    assert done.stdout == "0"
