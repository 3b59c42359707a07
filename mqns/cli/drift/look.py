"""One look at two name servers: what differs, or which of them cannot be compared."""

from collections.abc import Iterator

import msgspec

from mqns.cli.doctor.collect import CollectOptions, collect
from mqns.cli.doctor.differences import Difference, differences
from mqns.cli.doctor.facts import Facts, NameServerFacts
from mqns.cli.settings import CommandContext

__all__ = ["Look", "Pair", "Unanswered", "compared", "look"]

Pair = tuple[str, str]


class Unanswered(msgspec.Struct, frozen=True):
    """A name server that cannot be compared, and why."""

    name_server: str
    reason: str


class Look(msgspec.Struct, frozen=True):
    """All differences, none where one of the two is `unanswered`; `timed_out`: one of these did not answer in time."""

    differences: tuple[Difference, ...] = ()
    unanswered: tuple[Unanswered, ...] = ()
    timed_out: bool = False


async def look(settings: CommandContext, pair: Pair, namespaces: tuple[str, ...]) -> Look:
    """Ask both for brokers, topics, routes and KV, of these namespaces besides that of order topics."""
    plan = CollectOptions(namespaces, probes=False, timeout_s=settings.timeout_s, only_tables=True)
    async with settings.async_name_server() as server:
        return compared(await collect(server, pair, plan, settings.output))


def compared(facts: Facts) -> Look:
    """Return what differs. What a name server refuses would be taken for absent, so it counts as unanswered."""
    unanswered = tuple(
        Unanswered(server.address, reason)
        for server in facts.name_servers
        if (reason := next(_reasons(server), None)) is not None
    )
    if unanswered:
        return Look((), unanswered, any(server.timed_out for server in facts.name_servers))
    return Look(tuple(differences(facts)))


def _reasons(server: NameServerFacts) -> Iterator[str]:
    """Yield why a name server cannot be compared."""
    if server.failure is not None:
        yield server.failure
    if server.store_away:
        yield f"its store is away: {server.store_away[0]}"
    for what, refusal in server.refusals.items():
        yield f"{what}: refused ({refusal.remark})"
