"""What a worker counts about itself: plain numbers, so that counting costs the hot path next to nothing."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from metrics import catalogue as metrics
from metrics.counts import Counts, Histogram, Histograms, Observed
from metrics.registrations import RegistrationCounts
from metrics.samples import Sample
from rocketmq_remoting.codes import RequestCode, ResponseCode

__all__ = ["REGISTRATION", "SAMPLED", "Counters", "Uses"]

SAMPLED: Final = 16
"""Of so many reads that are answered by their bytes one is timed, and counts for all."""

ROUTE: Final = int(RequestCode.GET_ROUTEINFO_BY_TOPIC)
CLUSTERS: Final = int(RequestCode.GET_BROKER_CLUSTER_INFO)
REGISTRATION: Final = int(RequestCode.REGISTER_BROKER)
UNCHANGED: Final = "unchanged"
BY_BYTES: Final = (
    ROUTE,
    CLUSTERS,
    REGISTRATION,
    *map(int, (RequestCode.QUERY_DATA_VERSION, RequestCode.BROKER_HEARTBEAT)),
)
"""Requests that can be answered by their bytes."""
Uses = list[int]
"""How many requests, and how many bytes their bodies had."""
RESULTS: Final[dict[int, str]] = {
    ResponseCode.SUCCESS: "ok",
    ResponseCode.TOPIC_NOT_EXIST: "not_found",
    ResponseCode.QUERY_NOT_FOUND: "not_found",
    ResponseCode.SYSTEM_BUSY: "busy",
    ResponseCode.REQUEST_CODE_NOT_SUPPORTED: "unsupported",
    ResponseCode.NO_PERMISSION: "denied",
    ResponseCode.GO_AWAY: "go_away",
}


class Counters:
    """Ever growing; a reader takes differences. `store_ms` is the time now by the Redis clock, None while unknown."""

    def __init__(self, store_ms: Callable[[], float | None] = lambda: None) -> None:
        self._store_ms = store_ms
        self.cache_hits = 0
        self.cache_misses = 0
        self.cache_negative_hits = 0
        self.cache_coalesced = 0
        self.cache_discarded = 0
        self.cache_oversize = 0
        self._by_bytes: dict[tuple[int, int], Uses] = {(code, 0): [0, 0] for code in BY_BYTES}
        """By code and bucket of a registration's body; but lookups that the compiled transport has answered."""
        self.lookups = self.uses(ROUTE)
        self.list_fills = 0
        self.list_hits = 0
        self.probes_reachable = 0
        self.resets = 0
        self.stale_serves = 0
        self.requests = Counts(metrics.REQUESTS)
        self.durations = Histograms(metrics.REQUEST_DURATION)
        self.connection_events = Counts(metrics.CONNECTION_EVENTS)
        self.decode_errors = Counts(metrics.DECODE_ERRORS)
        self.cache_drops = Counts(metrics.ROUTE_CACHE_DROPS)
        self.registrations = RegistrationCounts()
        self.other_bodies = Histogram(metrics.REGISTRATION_BODY.buckets)
        """Of registrations that were not answered by their bytes."""
        self.overloads = 0
        self._rejected = Counts(metrics.ADMISSION_REJECTED)
        self.probes = Counts(metrics.PROBES)
        self.security = Counts(metrics.SECURITY_EVENTS)
        self.first_ends: Callable[[], Iterable[tuple[str, float]]] = tuple
        """Returns when the first key, token and certificate end, by kind."""
        self.last_reload: Callable[[], bool | None] = lambda: None
        """Returns whether the access file, as it is now, is in force; None without one."""
        self._counts = (
            self.security,
            self.connection_events,
            self.decode_errors,
            self.cache_drops,
            self._rejected,
            self.probes,
        )
        self._of_lookups = self.durations.of(ROUTE)
        self.freshness = Histogram(metrics.ROUTE_FRESHNESS.buckets)
        self.hide_delay = Histogram(metrics.LEASE_HIDE_DELAY.buckets)
        self.loop_lag = Histogram(metrics.LOOP_LAG.buckets)

    @property
    def cached_requests(self) -> int:
        """Return how many requests were answered by their bytes."""
        return sum(self.by_bytes().values())

    def uses(self, code: int, body_bytes: int = 0) -> Uses:
        """Return where requests of this code are counted that are answered by their bytes, registrations with a body of
        that length: one list for all that count alike, so that to count one is no look into a table."""
        bucket = bisect_left(metrics.REGISTRATION_BODY.buckets, body_bytes) if body_bytes else 0
        return self._by_bytes.setdefault((code, bucket), [0, 0])

    def by_bytes(self) -> Counter[int]:
        """Return how many requests were answered by their bytes, by code."""
        counted = Counter[int]()
        for (code, _), (times, _) in self._by_bytes.items():
            counted[code] += times
        return counted

    def answered(self, code: int, response: int) -> None:
        """Count a request with its response code."""
        self.requests.add(code, RESULTS.get(response, "error"))

    def applied(self, event_ms: int) -> None:
        """Count an event that was applied, by the time of its id."""
        now_ms = self._store_ms()
        if now_ms is not None:
            self.freshness.observe(max(now_ms - event_ms, 0.0) / 1000)

    def refused(self, of_class: str) -> None:
        """Count a request that was answered busy, of a class as metrics have it."""
        self.overloads += 1
        self._rejected.add(of_class)

    def took(self, code: int, seconds: float) -> None:
        """Count how long a request took, from its whole frame to its answer."""
        self.durations.of(code).observe(seconds)

    def confirmed(self, code: int, seconds: float) -> None:
        """Count how long a repeated request took whose cached reply the store confirmed."""
        self.took(code, seconds)
        if code == REGISTRATION:
            self.registrations.durations.of(UNCHANGED).observe(seconds)

    def changed(self, outcome: str, body_bytes: int, seconds: float) -> None:
        """Count a registration that was answered by its header, and how long it took; `outcome` is of what it wrote."""
        self.requests.add(REGISTRATION, "ok")
        self.took(REGISTRATION, seconds)
        self.registrations.results.add(outcome)
        self.registrations.heartbeats.add(REGISTRATION)
        self.registrations.durations.of(outcome).observe(seconds)
        self.other_bodies.observe(body_bytes)

    def lookups_took(self, seconds: float, times: int) -> None:
        """Count how long lookups took that are answered by their bytes."""
        self._of_lookups.observe(seconds, times)

    def read(self, lookups: int) -> Iterator[Sample | Observed]:
        """Yield what is counted here as values of metrics, with `lookups` that transports have answered."""
        for counts in self._counts:
            yield from counts.read()
        for kind, end in self.first_ends():
            yield Sample(metrics.ACCESS_EXPIRY, (kind,), end)
        if (successful := self.last_reload()) is not None:
            yield Sample(metrics.ACCESS_RELOAD, (), int(successful))
        yield from self._requests(lookups)
        yield from self._of_brokers()
        yield Observed(metrics.REGISTRATION_BODY, (), self.bodies())
        yield from self.durations.read()
        yield Observed(metrics.LOOP_LAG, (), self.loop_lag)
        yield Observed(metrics.ROUTE_FRESHNESS, (), self.freshness)
        yield Observed(metrics.LEASE_HIDE_DELAY, (), self.hide_delay)
        yield Sample(metrics.STALE_SERVE, (), self.stale_serves)
        yield from self._of_cache(lookups)

    def _requests(self, lookups: int) -> Iterator[Sample]:
        counted = self.by_bytes()
        counted[ROUTE] += lookups
        by_bytes: dict[tuple[str, ...], int] = {(str(code), "ok"): n for code, n in counted.items()}
        for metric, labels, value in self.requests.read():
            yield Sample(metric, labels, value + by_bytes.get(labels, 0))
        for code, value in counted.items():
            yield Sample(metrics.CACHED_REQUESTS, (str(code),), value)

    def _of_brokers(self) -> Iterator[Sample | Observed]:
        """Yield registrations and heartbeats; each that was answered by its bytes renewed a lease, or it was just
        renewed."""
        counted = self.by_bytes()
        by_bytes: dict[tuple[str, ...], int] = {
            (metrics.HEARTBEATS.name, str(code)): number for code, number in counted.items()
        }
        by_bytes[metrics.REGISTRATIONS.name, UNCHANGED] = counted[REGISTRATION]
        for read in self.registrations.read():
            if isinstance(read, Sample):
                yield read._replace(value=read.value + by_bytes.get((read.metric.name, *read.labels), 0))
            else:
                yield read

    def bodies(self) -> Histogram:
        """Return the lengths (bytes) of registrations' bodies."""
        bodies = Histogram(self.other_bodies.bounds)
        bodies.counts, bodies.sum = [*self.other_bodies.counts], self.other_bodies.sum
        for (code, bucket), (times, body_bytes) in self._by_bytes.items():
            if code == REGISTRATION:
                bodies.counts[bucket] += times
                bodies.sum += body_bytes
        return bodies

    def _of_cache(self, lookups: int) -> Iterable[Sample]:
        by_bytes = self.by_bytes()
        hits = self.cache_hits + lookups + by_bytes[ROUTE] + by_bytes[CLUSTERS]
        values = {
            "hit": hits,
            "negative_hit": self.cache_negative_hits,
            "miss": self.cache_misses,
            "coalesced": self.cache_coalesced,
            "discarded": self.cache_discarded,
            "oversize": self.cache_oversize,
        }
        return (Sample(metrics.ROUTE_CACHE_EVENTS, (result,), value) for result, value in values.items())
