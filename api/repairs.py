"""Repairs of damaged tables: how many there were, and when all tables were compared last."""

from apiflask import APIBlueprint

from api.name_server import name_server
from api.shapes import Answer
from registry.repair.state import state
from registry.store.check import evicting_policy

bp = APIBlueprint("repairs", __name__, url_prefix="/v1/repairs")


class RepairedRows(Answer):
    """Rows that were repaired so far: of brokers, of members and their leases, of routes, of static topics; and keys
    of a wrong type that were deleted."""

    brokers: int
    members: int
    topics: int
    mappings: int
    keys: int


class Repairs(Answer):
    """Times are Unix ms of the Redis clock: the last repair, the end of the last walk over all tables, and when a walk
    last noted that it goes on; and how many ms the last one took. Null before the first. `evictingPolicy` is the
    `maxmemory-policy` by which Redis evicts keys when memory is short, null if it evicts none."""

    repaired_rows: RepairedRows
    repaired_millis: int | None
    walked_millis: int | None
    walk_took_millis: int | None
    walking_millis: int | None
    evicting_policy: str | None


@bp.get("")
@bp.output(Repairs)
@bp.doc(operation_id="getRepairs")
def repairs() -> Repairs:
    """Repairs of damaged tables

    Schedulers compare all tables with one another, one walk after the other, and repair what does not agree. Rows are
    counted since the store was empty; any other number than 0 says that another program, or a person, changed its
    keys."""
    server = name_server()
    found = server.run(state(server.keys))
    rows = found.repaired
    return Repairs(
        repaired_rows=RepairedRows(
            brokers=rows.brokers,
            members=rows.members,
            topics=rows.topics,
            mappings=rows.mappings,
            keys=rows.keys,
        ),
        repaired_millis=found.repaired_ms,
        walked_millis=found.walked_ms,
        walk_took_millis=found.walk_took_ms,
        walking_millis=found.walking_ms,
        evicting_policy=server.run(evicting_policy()),
    )
