"""The supervisor: starts children, restarts those that die, reloads and ends them on signals."""

import logging
import signal
import time
from collections.abc import Callable, Mapping
from math import inf
from queue import Empty, SimpleQueue
from types import FrameType, TracebackType
from typing import Self

from metrics.files import tidy
from mqnamesrv.child import Child

FIRST_DELAY_S, LONGEST_DELAY_S = 0.1, 5.0
STEADY_S = 10.0  # a child that lived that long is restarted at once
DEATHS_BEFORE_READY = 3
READY_TIMEOUT_S = 30.0
READY_POLL_S = 0.03
TICK_S = 0.5
RELOAD_EVERY_S = 1.0  # a gunicorn works off all SIGHUP that it has got before it ends
SAME_SIGNAL_S = 0.5  # a signal to a process group arrives twice: make passes its own on


log = logging.getLogger(__name__)


class StartFailed(RuntimeError):
    """A child did not become ready in time; the text names it."""


class Stopped(Exception):
    """SIGINT or SIGTERM arrived."""


class Signals:
    """The supervisor's signals as a queue, so that no handler interrupts other code."""

    NUMBERS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGCHLD)

    def __enter__(self) -> Self:
        self._queue: SimpleQueue[int] = SimpleQueue()  # its put may interrupt its get
        self._before = {number: signal.signal(number, self._put) for number in self.NUMBERS}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def _put(self, number: int, _: FrameType | None) -> None:
        self._queue.put(number)

    def check(self) -> None:
        """Raise Stopped if SIGINT or SIGTERM has arrived; for when nothing runs yet that other signals are about."""
        while number := self.next(0):
            if number in (signal.SIGINT, signal.SIGTERM):
                raise Stopped

    def next(self, timeout_s: float) -> int | None:
        """Return the next signal, or None after `timeout_s`."""
        try:
            return self._queue.get(timeout=timeout_s)
        except Empty:
            return None


class BackOff:
    """The back-off before a child starts again: doubled each time, reset once a child has lived for a while."""

    def __init__(self) -> None:
        self._delay_s = FIRST_DELAY_S

    def next_delay_s(self, lived_s: float) -> float:
        if lived_s >= STEADY_S:
            self._delay_s = FIRST_DELAY_S
            return 0.0
        delay, self._delay_s = self._delay_s, min(self._delay_s * 2, LONGEST_DELAY_S)
        return delay


class Watched:
    """A child with the history of its restarts."""

    def __init__(self, child: Child) -> None:
        self.child = child
        self.deaths = 0
        self.reloading = False
        self._back_off = BackOff()
        self._start_at: float | None = None
        self._started_at = time.monotonic()

    def check(self, now: float) -> None:
        """Record its death, or start it again when its back-off is over."""
        if self._start_at is not None:
            if now >= self._start_at:
                self._start_at, self._started_at = None, now
                try:
                    self.child.start()
                except OSError as error:  # such as: too many processes
                    log.warning(
                        "%s does not start: %s; retried in %g s", self.child.name, error, LONGEST_DELAY_S
                    )
                    self._start_at = now + LONGEST_DELAY_S
        elif (code := self.child.exit_code()) is not None:
            self.child.clear()
            tidy()
            if self.reloading:
                self.reloading, self._start_at = False, now
                return
            self.deaths += 1
            delay = self._back_off.next_delay_s(now - self._started_at)
            self._start_at = now + delay
            how = f"by signal {-code} ({signal.strsignal(-code)})" if code < 0 else f"with {code}"
            log.warning(
                "%s ended %s; restarted in %.1f s, look at its last lines", self.child.name, how, delay
            )


class Supervisor:
    """A context that ends its children when it is left. `refusal` says why a child that begins now would not serve, so
    that a reload leaves those that run; None if it would."""

    def __init__(self, signals: Signals, refusal: Callable[[], str | None] = lambda: None) -> None:
        self._signals = signals
        self._refusal = refusal
        self._reload_asked = False
        self._reload_from = inf  # when children have handlers (monotonic)
        self._watched: list[Watched] = []
        self._ours: list[Child] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end()

    def watch(self, child: Child) -> None:
        """Restart a child whose caller started it and will end it."""
        self._watched.append(Watched(child))

    def keep(self, child: Child) -> None:
        """Start a child, keep it running, and end it at last."""
        self._ours.append(child)
        child.start()
        self.watch(child)

    def wait_ready(
        self, checks: Mapping[str, Callable[[], bool]], timeout_s: float = READY_TIMEOUT_S
    ) -> None:
        """Wait until every check was true once. Raises StartFailed, or Stopped."""
        waiting = dict(checks)
        deadline = time.monotonic() + timeout_s
        while waiting := {name: check for name, check in waiting.items() if not check()}:
            for watched in self._watched:
                if watched.deaths >= DEATHS_BEFORE_READY:
                    raise StartFailed(f"{watched.child.name} does not stay up")
            if time.monotonic() > deadline:
                raise StartFailed(f"no answer in time: {', '.join(waiting)}")
            self._step(READY_POLL_S)
        if self._reload_from == inf:
            self._reload_from = time.monotonic()

    def run(self, tick: Callable[[], None]) -> None:
        """Run until Stopped; `tick` is called about twice a second."""
        tick_at = time.monotonic()
        while True:
            self._step(TICK_S)
            if (now := time.monotonic()) >= tick_at:
                tick_at = now + TICK_S
                tick()

    def _step(self, timeout_s: float) -> None:
        number = self._signals.next(timeout_s)
        if number in (signal.SIGINT, signal.SIGTERM):
            raise Stopped
        now = time.monotonic()
        self._reload_asked |= number == signal.SIGHUP
        if self._reload_asked and now >= self._reload_from:
            self._reload_asked, self._reload_from = False, now + RELOAD_EVERY_S
            self._reload()
        for watched in self._watched:
            watched.check(now)

    def _reload(self) -> None:
        if (refused := self._refusal()) is not None:
            log.error(
                "SIGHUP: no worker is reloaded, since new ones would not serve: %s; correct it, and send SIGHUP again",
                refused,
            )
            return
        log.info("SIGHUP: reloading the workers")
        for watched in self._watched:
            if watched.child in self._ours:
                watched.reloading = watched.child.reload == signal.SIGTERM
                watched.child.signal(watched.child.reload)

    def _end(self) -> None:
        """End all children at once, each within its grace; a second signal kills."""
        for child in self._ours:
            child.signal(signal.SIGTERM)
        begin, patient = time.monotonic(), True
        while waiting := [child for child in self._ours if child.exit_code() is None]:
            again = self._signals.next(0.1) in (signal.SIGINT, signal.SIGTERM)
            if again and time.monotonic() > begin + SAME_SIGNAL_S:
                patient = False
            for child in waiting:
                if not patient or time.monotonic() > begin + child.grace_s:
                    log.warning("%s does not end in time; killed, what it had under way is lost", child.name)
                    child.end(time.monotonic())
        for child in self._ours:
            child.end(time.monotonic())
