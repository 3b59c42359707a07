"""A name server in miniature: a random history as the tables tell it, and what was answered meanwhile."""

import random
from typing import Any, NamedTuple

from tests.mqpipeline.history.example import attributes, session, version
from tests.mqpipeline.rows import Literal

TOPICS = ("T1", "T2", "T3", "rmq_sys_SYNC_BROKER_MEMBER_x")
BROKERS = ("a", "b", "c")
QUEUES = ("8,8,6,0", "4,4,6,0", "4,4,4,0", "8,8,2,1")
LEASE_MS = 300
Answers = dict[tuple[str, str], dict[str, Any]]
"""(topic, broker) -> what 105 shows of it."""


class Member(NamedTuple):
    row: dict[str, Any]
    lease_ms: int


class Simulation:
    """After `run`, the rows of the three tables, and `answered`: instant -> Answers, acting masters allowed."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.now, self.n, self.epochs = 1_000_000, 0, 0
        self.sessions: list[Literal] = []
        self.brokers: list[Literal] = []
        self.versions: list[Literal] = []
        self.answered: dict[int, Answers] = {}
        self._members: dict[str, dict[int, Member]] = {name: {} for name in BROKERS}
        self._held: dict[str, dict[str, Any]] = {}
        self._stored: dict[tuple[str, str], dict[str, Any]] = {}

    def run(self, steps: int) -> "Simulation":
        for _ in range(steps):
            for _ in range(self.random.choice((1, 1, 2))):
                self._act(self.random.choice(BROKERS))
            until = self.now + self.random.randint(1, 90)
            ends = [one.lease_ms for found in self._members.values() for one in found.values()]
            instants = {self.now, until - 1, *ends, *(end - 1 for end in ends)}
            for instant in instants:
                if self.now <= instant < until:
                    self.answered[instant] = self._answers(instant)
            self.now, self.n = until, 0
        for members in self._members.values():
            self.sessions += [one.row for one in members.values()]
        self.brokers += self._held.values()
        self.versions += self._stored.values()
        return self

    def _act(self, name: str) -> None:
        act = self.random.choice(
            (
                self._register,
                self._register,
                self._heartbeat,
                self._set,
                self._set,
                self._leave,
                self._drain,
                self._lapse,
            )
        )
        act(name)

    def _id(self) -> tuple[int, int]:
        self.n += 1
        return self.now, self.n

    def _lapse(self, name: str) -> None:
        """What the job does, sooner or later."""
        for number, one in sorted(self._members[name].items()):
            if one.lease_ms <= self.now:
                self._remove(name, number, "expired", one.lease_ms)

    def _remove(self, name: str, number: int, cause: str, end_ms: int) -> None:
        one = self._members[name].pop(number)
        end = {
            "end_ms": end_ms,
            "end_id": self._id(),
            "recorded_ms": self.now,
            "end_cause": cause,
            "open": False,
        }
        self.sessions.append({**one.row, **end})

    def _register(self, name: str) -> None:
        self._lapse(name)
        members, number = self._members[name], self.random.choice((0, 1, 2))
        first = not members
        if number in members:
            self._remove(name, number, "replaced", self.now)
        if first:
            self.epochs += 1
        epoch = self._held[name]["epoch"] if not first else self.epochs
        row = dict(session(name, epoch, 0)) | {
            "broker_id": number,
            "addr": f"10.0.0.{self.random.randint(1, 99)}:10911",
            "start_ms": self.now,
            "start_id": self._id(),
        }
        members[number] = Member(row, self.now + LEASE_MS)
        drain = self._held.get(name, {}).get("drain")
        self._hold(
            name, epoch, acting=self.random.random() < 0.7, zone=self.random.choice((None, "z")), drain=drain
        )
        if first:
            for topic, broker in list(self._stored):
                if broker == name:
                    self._store(topic, name, None, "epoch")
            for topic in self.random.sample(TOPICS, 3):
                self._store(topic, name, self.random.choice(QUEUES), "register")

    def _hold(self, name: str, epoch: int, **values: Any) -> None:
        new = dict(attributes(name, epoch, 0)) | values | {"from_ms": self.now, "from_id": self._id()}
        old = self._held.get(name)
        if old is not None:
            same = all(old.get(key) == new[key] for key in ("epoch", "acting", "zone", "drain"))
            if same:
                return
            self.brokers.append(old | {"to_ms": self.now})
        self._held[name] = new

    def _heartbeat(self, name: str) -> None:
        for number, one in self._members[name].items():
            if one.lease_ms > self.now:
                self._members[name][number] = one._replace(lease_ms=self.now + LEASE_MS)

    def _set(self, name: str) -> None:
        self._lapse(name)
        if self._members[name]:
            queues = self.random.choice((None, *QUEUES))
            self._store(
                self.random.choice(TOPICS), name, queues, "topic_delete" if queues is None else "wipe"
            )

    def _store(self, topic: str, name: str, queues: str | None, cause: str) -> None:
        old = self._stored.pop((topic, name), None)
        at, actor = self._id(), f"token:{self.random.randint(1, 9)}"
        if old is not None:
            self.versions.append(old | {"to_ms": self.now, "to_id": at, "to_cause": cause, "to_actor": actor})
        if queues is not None:
            new = version(topic, name, self._held[name]["epoch"], 0, queues)
            self._stored[topic, name] = dict(new) | {
                "from_ms": self.now,
                "from_id": at,
                "from_cause": cause,
                "from_actor": actor,
                "from_op": f"op{at}",
            }

    def _leave(self, name: str) -> None:
        self._lapse(name)
        for number in list(self._members[name])[:1]:
            self._remove(name, number, "unregistered", self.now)

    def _drain(self, name: str) -> None:
        self._lapse(name)
        if self._members[name]:
            held = self._held[name]
            until = self.random.choice((None, self.now + 40))
            drain = None if held.get("drain") else ("alice", "why", until)
            self._hold(name, held["epoch"], acting=held["acting"], zone=held["zone"], drain=drain)

    def _answers(self, instant: int) -> Answers:
        found: Answers = {}
        for (topic, name), row in self._stored.items():
            alive = {n: one for n, one in sorted(self._members[name].items()) if one.lease_ms > instant}
            held = self._held[name]
            if not alive or row["epoch"] != held["epoch"]:
                continue
            drain = held.get("drain")
            perm = row["perm"] & ~2 if drain and (drain[2] is None or drain[2] > instant) else row["perm"]
            addrs = {n: one.row["addr"] for n, one in alive.items()}
            acts = held["acting"] and 0 not in addrs and not perm & 2 and not topic.startswith("rmq_sys_")
            if acts:
                addrs[0] = addrs.pop(min(addrs))
            found[topic, name] = {
                "cluster": "c1",
                "read_queues": row["read_queues"],
                "write_queues": row["write_queues"],
                "perm": perm,
                "sys_flag": row["sys_flag"],
                "addrs": addrs,
                "acting": held["acting"],
                "zone": held["zone"],
            }
        return found
