"""A child that runs a function of this program in a fork: what is imported here it need not import again.

All else is as in a spawned process: signals, files, environment, arguments and logging are as the interpreter starts
with them. The function runs on the stack of the parent and never returns to it, so no object of the parent is freed in
the child, where it might close a file whose number is the child's by then.
"""

import gc
import logging
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import msgspec
from setproctitle import setproctitle

from mqnamesrv.parent_death import die_with

FAILED = 1


class ForkedProcess:
    """The parent's side of a fork."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._code: int | None = None

    def poll(self) -> int | None:
        """Return its exit code: None while it runs, negative for the signal that ended it."""
        if self._code is None:
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            self._code = os.waitstatus_to_exitcode(status) if pid else None
        return self._code

    def send_signal(self, sig: int) -> None:
        """Send it a signal if it still runs."""
        if self.poll() is None:
            os.kill(self.pid, sig)


class Fork(msgspec.Struct, frozen=True):
    """A function and its surroundings: `argv` is its command line and title, `env` is added to the environment."""

    main: Callable[[], object]
    argv: Sequence[str]
    env: Mapping[str, str]
    fds: Sequence[int]
    cwd: Path

    def start(self) -> ForkedProcess:
        """Start the process; OSError if there cannot be one more."""
        parent = os.getpid()
        with suppress(OSError):  # a full disk: then both may write it
            _flush()  # what is buffered would be written by both
        mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        try:  # the child's first signals wait until its handlers are no longer the parent's
            pid = os.fork()
            if pid == 0:
                _leave(partial(self._run, parent, mask))
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        return ForkedProcess(pid)

    def _run(self, parent: int, mask: Iterable[int]) -> None:
        gc.freeze()  # the parent's garbage too
        os.setsid()
        die_with(parent)
        _reset_signals()
        _reset_files(self.fds)
        _reset_logging()
        os.environ.update(self.env)
        os.chdir(self.cwd)
        sys.argv[:] = self.argv
        setproctitle(" ".join(self.argv))
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        self.main()


def _reset_signals() -> None:
    """Set the handlers that `exec` and a start of the interpreter would leave."""
    for number in signal.valid_signals():
        if callable(signal.getsignal(number)):
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def _reset_files(fds: Sequence[int]) -> None:
    """Have input from /dev/null, and close all other files but output and these."""
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    for fd in map(int, os.listdir("/dev/fd")):
        if fd not in (0, 1, 2, *fds):
            with suppress(OSError):  # the one by which they were listed
                os.close(fd)


def _reset_logging() -> None:
    logging.root.handlers.clear()
    logging.root.setLevel(logging.WARNING)


def _leave(run: Callable[[], object]) -> NoReturn:
    """Run this and end the process, as the interpreter does at the end of a program, but for functions of `atexit`:
    those that are registered are the parent's."""
    code = FAILED
    try:
        code = _exit_code(run)
        threading._shutdown()  # type: ignore[attr-defined]  # waits for threads
        _flush()
    finally:
        os._exit(code)


def _exit_code(run: Callable[[], object]) -> int:
    try:
        run()
    except SystemExit as leaving:
        if leaving.code is None or isinstance(leaving.code, int):
            return leaving.code or 0
        print(leaving.code, file=sys.stderr)
        return FAILED
    except BaseException as error:
        sys.excepthook(type(error), error, error.__traceback__)
        return FAILED
    return 0


def _flush() -> None:
    for stream in (sys.stdout, sys.stderr):
        if stream:  # None if the file is closed
            stream.flush()
