"""Comparing rows: routes with what is stored of their brokers, and that with the routes."""

from collections.abc import Collection, Mapping, Sequence
from functools import partial
from typing import Any, Final

import msgspec

from registry.damage.key_types import types_of_brokers, types_of_table, types_of_topics
from registry.long_work.scan import batches_for_scripts
from registry.plans import Plan, ask, call
from registry.repair.slices import NAME, NAMES, TABLE_ROW, TOPIC, Slices
from rocketmq_remoting.typed import converted

TOPICS: Final = 50  # a script, of which it takes as many as it has time for
TABLE_ROWS: Final = 250
URGENT: Final = 5
"""Routes that are gone, or in no list, are looked for so many times faster: clients get no
route, or one with a part of its brokers."""


class Compared(msgspec.Struct, frozen=True, array_like=True):
    """What lua/repair_routes.lua replies; `alike` is [broker name, rows that are the same on both sides, ...].

    `long` are topics with long routes, `unmapped` those with much mapping info."""

    done: int
    cursor: str
    empty: list[str]
    long: list[str]
    unmapped: list[str]
    alike: list[Any]
    repaired: list[int]


class RowComparison:
    """The comparison of all rows, once from each side. `moved_before` are the brokers whose topics changed during the
    last one; `moved` is for the next."""

    def __init__(self, slices: Slices, moved_before: Collection[str]) -> None:
        self.moved: set[str] = set()
        self._slices = slices
        self._moved_before = moved_before
        self._same: dict[str, int] = {}

    def run(self) -> Plan[None]:
        """Compare routes, then brokers that have other topics than the routes showed."""
        before = yield from self._generations()
        yield from self._routes()
        yield from self._tables(before)

    def _generations(self) -> Plan[dict[str, list[Any]]]:
        keys = self._slices.keys
        return (yield from self._slices.of_brokers(lambda name: call("HGET", keys.broker(name), "gen")))

    def _routes(self) -> Plan[None]:
        """Compare all routes. A script has as many as it has time for: what is left of a page goes with the next."""
        keys, cursor, topics = self._slices.keys, "0", list[str]()
        while True:
            cursor, page = yield from self._slices.retried(
                partial(ask, call("SSCAN", keys.topics, cursor, "COUNT", TOPICS)),
                partial(types_of_topics, keys, ()),
            )
            topics += yield from self._slices.readable("topics", keys.topics, page)
            if str(cursor) == "0":
                break
            while len(topics) >= TOPICS:
                topics = topics[(yield from self._compare_some(topics)) :]
        yield from self._compare_all(topics)

    def _compare_all(self, topics: Sequence[str], *, urgent: bool = False) -> Plan[None]:
        while topics:
            topics = topics[(yield from self._compare_some(topics, urgent=urgent)) :]

    def _compare_some(self, topics: Sequence[str], *, urgent: bool = False) -> Plan[int]:
        """Compare the routes of the first topics, one at least; return how many."""
        compared = yield from self._compare(topics[:TOPICS], urgent=urgent)
        for topic in compared.long:
            yield from self._pages(topic, "topics")
        for topic in compared.unmapped:
            yield from self._pages(topic, "mappings")
        yield from self._restore(compared.empty)
        return compared.done

    def _compare(
        self,
        topics: Sequence[str],
        *,
        brokers: Sequence[str] = (),
        drop: int = 0,
        cursor: str = "",
        table: str = "topics",
        urgent: bool = False,
    ) -> Plan[Compared]:
        request = {"brokers": brokers, "drop": drop, "cursor": cursor, "table": table}
        keys = self._slices.keys
        reply = yield from self._slices.retried(
            lambda: self._slices.script("repair_routes", request, topics, (keys.topics,)),
            lambda: types_of_topics(keys, topics),
        )
        compared = converted(reply, Compared)
        rows = 0
        for name, same in zip(compared.alike[::2], compared.alike[1::2], strict=True):
            self._same[name] = self._same.get(name, 0) + same
            rows += same
        compared_rows = max(rows, NAME * len(compared.alike) // 2)
        work = compared_rows + TOPIC * compared.done + len(brokers) * len(compared.empty)
        yield from self._slices.rest(work // URGENT if brokers or urgent else work)
        return compared

    def _pages(self, topic: str, table: str) -> Plan[None]:
        """Compare what many brokers have of a topic, page by page."""
        cursor = "0"
        while True:
            cursor = (yield from self._compare((topic,), cursor=cursor, table=table)).cursor
            if cursor == "0":
                return

    def _restore(self, topics: Sequence[str]) -> Plan[None]:
        """Look for the rows of topics without a route at all brokers; those that none has are taken off the list."""
        if not topics:
            return
        names, step = self._slices.names, max(NAMES // len(topics), 1)
        for start in range(0, max(len(names), 1), step):
            last = start + step >= len(names)
            yield from self._compare(topics, brokers=names[start : start + step], drop=int(last))

    def _tables(self, before: Mapping[str, list[Any]]) -> Plan[None]:
        keys = self._slices.keys
        after = yield from self._generations()
        sizes = yield from self._slices.of_brokers(
            lambda name: call("HLEN", keys.topics_of(name)), lambda name: call("HLEN", keys.mappings_of(name))
        )
        for name, (topics, mappings) in sizes.items():
            differs = topics != self._same.get(name, 0)
            if differs and self._is_certain(name, unchanged=before[name] == after[name]):
                yield from self._table(name, "topics", keys.topics_of(name))
            if mappings:
                yield from self._table(name, "mappings", keys.mappings_of(name))

    def _is_certain(self, name: str, *, unchanged: bool) -> bool:
        """Whether it was no registration that changed the broker's topics meanwhile; where these always come, each
        other time must do."""
        if unchanged or self._slices.repaired.total or name in self._moved_before:
            return True
        self.moved.add(name)
        return False

    def _table(self, name: str, table: str, key: str) -> Plan[None]:
        keys, cursor = self._slices.keys, "0"
        while True:
            cursor, page = yield from self._slices.retried(
                partial(ask, call("HSCAN", key, cursor, "COUNT", TABLE_ROWS)),
                partial(types_of_brokers, keys, (name,)),
            )
            kept = yield from self._slices.readable(table, key, page)
            for batch in batches_for_scripts({topic: page[topic] for topic in kept}, TABLE_ROWS):
                topics = [topic for topic, _ in batch]
                request = {"name": name, "table": table}
                unlisted, _ = yield from self._slices.retried(
                    partial(self._slices.script, "repair_table", request, topics, (keys.topics,)),
                    partial(types_of_table, keys, name, topics),
                )
                yield from self._slices.rest(TABLE_ROW * len(topics) // (URGENT if unlisted else 1))
                yield from self._compare_all(unlisted, urgent=True)
            if str(cursor) == "0":
                return
