"""What an HTTP worker counts of requests."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from threading import Lock
from time import perf_counter
from typing import Final

from flask import Flask, Response, g, request

from metrics.catalogue import (
    ACCESS_EXPIRY,
    ACCESS_RELOAD,
    HTTP_REQUEST_DURATION,
    HTTP_REQUESTS,
    SECURITY_EVENTS,
    TRANSPORTS,
    WATCH_DELAY,
    WATCH_EVENTS,
    WATCHERS,
)
from metrics.counts import Counts, Histograms, Observed
from metrics.metric import OTHER, Scope
from metrics.publisher import Publisher
from metrics.registrations import RegistrationCounts
from metrics.samples import Sample
from metrics.store_commands import StoreCommands
from registry.plans import Call, ScriptCall

__all__ = ["COUNTERS", "ROLE", "HttpCounters", "count_requests", "publisher", "seconds_so_far"]

ROLE: Final = "http"
"""Of these processes."""
HEARTBEAT: Final = "http"
ACCEPTED: Final = frozenset(("new", "changed", "unchanged"))
"""What came of registrations that are heartbeats too."""


class HttpCounters:
    """Counts of one process; its threads share them."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._requests = Counts(HTTP_REQUESTS)
        self._durations = Histograms(HTTP_REQUEST_DURATION)
        self._commands = StoreCommands()
        self._registrations = RegistrationCounts()
        self._security = Counts(SECURITY_EVENTS)
        self._watchers = dict.fromkeys(TRANSPORTS, 0)
        self._watch_events = Counts(WATCH_EVENTS)
        self._watch_delays = Histograms(WATCH_DELAY)
        self.first_ends: Callable[[], Iterable[tuple[str, float]]] = tuple
        """Returns when the first key and token end, by kind."""
        self.last_reload: Callable[[], bool | None] = lambda: None
        """Returns whether the access file, as it is now, is in force; None without one."""

    def answered(self, method: str, route: str, status: int, seconds: float) -> None:
        """Count a request of a route, `other` for none, and how long it took."""
        with self._lock:
            self._requests.add(method, route, status)
            self._durations.of(method, route).observe(seconds)

    def refused(self, status: int, limit: str = "") -> None:
        """Count a request that never became one of a route; `limit` is the option that it exceeds."""
        with self._lock:
            self._requests.add(OTHER, OTHER, status)
            self._registrations.limited(limit)

    def limited(self, option: str) -> None:
        """Count what was refused at the limit that this option sets."""
        with self._lock:
            self._registrations.limited(option)

    def secured(self, operation: str, result: str) -> None:
        """Count a security event."""
        with self._lock:
            self._security.add(operation, result)

    def registered(self, outcome: str, seconds: float) -> None:
        """Count a registration by what came of it, and how long it took."""
        with self._lock:
            self._registrations.results.add(outcome)
            self._registrations.durations.of(outcome).observe(seconds)
            if outcome in ACCEPTED:
                self._registrations.heartbeats.add(HEARTBEAT)

    def heartbeat(self) -> None:
        """Count an accepted heartbeat."""
        with self._lock:
            self._registrations.heartbeats.add(HEARTBEAT)

    def observe(
        self, requests: Sequence[Call | ScriptCall], seconds: float, replies: Sequence[object]
    ) -> None:
        """Count a round trip to the store, see `registry.drivers.Observe`."""
        with self._lock:
            self._commands(requests, seconds, replies)

    def watching(self, watchers: Mapping[str, int]) -> None:
        """Note how many watchers there are, by transport."""
        with self._lock:
            self._watchers = dict.fromkeys(self._watchers, 0) | dict(watchers)

    def watch_events(self, result: str, number: int) -> None:
        """Count messages that were sent to watchers, resets of them, or watchers that were cut off."""
        with self._lock:
            self._watch_events.add(result, by=number)

    def watch_delays(self, seconds: Iterable[float]) -> None:
        """Count changes by how long after their record the last of the watchers that had read all was sent them."""
        with self._lock:
            for delay_s in seconds:
                self._watch_delays.of().observe(delay_s)

    def read(self) -> Iterator[Sample | Observed]:
        """Yield what is counted here as values of metrics."""
        with self._lock:
            yield from self._requests.read()
            yield from self._durations.read()
            yield from self._commands.read()
            yield from self._registrations.read()
            yield from self._security.read()
            yield from self._watch_events.read()
            yield from self._watch_delays.read()
            yield from (Sample(WATCHERS, (name,), number) for name, number in self._watchers.items())
        for kind, end in self.first_ends():
            yield Sample(ACCESS_EXPIRY, (kind,), end)
        if (successful := self.last_reload()) is not None:
            yield Sample(ACCESS_RELOAD, (), int(successful))


COUNTERS: Final = HttpCounters()
"""Those of this process."""


def count_requests(app: Flask) -> None:
    """Have all requests of an application counted, from the whole request to its answer."""

    @app.before_request
    def begin() -> None:
        g.began_s = perf_counter()

    @app.after_request
    def end(response: Response) -> Response:
        route = OTHER if request.url_rule is None else request.url_rule.rule
        COUNTERS.answered(request.method, route, response.status_code, seconds_so_far())
        return response


def seconds_so_far() -> float:
    """Return how long this request has taken."""
    began_s: float | None = g.get("began_s", None)
    return 0.0 if began_s is None else perf_counter() - began_s


def publisher(namespace: str) -> Publisher:
    """Return what publishes the counts of this process, an HTTP worker."""
    return Publisher(namespace, Scope.HTTP, ROLE, COUNTERS.read)
