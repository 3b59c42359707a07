"""Routes at an instant, as the name server answered them (105)."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqpipeline.history.members import GROUP, groups, with_group_at
from mqpipeline.history.tables import Tables, during

PERM_WRITE = 2
SYNC_MEMBER_TOPIC = "rmq_sys_SYNC_BROKER_MEMBER_"
"""Topics of brokers for one another: never answered with an acting master."""
SHOWN = ("cluster", "read_queues", "write_queues", "perm", "sys_flag", "addrs", "acting", "zone")
"""What an answer shows of a topic on a broker. `perm` is without the write bit while the broker is drained; `addrs`
maps broker id to address; `acting` is enableActingMaster."""
QUEUES = ("read_queues", "write_queues", "perm", "sys_flag")


def route_at(
    tables: Tables, topic: str, at_ms: int, *, as_recorded: bool = False, acting_master: bool = False
) -> DataFrame:
    """The rows of one topic; see `routes_at`."""
    return routes_at(tables.of_topic(topic), at_ms, as_recorded=as_recorded, acting_master=acting_master)


def routes_at(
    tables: Tables, at_ms: int, *, as_recorded: bool = False, acting_master: bool = False
) -> DataFrame:
    """-> namespace, topic, broker, SHOWN, epoch, stored_perm, drain: all routes then, a row for each broker of each.

    `as_recorded`: members whose lease ended stay until that was written, not only until it ended. `acting_master`: as
    with the setting supportActingMaster, which no table has."""
    living = with_group_at(groups(tables, at_ms, at_ms, as_recorded=as_recorded), at_ms, "group")
    versions = during(tables.routes, at_ms, at_ms).select(*GROUP, "topic", *QUEUES)
    routes = versions.join(F.broadcast(living.select(*GROUP, "group")), GROUP)
    row = shown("group", acting_master=acting_master)
    return routes.selectExpr(
        "namespace", "topic", "broker", f"{row} as shown", "epoch", "perm as stored_perm", "group.drain"
    ).select("namespace", "topic", "broker", "shown.*", "epoch", "stored_perm", "drain")


def shown(group: str, *, acting_master: bool) -> str:
    """SQL of a struct<SHOWN>: a route version, its group as column `group` has it (see `with_group_at`).

    With `acting_master` the smallest id is listed as 0, while the group has no master and is not writable."""
    perm = f"if({group}.drain is null, perm, perm & ~{PERM_WRITE})"
    addrs = f"{group}.addrs"
    if acting_master:
        addrs = f"""if(
            {group}.acting and not map_contains_key({addrs}, 0L) and {perm} & {PERM_WRITE} = 0
                and not startswith(topic, '{SYNC_MEMBER_TOPIC}'),
            transform_keys({addrs}, (i, _) -> if(i = array_min(map_keys({addrs})), 0L, i)),
            {addrs})"""
    values = {
        "cluster": f"{group}.cluster",
        "perm": perm,
        "addrs": addrs,
        "acting": f"{group}.acting",
        "zone": f"{group}.zone",
    }
    return f"struct({', '.join(f'{values.get(name, name)} as {name}' for name in SHOWN)})"
