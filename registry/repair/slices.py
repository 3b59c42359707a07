"""What all slices of a walk share: how a script is called, what it repaired, and how long to wait behind it."""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial
from math import inf
from time import monotonic
from typing import Any, Final, TypeVar

from redis.exceptions import ResponseError

from registry.damage.key_types import Types, delete_wrong, is_wrong_type, types_of_brokers
from registry.damage.texts import readable, spellings
from registry.keys import Keys
from registry.plans import Batch, Call, Origin, Pause, Plan, ScriptCall, as_json, ask, call
from registry.repair.state import Repaired, claim, note_progress

T = TypeVar("T")
ROWS_PER_S: Final = 6_000
"""A row of a route costs the store 1.1 us, or 1.4 where its core does other work between: 10,000 topics of 30
brokers take 55 s, and 0.6 to 0.9 % of its time."""
TABLE_ROW, TOPIC, NAME, MEMBER, BROKER = 2, 2, 7, 70, 110
"""What each costs, in rows of a route. NAME is the least of a broker name in routes, however few rows have it: a row,
and what lua/repair_routes.lua counts beside it."""
NAMES: Final = 250  # broker names a batch
TOGETHER: Final = 4000
"""Rows of slices that follow each other without a pause: what the first brings into the processor's caches serves
the others. With a pause behind each, a row took 2.2 us."""
RENEW_AFTER_S: Final = 10.0
EPOCH: Final = re.compile(r"[1-9][0-9]{0,13}", re.ASCII)
"""As lua/includes/sound.lua has it."""
REMOVALS: Final = {"set": "SREM", "zset": "ZREM", "hash": "HDEL", "none": "SREM"}


class ClaimLost(Exception):
    """Another process has the claim of the walk."""


class Slices:
    """The slices of one walk. `names` are the brokers, once they are known; `wrong_keys` had another type."""

    def __init__(self, keys: Keys, origin: Origin, walker: str, rows_per_s: float) -> None:
        self.keys = keys
        self.origin = origin
        self.repaired = Repaired()
        self.wrong_keys: list[str] = []
        self.names: Sequence[str] = ()
        self._walker = walker
        self._rows_per_s = rows_per_s
        self._claimed_at = 0.0
        self._stopped = False
        self._work = 0

    @property
    def claimed(self) -> bool:
        """Whether this walk has the claim, or had it last."""
        return self._claimed_at > 0

    def script(
        self, name: str, request: Mapping[str, object], args: Sequence[str] = (), also: tuple[str, ...] = ()
    ) -> Plan[list[Any]]:
        """Call a script that repairs; its last reply is how many rows. `also` are its keys behind the first."""
        reply: list[Any] = yield self._call(name, request, args, also)
        self.repaired += Repaired(*reply[-1])
        return reply

    def scripts(self, name: str, requests: Iterable[Mapping[str, object]]) -> Plan[list[list[Any]]]:
        """Call a script with each request, all at once."""
        replies: list[list[Any]] = yield Batch(tuple(self._call(name, request) for request in requests))
        for reply in replies:
            self.repaired += Repaired(*reply[-1])
        return replies

    def _call(
        self, name: str, request: Mapping[str, object], args: Sequence[str] = (), also: tuple[str, ...] = ()
    ) -> ScriptCall:
        body = as_json({"origin": self.origin, **request})
        return ScriptCall(name, (self.keys.events_meta, *also), (body, *args))

    def retried(self, plan: Callable[[], Plan[T]], types: Callable[[], Types]) -> Plan[T]:
        """Run a plan; if it meets a key of another type than in `types`, delete such keys and run it again."""
        try:
            return (yield from plan())
        except ResponseError as error:
            if not is_wrong_type(error):
                raise
        yield from self.delete_wrong(types())
        return (yield from plan())

    def readable(self, table: str, key: str, names: Collection[str]) -> Plan[list[str]]:
        """Return the names that are text; the others are removed from the key, as rows of `table`."""
        kept = readable(names)
        for name in set(names).difference(kept):
            removal = REMOVALS[(yield call("TYPE", key))]
            yield call(removal, key, *spellings(name))
            self.repaired += Repaired(**{table: 1})
        return kept

    def delete_wrong(self, types: Types) -> Plan[None]:
        """Delete the keys that have another type."""
        deleted = yield from delete_wrong(self.keys, types, self.origin)
        self.wrong_keys += deleted
        self.repaired += Repaired(keys=len(deleted))

    def delete_wrong_epoch(self) -> Plan[None]:
        """Delete a last epoch that is no number, or too long to count on; the repair of a broker makes one."""
        epoch = yield call("GET", self.keys.epoch)
        if epoch is not None and not EPOCH.fullmatch(epoch):
            yield call("DEL", self.keys.epoch)
            self.repaired += Repaired(keys=1)

    def stop(self) -> None:
        """Have the walk end at its next rest or claim, by ClaimLost."""
        self._stopped = True

    def claim(self) -> Plan[None]:
        """Claim the walk, or renew the claim. Raises ClaimLost."""
        self._go_on()
        self._claimed_at = monotonic()
        if not (yield from claim(self.keys, self._walker, self.origin)):
            raise ClaimLost

    def rest(self, rows: int) -> Plan[None]:
        """Wait for as long as the rows since the last pause may take, once they are enough; now and then renew the
        claim and look for lost rows. Raises ClaimLost.

        The clock counts, not the pauses: a store may be slow, and this process may have stood still."""
        self._go_on()
        if self._rows_per_s == inf:
            return
        self._work += rows
        if self._work >= TOGETHER:
            work, self._work = self._work, 0
            yield Pause(work / self._rows_per_s)
        if monotonic() - self._claimed_at > RENEW_AFTER_S:
            yield from self.claim()
            yield from note_progress(self.keys)
            yield from self.count_rows()

    def _go_on(self) -> None:
        if self._stopped:
            raise ClaimLost

    def of_brokers(self, *questions: Callable[[str], Call]) -> Plan[dict[str, list[Any]]]:
        """Return the replies about each broker."""
        replies: dict[str, list[Any]] = {}
        for start in range(0, len(self.names), NAMES):
            part = self.names[start : start + NAMES]
            calls = Batch(tuple(question(name) for name in part for question in questions))
            flat = yield from self.retried(partial(ask, calls), partial(types_of_brokers, self.keys, part))
            for i, name in enumerate(part):
                replies[name] = flat[i * len(questions) : (i + 1) * len(questions)]
        return replies

    def count_rows(self) -> Plan[None]:
        """Compare how many topics brokers have with how many they should have."""
        keys = self.keys
        counts = yield from self.of_brokers(
            lambda name: call("HMGET", keys.broker(name), "epoch", "topics", "mappings"),
            lambda name: call("HLEN", keys.topics_of(name)),
            lambda name: call("HLEN", keys.mappings_of(name)),
        )
        for name, ((epoch, *noted), *stored) in counts.items():
            if epoch is not None and noted != [str(rows) for rows in stored]:
                yield from self.script("repair_count", {"name": name}, also=(keys.broker(name),))
