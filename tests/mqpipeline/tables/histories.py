"""Random histories of one incarnation after the other, and a slow fold in plain Python to compare tables with."""

import json
import random
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from tests.mqpipeline.stream import (
    Entry,
    Reported,
    Stream,
    checkpoint,
    checkpointed,
    registered,
    removed,
    started,
    topics,
)

DATA = ("4,4,6,0", "8,8,6,0", "8,8,4,0", "1,1,6,0")
TOPICS = ("T1", "T2", "T3")
ENDS = ("expired", "lost", "unregistered", "closed", "evicted")


class Stay(NamedTuple):
    """A member in its slot: when it registered, and when it came to this slot, in seconds."""

    addr: str
    since: float
    start: float


class Namespace:
    """What a name server would have in its tables, changed at random; each change is recorded on `stream`."""

    def __init__(self, seed: int, inc: float = 0) -> None:
        self.random = random.Random(seed)
        self.now, self.epoch, self.round = inc, 0, 0
        self.brokers: dict[str, dict[int, Stay]] = {name: {} for name in "abc"}
        self.epochs: dict[str, int] = {}
        self.data: dict[tuple[str, str], str] = {}
        self.begin(inc)

    def begin(self, inc: float, cause: str = "empty_store") -> None:
        self.stream = Stream(inc).add(inc, started(cause))

    def live(self, steps: int) -> None:
        """So many changes; a checkpoint round among them now and then."""
        for _ in range(steps):
            self.now = round(self.now + self.random.choice((0, 0.001, 5, 100)), 3)
            act = self.random.choice(
                (self.enter, self.enter, self.leave, self.change, self.change, self.several)
            )
            act()
            if self.random.random() < 0.02:
                self.checkpoint_round()

    def report(self, *group: Reported) -> None:
        self.stream.add(self.now, *group, actor=f"wire:{self.random.randint(1, 9)}")

    def enter(self) -> None:
        """A registration: of a new broker, of another member, of one that takes a slot or changes its own."""
        name = self.random.choice("abc")
        held, addr, id = (
            self.brokers[name],
            f"10.0.0.{self.random.randint(1, 3)}:1",
            self.random.randint(0, 1),
        )
        group: list[Reported] = []
        cause = "join" if held else "first"
        if not held:
            self.epoch += 1
            self.epochs[name] = self.epoch
            self.data = {key: text for key, text in self.data.items() if key[0] != name}
        since = self.now
        for other, stay in list(held.items()):
            if stay.addr == addr:
                revives = other == id
                cause, since = ("revive", since) if revives else ("switch", stay.since)
                group.append(self.gone(name, other, "expired" if revives else "switched"))
        if id in held:
            cause = "takeover"
            group.append(self.gone(name, id, "replaced"))
        held[id] = Stay(addr, since, self.now)
        group.append(registered(cause, name, self.epochs[name], addr=addr, id=id))
        if cause == "first":
            rows = [(name, "", self.store(name, topic), [topic]) for topic in self.random.sample(TOPICS, 2)]
            group.append(topics("register", *rows, epoch=self.epochs[name]))
        self.report(*group)

    def leave(self) -> None:
        name = self.random.choice("abc")
        if self.brokers[name]:
            self.report(
                self.gone(name, self.random.choice(list(self.brokers[name])), self.random.choice(ENDS))
            )

    def gone(self, name: str, id: int, cause: str) -> Reported:
        stay = self.brokers[name].pop(id)
        effective = {"effective": max(stay.start, self.now - 2)} if cause == "expired" else {}
        return removed(cause, name, self.epochs[name], addr=stay.addr, id=id, since=stay.since, **effective)

    def change(self) -> None:
        name = self.random.choice("abc")
        if self.brokers[name]:
            row = self.row(name, self.random.choice(TOPICS))
            if row[1] != row[2]:
                self.report(topics("wipe" if row[2] else "topic_delete", row, epoch=self.epochs[name]))

    def several(self) -> None:
        """One topic on several brokers: their epochs are not recorded."""
        topic = self.random.choice(TOPICS)
        rows = [self.row(name, topic) for name in "abc" if self.brokers[name]]
        rows = [row for row in rows if row[1] != row[2]]
        if rows:
            self.report(topics("topic_register", *rows, topic=topic))

    def row(self, name: str, topic: str) -> tuple[str, str, str, list[str]]:
        before = self.data.get((name, topic), "")
        if before and self.random.random() < 0.3:
            del self.data[name, topic]
            return (name, before, "", [topic])
        return (name, before, self.store(name, topic), [topic])

    def store(self, name: str, topic: str) -> str:
        self.data[name, topic] = self.random.choice(DATA)
        return self.data[name, topic]

    def checkpoint_round(self) -> None:
        """A round, with ordinary changes between its entries."""
        self.round += 1
        name = str(self.round)
        self.report(checkpoint("begin", round=name))
        for broker in "abc":
            held = self.brokers[broker]
            if held:
                reported = {id: (stay.addr, stay.since) for id, stay in held.items()}
                self.report(checkpointed(broker, self.epochs[broker], reported, round=name))
                rows = [
                    (broker, "", text, [topic]) for (of, topic), text in self.data.items() if of == broker
                ]
                self.report(
                    checkpoint("topics", round=name, broker=broker, epoch=self.epochs[broker], rows=rows)
                )
            self.random.choice((self.enter, self.leave, self.change))()
        self.report(checkpoint("end", round=name))


class Interval(NamedTuple):
    """A session or a version: its beginning and end as the tables have them, ms and cause."""

    key: tuple[Any, ...]
    start_ms: int
    end_ms: int | None = None
    end_cause: str | None = None


class Fold:
    """Sessions and route versions of whole histories, entry by entry."""

    def __init__(self) -> None:
        self.open: dict[tuple[Any, ...], Interval] = {}
        self.held: dict[tuple[str, str], tuple[tuple[Any, ...], int]] = {}
        self.epochs: dict[str, int] = {}
        self.sessions: list[Interval] = []
        self.versions: list[Interval] = []

    def over(self, entries: Iterable[Entry]) -> "Fold":
        for entry in entries:
            reported = entry.fields
            match reported["kind"]:
                case "stream_started":
                    self.start_over(entry.ms)
                case "broker_registered":
                    self.enters(entry.ms, reported)
                case "broker_removed":
                    slot = (reported["broker"], int(reported["id"]))
                    stay = self.open.pop(slot)
                    end = int(reported.get("effective_ms", entry.ms))
                    self.sessions.append(stay._replace(end_ms=end, end_cause=reported["cause"]))
                case "topics_changed":
                    for broker, _, after, names in json.loads(reported["rows"]):
                        for topic in names:
                            self.stores(entry.ms, reported["cause"], broker, topic, after)
        return self

    def enters(self, ms: int, reported: Mapping[str, str]) -> None:
        broker, epoch = reported["broker"], int(reported["epoch"])
        if self.epochs.get(broker) != epoch:
            for name, topic in [key for key in self.held if key[0] == broker]:
                self.stores(ms, "epoch", name, topic, "")
            self.epochs[broker] = epoch
        key = (broker, int(reported["id"]), reported["addr"], epoch)
        self.open[key[:2]] = Interval(key, ms)

    def stores(self, ms: int, cause: str, broker: str, topic: str, after: str) -> None:
        if (broker, topic) in self.held:
            key, since = self.held.pop((broker, topic))
            self.versions.append(Interval(key, since, ms, cause))
        if after:
            self.held[broker, topic] = ((topic, broker, self.epochs[broker], after), ms)

    def start_over(self, ms: int) -> None:
        """All that is open ends with a new incarnation."""
        self.sessions += [stay._replace(end_ms=ms, end_cause="incarnation") for stay in self.open.values()]
        self.versions += [Interval(key, since, ms, "incarnation") for key, since in self.held.values()]
        self.open, self.held, self.epochs = {}, {}, {}

    def all_sessions(self) -> list[Interval]:
        return [*self.sessions, *self.open.values()]

    def all_versions(self) -> list[Interval]:
        return [*self.versions, *(Interval(key, since) for key, since in self.held.values())]
