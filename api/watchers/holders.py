"""The brokers that hold the topics which are watched (`registry.events.watched`)."""

import asyncio
import logging
from collections import Counter
from collections.abc import Mapping, Sequence, Set
from typing import Final

from redis.exceptions import RedisError

from registry.drivers import AsyncDriver
from registry.errors import StoreUnavailable
from registry.events.entry import EventKind
from registry.events.watched import ONLY_TABLES_KNOW, NamedEntry, holders_after
from registry.keys import Keys
from registry.plans import Plan, call
from worker.logs.rate_limited_log import RateLimitedLog

__all__ = ["Holders", "read_holders"]

EVERY_S: Final = 1.0
TOPICS_AT_ONCE: Final = 500
"""Of which the brokers are read together."""

log = RateLimitedLog(logging.getLogger(__name__))


class Holders:
    """By topic, while it is watched; None where they are to be read from the tables, `unknown` says of which."""

    def __init__(self) -> None:
        self._watchers: Counter[str] = Counter()
        self._holders: dict[str, frozenset[str] | None] = {}
        self._joined: dict[str, frozenset[str]] = {}
        """Of unknown topics: brokers that came to hold them since they are watched."""

    def watch(self, topic: str | None) -> None:
        """Note another watcher of a topic, if it watches one."""
        if topic is not None:
            self._watchers[topic] += 1
            self._holders.setdefault(topic, None)

    def unwatch(self, topic: str | None) -> None:
        """Note that a watcher of a topic has gone."""
        if topic is not None:
            self._watchers[topic] -= 1
            if not self._watchers[topic]:
                del self._watchers[topic]
                self._holders.pop(topic, None)
                self._joined.pop(topic, None)

    def unknown(self) -> tuple[str, ...]:
        """Return topics whose brokers are to be read."""
        return tuple(topic for topic, brokers in self._holders.items() if brokers is None)

    def read(self, topic: str, brokers: Set[str]) -> None:
        """Take what the tables have, as of a moment since the topic is watched."""
        if topic in self._holders:
            self._holders[topic] = frozenset(brokers) | self._joined.pop(topic, frozenset())

    def forget(self) -> None:
        """Have all read again: entries were missed."""
        self._holders = dict.fromkeys(self._holders)

    def pass_by(self, entries: Sequence[NamedEntry]) -> Mapping[str, frozenset[str] | None]:
        """Take a group of entries; return which brokers held each topic before the group or do so behind it."""
        around = dict(self._holders)
        for topic in self._touched(entries):
            before = self._holders[topic]
            after = holders_after(before or self._joined.get(topic, frozenset()), topic, entries)
            if before is None:
                self._joined[topic] = after or frozenset()
            else:
                self._holders[topic] = after
                around[topic] = None if after is None else before | after
        return around

    def _touched(self, entries: Sequence[NamedEntry]) -> Set[str]:
        """Return the watched topics whose brokers these entries may change."""
        touched: set[str] = set()
        for entry in entries:
            if entry.names is None or entry.event.kind in ONLY_TABLES_KNOW:
                return self._holders.keys()
            if entry.event.kind == EventKind.BROKER_REGISTERED:
                brokers = entry.names.brokers
                touched |= {topic for topic, held in self._holders.items() if held and brokers & held}
            touched |= entry.names.topics & self._holders.keys()
        return touched


async def read_holders(holders: Holders, driver: AsyncDriver, keys: Keys) -> None:
    """Read which brokers hold topics that are watched, once a second, until cancelled."""
    while True:
        topics = holders.unknown()[:TOPICS_AT_ONCE]
        try:
            brokers = await asyncio.gather(*(driver.run(_brokers_of(keys, topic)) for topic in topics))
            for topic, held in zip(topics, brokers, strict=True):
                holders.read(topic, held)
        except (StoreUnavailable, RedisError) as error:
            log.warning("the brokers of watched topics cannot be read: %s; they are read again", error)
        await asyncio.sleep(EVERY_S)


def _brokers_of(keys: Keys, topic: str) -> Plan[frozenset[str]]:
    return frozenset((yield call("HKEYS", keys.route(topic))))
