"""Ownership of broker names: the owner of a member is its registrant, a principal or the host it was registered from.

With the option ownershipGuard, what takes the place of a living member is for its registrant, and all that brokers ask
about a principal's for that principal (docs/access.md). Scripts judge it (`lua/includes/ownership.lua`)."""

from collections.abc import Callable
from functools import lru_cache, wraps
from threading import Lock
from time import monotonic
from typing import Final, NamedTuple, ParamSpec, TypeVar

import msgspec
from msgspec.structs import replace

from registry.caching.bounded import Bounded
from registry.errors import IdentityConflict, NotOwner
from registry.holder import Holder
from registry.keys import Keys
from registry.options.networks import HOSTS_CACHED, address_of
from registry.plans import Origin, Plan, ScriptCall, as_json

__all__ = [
    *("REFUSE", "UNGUARDED", "Claim", "Claimant", "ReportedRefusals"),
    *("conflicting", "observable", "refused", "registrant_at", "registrant_of"),
]

P = ParamSpec("P")
T = TypeVar("T")

REFUSE: Final = "refuse"
"""Of the option identityConflicts."""
PRINCIPAL: Final = "principal:"
"""As lua/includes/registrant.lua."""
REPORTED_EACH_S: Final = 60.0
REPORTED_BYTES: Final = 1 << 20
COST: Final = 200
"""Bytes that a reported refusal takes beside its texts."""


class Claim(NamedTuple):
    """What a refused request names, as its event has it; the id is "" where it names none."""

    cluster: str
    broker: str
    id: str
    address: str


class ReportedRefusals:
    """The refusals that a process reported within the last minute, by the member that they are about and the registrant
    that claims it: no peer fills the stream with names that it makes up. Of so many that they do not fit, the oldest
    are reported again. Threads may share it. `clock` gives seconds."""

    def __init__(self, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        self._until: Bounded[tuple[str, str, str], float] = Bounded(REPORTED_BYTES, _cost)
        self._lock = Lock()

    def is_new(self, cluster: str, address: str, registrant: str) -> bool:
        """Return whether a refusal about a member is to be reported, and note that it is."""
        now, key = self._clock(), (cluster, address, registrant)
        with self._lock:
            if now < (self._until.get(key) or 0):
                return False
            self._until.put(key, now + REPORTED_EACH_S)
            return True


class Claimant(msgspec.Struct, frozen=True):
    """The caller of a request about a broker, as the owner that it would be.

    `guard` is the option ownershipGuard; with `observes` what it refuses is reported and done. `exclusive`
    is identityConflicts=refuse, which binds owners, too. `claims`: of a
    principal, whether its limits name the broker, so that it may take what a host registered. `home`: the host that it
    comes from, as a registrant, "" where it is that itself. `operates`: ownership does not bind it where operators may
    ask the same (217). `proved`: the very bytes of the request prove the principal, so that its answer may be cached by
    them. `reported` are refusals that need no event."""

    registrant: str
    guard: bool = False
    exclusive: bool = False
    observes: bool = False
    claims: bool = True
    home: str = ""
    operates: bool = False
    proved: bool = False
    reported: ReportedRefusals | None = None

    @property
    def takes(self) -> bool:
        """Return whether it may take what a host registered."""
        return self.claims and self.registrant.startswith(PRINCIPAL)

    @property
    def comes_from(self) -> str:
        """Return the registrant that its host is."""
        return self.home or self.registrant

    def arguments(self) -> dict[str, object]:
        """Return what a script has to know of it: nothing without the guard."""
        if not self.guard:
            return {}
        who = {"registrant": self.registrant, "home": self.comes_from}
        return {"guard": 1, "claims": int(self.takes), **who}


@lru_cache(maxsize=HOSTS_CACHED)
def registrant_at(host: str | None) -> str:
    """Return the registrant that a host is, an IPv6 one in brackets, an IPv4 one also where it is mapped into IPv6; ""
    and None are of a Unix socket."""
    address = address_of(host or "")
    if address is None:
        return f"host:{host or 'unix'}"
    return f"host:{address}" if address.version == 4 else f"host:[{address}]"


def registrant_of(principal: str) -> str:
    """Return the registrant that a principal of this name is."""
    return f"{PRINCIPAL}{principal}"


UNGUARDED: Final = Claimant(registrant_at(None))


def refused(
    keys: Keys, claimant: Claimant, origin: Origin, claim: Claim, holder: tuple[str, str] | Holder
) -> Plan[NotOwner]:
    """Return the error of a request that is for another registrant, and report it as an event once a minute.

    `holder` is the member that it is about, or only (cluster, address) of one that is not in its way."""
    member = (holder.cluster, holder.address) if isinstance(holder, Holder) else holder
    action = "accepted" if claimant.observes else "refused"
    yield from _report(keys, claimant, origin, claim, member, "ownership", action)
    return NotOwner(claim.broker, origin.actor, holder if isinstance(holder, Holder) else None)


def conflicting(
    keys: Keys, claimant: Claimant, origin: Origin, claim: Claim, cause: str, holder: Holder
) -> Plan[IdentityConflict]:
    """Return the error of a registration that takes what another living member has, and report it as an event once a
    minute. The cause is `two_addresses` (of an id) or `two_clusters` (of a name)."""
    yield from _report(keys, claimant, origin, claim, (holder.cluster, holder.address), cause, "refused")
    return IdentityConflict(claim.broker, claim.id, claim.cluster, cause, holder)


def _report(
    keys: Keys,
    claimant: Claimant,
    origin: Origin,
    claim: Claim,
    holder: tuple[str, str],
    cause: str,
    action: str,
) -> Plan[None]:
    cluster, address = holder
    if claimant.reported is not None and claimant.reported.is_new(cluster, address, claimant.registrant):
        named = claim._asdict() | {"holder": {"addr": address, "cluster": cluster}}
        request = {"origin": origin, "cause": cause, "action": action, **named}
        yield ScriptCall("report_refusal", (keys.events_meta,), (as_json(request),))


def observable(plan: Callable[P, Plan[T]]) -> Callable[P, Plan[T]]:
    """Have an operation with the keyword `claimant` done again without the guard, where that refuses and observes."""

    @wraps(plan)
    def once_or_twice(*args: P.args, **kwargs: P.kwargs) -> Plan[T]:
        claimant = kwargs.get("claimant")
        observes = isinstance(claimant, Claimant) and claimant.guard and claimant.observes
        return twice(*args, **kwargs) if observes else plan(*args, **kwargs)

    def twice(*args: P.args, **kwargs: P.kwargs) -> Plan[T]:
        try:
            return (yield from plan(*args, **kwargs))
        except NotOwner:
            claimant = kwargs["claimant"]
        assert isinstance(claimant, Claimant)
        kwargs["claimant"] = replace(claimant, guard=False)
        return (yield from plan(*args, **kwargs))

    return once_or_twice


def _cost(key: tuple[str, str, str], _: float) -> int:
    return COST + sum(map(len, key))
