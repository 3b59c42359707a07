"""Which cached answers an event makes untrue: the rules, a function a kind."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import msgspec

from registry.keys import ORDER_TOPIC_CONFIG, member_key
from registry.renewals import Renewals
from worker.counters import Counters
from worker.follower import Event, ResetCause
from worker.remembered import Remembered
from worker.route_cache import RouteCache

RETURN_WITHIN_S = 30.0  # one period of brokers that register by default
VERSION = "1"

_addresses = msgspec.json.Decoder(dict[int, str]).decode
_names = msgspec.json.Decoder(list[str]).decode
_topic_rows = msgspec.json.Decoder(list[tuple[str, str, str, list[str]]]).decode
_mapping_rows = msgspec.json.Decoder(list[tuple[str, str, msgspec.Raw, msgspec.Raw]]).decode


class Invalidation:
    """A follower's listener that keeps a cache true, and forgets renewals at every change.

    `reload` reads the shared settings anew, or raises StoreUnavailable; `expired` is told each member key whose
    lapse was recorded, unless the same script registered it again; `leased` each timeout (ms) that a lease got."""

    def __init__(
        self,
        cache: RouteCache,
        remembered: Remembered,
        renewals: Renewals,
        counters: Counters,
        reload: Callable[[], Awaitable[None]],
        expired: Callable[[str], None],
        leased: Callable[[int], None],
    ) -> None:
        self._cache = cache
        self._remembered = remembered
        self._renewals = renewals
        self._counters = counters
        self._reload = reload
        self._expired = expired
        self._leased = leased
        self._deadline: asyncio.TimerHandle | None = None
        self._incomplete: dict[str, frozenset[int]] = {}
        self._told_empty = False

    async def apply(self, group: Sequence[Event]) -> None:
        """Make the cache forget what these entries changed."""
        if all(event.kind == "checkpoint" for event in group):
            return  # these come in great numbers, and change nothing
        self._renewals.forget()
        for event in group:
            if event.kind == "settings_changed":
                await self._read_settings_again()
            else:
                self._forget(event)
            if timeout_ms := event.get("timeout_ms"):
                self._leased(int(timeout_ms))
        for member in _expired_for_good(group):
            self._expired(member)
        self._told_empty = False

    def emptied(self) -> None:
        """The store is empty: brokers are shown as they were until they are back, or should be.

        Told again before anything was applied, what is cached is the new store's, and nobody is waited for by it."""
        self._renewals.forget()
        if not self._told_empty:
            self._remembered.begin(self._cache.found())
        self._told_empty = True
        self._incomplete.clear()
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(RETURN_WITHIN_S, self._waited_long_enough)

    async def reset(self, cause: ResetCause) -> None:
        """Something was missed: anything may have changed."""
        self._renewals.forget()
        if cause != "start":
            self._counters.resets += 1
        await self._read_settings_again()

    async def _read_settings_again(self) -> None:
        self._cache.drop_all()
        await self._reload()
        self._cache.drop_all()  # also what was made by the old settings meanwhile

    def _forget(self, event: Event) -> None:
        rule = RULES.get(event.kind) if event.get("v") == VERSION else None
        if rule is None:
            self._cache.drop_all()
        else:
            rule(self, event)

    def _started(self, event: Event) -> None:
        """Tables that are gone come back with the brokers; a stream that is gone tells nothing of the tables."""
        if event.cause == "empty_store":
            self.emptied()
        self._cache.drop_all()

    def _waited_long_enough(self) -> None:
        self._cache.drop_brokers(self._remembered.forget())

    def _settled(self, name: str, ids: frozenset[int] | None) -> None:
        if self._remembered.settled(name, ids):
            self._cache.drop_brokers((name,))

    def _registered(self, event: Event) -> None:
        name = event.get("broker")
        self._cache.drop_brokers((name, *_others(event)))
        self._incomplete[name] = frozenset(_addresses(event.get("addrs")))
        self._complete(event)

    def _complete(self, event: Event) -> None:
        """A registration is whole with the entry that carries its data version: that of a big table is the last."""
        ids = self._incomplete.pop(event.get("broker"), None) if event.get("dv") else None
        if ids is not None:
            self._settled(event.get("broker"), ids)

    def _removed(self, event: Event) -> None:
        self._cache.drop_brokers((event.get("broker"),))
        self._settled(event.get("broker"), None)

    def _updated(self, event: Event) -> None:
        if any(f"{name}_before" in event.fields for name in ("zone", "acting", "filters")):
            self._cache.drop_brokers((event.get("broker"), *_others(event)))
        self._complete(event)

    def _drain_changed(self, event: Event) -> None:
        name = event.get("broker")
        if name:
            self._cache.drop_brokers((name,))
        else:
            self._cache.drop_all()

    def _topics_changed(self, event: Event) -> None:
        for name, _, _, topics in _topic_rows(event.get("rows")):
            self._cache.drop_topics(topics, name)
        self._complete(event)

    def _mappings_changed(self, event: Event) -> None:
        for name, topic, _, _ in _mapping_rows(event.get("rows")):
            self._cache.drop_topics((topic,), name)
        self._complete(event)

    def _kv_changed(self, event: Event) -> None:
        if event.get("kv_ns") == ORDER_TOPIC_CONFIG:
            self._cache.drop_topics((event.get("key"),))

    def _nothing(self, event: Event) -> None:
        """No answer changes."""


RULES: dict[str, Callable[[Invalidation, Event], None]] = {
    "stream_started": Invalidation._started,
    "broker_registered": Invalidation._registered,
    "broker_updated": Invalidation._updated,
    "broker_removed": Invalidation._removed,
    "topics_changed": Invalidation._topics_changed,
    "mappings_changed": Invalidation._mappings_changed,
    "drain_changed": Invalidation._drain_changed,
    "kv_changed": Invalidation._kv_changed,
    "conflict_seen": Invalidation._nothing,
    "checkpoint": Invalidation._nothing,
}
"""Kinds that are not here drop all, `hold_changed` among them; `settings_changed` needs the store."""


def _others(event: Event) -> list[str]:
    """Other names that the member has and that the event is about as well."""
    also = event.get("also")
    return _names(also) if also else []


def _expired_for_good(group: Sequence[Event]) -> set[str]:
    expired: set[str] = set()
    for event in group:
        if event.kind in ("broker_removed", "broker_registered"):
            member = member_key(event.get("cluster"), event.get("addr"))
            if event.kind == "broker_registered":
                expired.discard(member)
            elif event.cause == "expired":
                expired.add(member)
    return expired
