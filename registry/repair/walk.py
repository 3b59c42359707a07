"""A walk over all tables: they are compared in slices, and repaired.

Each script compares and repairs its slice at one moment, so a walk is safe beside registrations, removals and other
walks; without damage nothing is written. It comes to every row twice, from both sides: routes are read with what is
stored of their brokers, and a broker that has more topics than the routes show is read topic by topic.
"""

from collections.abc import Iterable

from registry.clock import now_ms
from registry.damage.key_types import types_of_lists
from registry.damage.texts import readable
from registry.keys import Keys
from registry.long_work.scan import members_of
from registry.plans import Origin, Plan
from registry.repair.brokers import compare_brokers
from registry.repair.kv import compare_kv
from registry.repair.rows import RowComparison
from registry.repair.slices import ROWS_PER_S, Slices
from registry.repair.state import Repaired, record, request_needed_round


class Walk:
    """One walk. `timeout_ms` is for members that have lost theirs; `walker` names the process.

    `moved` has the brokers that changed during the last walk, for the next one."""

    def __init__(
        self,
        keys: Keys,
        origin: Origin,
        walker: str,
        *,
        timeout_ms: int,
        moved: Iterable[str] = (),
        rows_per_s: float = ROWS_PER_S,
    ) -> None:
        self._slices = Slices(keys, origin, walker, rows_per_s)
        self._rows = RowComparison(self._slices, frozenset(moved))
        self._timeout_ms = timeout_ms

    @property
    def repaired(self) -> Repaired:
        """What was repaired so far."""
        return self._slices.repaired

    @property
    def claimed(self) -> bool:
        """Whether no other process walks."""
        return self._slices.claimed

    @property
    def wrong_keys(self) -> list[str]:
        """The keys that had another type, and were deleted."""
        return self._slices.wrong_keys

    @property
    def moved(self) -> set[str]:
        """The brokers whose topics changed meanwhile, and could not be compared."""
        return self._rows.moved

    def stop(self) -> None:
        """Have it end soon, and claim nothing any more."""
        self._slices.stop()

    def run(self) -> Plan[Repaired]:
        """Walk once. Raises ClaimLost."""
        slices, keys = self._slices, self._slices.keys
        yield from slices.claim()
        began_ms = yield from now_ms()
        yield from slices.delete_wrong(types_of_lists(keys))
        yield from compare_kv(slices)
        yield from slices.delete_wrong_epoch()
        yield from compare_brokers(slices, self._timeout_ms)
        slices.names = sorted(readable((yield from members_of(keys.brokers))))
        yield from self._rows.run()
        yield from slices.count_rows()
        yield from record(keys, self.repaired, began_ms, counted_keys=len(self.wrong_keys))
        yield from request_needed_round(keys, slices.origin)
        return self.repaired
