"""Invalidation: which cached replies an event makes untrue, a function for each kind."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Final, TypeAlias

import msgspec

from registry.events.entry import VERSION, Event, EventKind
from registry.keys import ORDER_TOPIC_CONFIG, member_key
from registry.registration.renewals import Renewals
from worker.cache.before_loss import BeforeLoss
from worker.cache.lists import ListCache, Made
from worker.cache.routes import RouteCache
from worker.counters import Counters
from worker.watch.follower import ResetCause

RETURN_WITHIN_S = 30.0  # one period of brokers that register by default
CHECKPOINTS: Final = frozenset({EventKind.CHECKPOINT})
"""The kinds of a group that changes nothing."""
NEED_THE_STORE: Final = frozenset(
    {
        *(EventKind.SETTINGS_CHANGED, EventKind.ACCESS_CHANGED),
        *(EventKind.TABLES_REPAIRED, EventKind.STREAM_STARTED),
    }
)
"""Kinds after which settings or rights may have to be read again."""
ANOTHER_STORE: Final = frozenset({"rollback", "incarnation"})
"""Causes of resets: the store is as it was earlier, a snapshot or a replica that was behind, or is another one."""

Listed: TypeAlias = Mapping[str, frozenset[int]]
"""Broker names with the ids of their living members."""
_addresses = msgspec.json.Decoder(dict[int, str]).decode
_names = msgspec.json.Decoder(list[str]).decode
_topic_rows = msgspec.json.Decoder(list[tuple[str, str, str, list[str]]]).decode
_mapping_rows = msgspec.json.Decoder(list[tuple[str, str, msgspec.Raw, msgspec.Raw]]).decode


class Invalidation:
    """A follower's listener that keeps cached routes and lists true, and invalidates renewals at every change.

    `reload` reads the shared settings again, `reread_access` what is revoked (True: the store has lost writes), and
    `present` which brokers the store has, or they raise StoreUnavailable; `expired` gets each member key whose lapse
    was recorded, unless the same script registered it again; `leased` each timeout (ms) that a lease got."""

    def __init__(
        self,
        cache: RouteCache,
        lists: ListCache,
        before_loss: BeforeLoss,
        renewals: Renewals,
        counters: Counters,
        reload: Callable[[], Awaitable[None]],
        reread_access: Callable[[bool], Awaitable[None]],
        present: Callable[[], Awaitable[Listed]],
        expired: Callable[[str], None],
        leased: Callable[[int], None],
    ) -> None:
        self._cache = cache
        self._lists = lists
        self._before_loss = before_loss
        self._renewals = renewals
        self._counters = counters
        self._reload = reload
        self._reread_access = reread_access
        self._present = present
        self._expired = expired
        self._leased = leased
        self._deadline: asyncio.TimerHandle | None = None
        self._incomplete: dict[str, frozenset[int]] = {}
        self._is_empty = False

    async def apply(self, group: Sequence[Event]) -> None:
        """Drop the cached replies that these entries make untrue."""
        kinds = {event.kind for event in group}
        if kinds == CHECKPOINTS:
            return  # these come in great numbers, and change nothing
        self._renewals.invalidate()
        for event in group:
            if event.kind in NEED_THE_STORE:
                await self._apply_and_ask(event)
            else:
                self._counters.cache_drops.add("event")
                self._apply(event)
            if timeout_ms := event.get("timeout_ms"):
                self._leased(int(timeout_ms))
        if EventKind.BROKER_REMOVED in kinds:
            for member in _expired_for_good(group):
                self._expired(member)
        self._counters.applied(group[-1].id.ms)
        self._is_empty = False

    async def _apply_and_ask(self, event: Event) -> None:
        """Drop what an entry makes untrue that says only in part what is otherwise; the store is asked for the rest."""
        if _changes_options(event):
            self._counters.cache_drops.add("settings")
            await self._read_settings_again()
        elif event.kind != EventKind.ACCESS_CHANGED:
            self._counters.cache_drops.add("event")
            self._apply(event)
        if event.kind == EventKind.ACCESS_CHANGED or _is_of_keys(event):
            await self._reread_access(False)
        if _is_of_empty_store(event):
            await self._reread_access(True)

    def emptied(self) -> None:
        """Complete replies with the brokers of a store that came back without them, until they are back, or should be.

        Called again before anything was applied, what is cached is the new store's, and no broker of it is awaited."""
        self._renewals.invalidate()
        if not self._is_empty:
            self._before_loss.begin(self._cache.last_replies())
        self._is_empty = True
        self._incomplete.clear()
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(RETURN_WITHIN_S, self._end_completion)

    async def reset(self, cause: ResetCause) -> None:
        """Drop all replies: something was missed, and anything may have changed.

        Brokers that another store does not have are waited for as those of an empty one."""
        self._renewals.invalidate()
        if cause != "start":
            self._counters.resets += 1
            self._counters.cache_drops.add(cause)
        if cause in ANOTHER_STORE:
            self.emptied()
        await self._read_settings_again()
        await self._reread_access(cause in ANOTHER_STORE)
        if cause in ANOTHER_STORE:
            for name, ids in (await self._present()).items():
                self._returned(name, ids)

    async def _read_settings_again(self) -> None:
        self._drop_all()
        await self._reload()
        self._drop_all()  # also what was made by the old settings meanwhile

    def _apply(self, event: Event) -> None:
        rule = RULES.get(event.kind) if event.get("v") == VERSION else None
        if rule is None:
            self._drop_all()
        else:
            rule(self, event)

    def _drop_all(self) -> None:
        self._cache.drop_all()
        self._lists.drop_all()

    def _started(self, event: Event) -> None:
        """Drop all; only an empty store has lost its tables, not every new stream."""
        if _is_of_empty_store(event):
            self.emptied()
        self._drop_all()

    def _end_completion(self) -> None:
        self._cache.drop_brokers(self._before_loss.end())

    def _returned(self, name: str, ids: frozenset[int] | None) -> None:
        if self._before_loss.returned(name, ids):
            self._cache.drop_brokers((name,))

    def _registered(self, event: Event) -> None:
        name = event.get("broker")
        self._cache.drop_brokers((name, *_others(event)))
        self._lists.changed(Made.BROKERS, Made.TOPICS)
        self._incomplete[name] = frozenset(_addresses(event.get("addrs")))
        self._complete(event)

    def _complete(self, event: Event) -> None:
        """A registration is whole with the entry that carries its data version: that of a big table is the last."""
        ids = self._incomplete.pop(event.get("broker"), None) if event.get("dv") else None
        if ids is not None:
            self._returned(event.get("broker"), ids)

    def _removed(self, event: Event) -> None:
        self._cache.drop_brokers((event.get("broker"),))
        self._lists.changed(Made.BROKERS, Made.TOPICS)
        self._returned(event.get("broker"), None)

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
        self._lists.changed(Made.TOPICS)
        self._complete(event)

    def _mappings_changed(self, event: Event) -> None:
        for name, topic, _, _ in _mapping_rows(event.get("rows")):
            self._cache.drop_topics((topic,), name)
        self._complete(event)

    def _kv_changed(self, event: Event) -> None:
        if event.get("kv_ns") == ORDER_TOPIC_CONFIG:
            self._cache.drop_topics((event.get("key"),))
        self._lists.changed(Made.KV)

    def _repaired(self, event: Event) -> None:
        brokers, topics = _names(event.get("brokers")), event.get("topics")
        if not topics:
            self._cache.drop_brokers(brokers)
        for name in brokers if topics else ():
            self._cache.drop_topics(_names(topics), name)
        self._lists.changed(Made.BROKERS, Made.TOPICS)

    def _nothing(self, event: Event) -> None:
        """Change no reply."""


RULES: dict[str, Callable[[Invalidation, Event], None]] = {
    EventKind.STREAM_STARTED: Invalidation._started,
    EventKind.BROKER_REGISTERED: Invalidation._registered,
    EventKind.BROKER_UPDATED: Invalidation._updated,
    EventKind.BROKER_REMOVED: Invalidation._removed,
    EventKind.TOPICS_CHANGED: Invalidation._topics_changed,
    EventKind.MAPPINGS_CHANGED: Invalidation._mappings_changed,
    EventKind.DRAIN_CHANGED: Invalidation._drain_changed,
    EventKind.KV_CHANGED: Invalidation._kv_changed,
    EventKind.CONFLICT_SEEN: Invalidation._nothing,
    EventKind.ACCESS_DENIED: Invalidation._nothing,
    EventKind.TABLES_REPAIRED: Invalidation._repaired,
    EventKind.DRIFT_CHANGED: Invalidation._nothing,
    EventKind.CHECKPOINT: Invalidation._nothing,
}
"""Kinds that are not here drop all, `hold_changed` among them; `settings_changed` and `access_changed` need the
store."""


def _changes_options(event: Event) -> bool:
    """Whether settings changed, or keys of a wrong type were deleted: settings or drains may be gone."""
    return event.kind == EventKind.SETTINGS_CHANGED or _is_of_keys(event)


def _is_of_keys(event: Event) -> bool:
    """Return whether keys of a wrong type were deleted, of settings or revocations maybe."""
    return event.kind == EventKind.TABLES_REPAIRED and event.cause == "keys"


def _is_of_empty_store(event: Event) -> bool:
    return event.kind == EventKind.STREAM_STARTED and event.cause == "empty_store"


def _others(event: Event) -> list[str]:
    """Return the member's other broker names that the event is about as well."""
    also = event.get("also")
    return _names(also) if also else []


def _expired_for_good(group: Sequence[Event]) -> set[str]:
    expired: set[str] = set()
    for event in group:
        if event.kind in (EventKind.BROKER_REMOVED, EventKind.BROKER_REGISTERED):
            member = member_key(event.get("cluster"), event.get("addr"))
            if event.kind == EventKind.BROKER_REGISTERED:
                expired.discard(member)
            elif event.cause == "expired":
                expired.add(member)
    return expired
