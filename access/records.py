"""What a process has seen of access and the store is to know, written in the background: no request waits for it."""

from collections.abc import Callable, Iterable
from time import monotonic
from typing import Final

from access.denials import Denials
from access.principals import End
from access.rules_in_force import RulesInForce
from access.uses import Uses
from registry import access_denials
from registry.access_changes import report_end, report_rules
from registry.access_denials import DeniedCalls
from registry.access_uses import note_uses
from registry.keys import Keys
from registry.plans import Origin, Plan

__all__ = ["WRITE_EVERY_S", "Records"]

WRITE_EVERY_S: Final = 10.0
"""How often `write` is to be called."""


class Records:
    """Threads may use it together. `clock` is in seconds and never goes back."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self.uses: Final = Uses(clock)
        self.denials: Final = Denials(clock)
        self._rules: RulesInForce | None = None
        self._ends: list[End] = []
        self._known_ends: frozenset[End] = frozenset()

    @property
    def are_pending(self) -> bool:
        """Return whether there is something to write."""
        return bool(self.uses or self.denials or self._ends or self._rules)

    def note_rules(self, rules: RulesInForce) -> None:
        """Note that these are in force from now on."""
        self._rules = rules

    def note_ends(self, ends: Iterable[End]) -> None:
        """Note all that have come to their end of late: what is reported already is not again."""
        now = frozenset(ends)
        self._ends += sorted(now - self._known_ends)
        self._known_ends = now

    def write(self, keys: Keys, origin: Origin) -> Plan[None]:
        """Write what is new; what cannot be written is so the next time. Raises StoreUnavailable, TableFull."""
        yield from self._write_uses(keys, origin)
        yield from self._report_denials(keys, origin)
        yield from self._report_rules(keys, origin)
        yield from self._report_ends(keys, origin)

    def _report_rules(self, keys: Keys, origin: Origin) -> Plan[None]:
        if (rules := self._rules) is not None:
            yield from report_rules(keys, rules.state, rules.fields, origin)
            if self._rules is rules:
                self._rules = None

    def _report_ends(self, keys: Keys, origin: Origin) -> Plan[None]:
        while self._ends:
            end = self._ends[0]
            yield from report_end(keys, end.principal, end.credential, int(end.expires * 1000), origin)
            self._ends = self._ends[1:]

    def _write_uses(self, keys: Keys, origin: Origin) -> Plan[None]:
        taken = self.uses.take()
        try:
            yield from note_uses(keys, self.uses.ages_ms(taken), origin)
        except BaseException:  # cancelled, too
            self.uses.put_back(taken)
            raise

    def _report_denials(self, keys: Keys, origin: Origin) -> Plan[None]:
        taken = self.denials.take()
        calls = [
            DeniedCalls(*denied, refusals.of_class.label, refusals.peer, refusals.times)
            for denied, refusals in taken.items()
        ]
        try:
            waits_ms = yield from access_denials.report(keys, calls, origin)
        except BaseException:
            self.denials.put_back(taken)
            raise
        self.denials.reported(taken, waits_ms)
