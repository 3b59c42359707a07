"""The conditions of the rules in `deviations`: kinds of requests, and their effects on Java's tables."""

from collections.abc import Callable

from rocketmq_remoting.codes import RequestCode
from tests.differential.bodies import UNANNOUNCED, WITHOUT_STATIC
from tests.differential.exchange import BROKEN, CUT, Exchange
from tests.differential.world import Member, Registration

Condition = Callable[[Exchange], bool]
REQUIRED = ("brokerName", "brokerAddr", "clusterName")
OF_MEMBERS = (RequestCode.REGISTER_BROKER, RequestCode.UNREGISTER_BROKER, RequestCode.QUERY_DATA_VERSION)


def asks(*codes: int) -> Condition:
    return lambda e: e.ask.code in codes


def holds(text: str) -> Condition:
    """Return the condition that the body, before it is packed, has this text."""
    return lambda e: text in e.ask.body


def of_frame(name: str) -> Condition:
    return lambda e: e.ask.code == BROKEN and e.ask.get("frame") == name


def with_codes(*allowed: tuple[int | None, int]) -> Condition:
    """Return the condition that Java's and this server's code are such a pair, or the request is oneway."""
    return lambda e: (e.java.code, e.ours.code) in allowed or e.ask.oneway


def all_of(*conditions: Condition) -> Condition:
    return lambda e: all(condition(e) for condition in conditions)


def any_of(*conditions: Condition) -> Condition:
    return lambda e: any(condition(e) for condition in conditions)


def registers(holds: Callable[[Exchange, Registration], bool]) -> Condition:
    """Return the condition of a readable registration for which this holds."""

    def applies(e: Exchange) -> bool:
        says = e.ask.says if e.ask.code == RequestCode.REGISTER_BROKER else None
        return says is not None and holds(e, says)

    return applies


def member_of(e: Exchange) -> Member:
    return e.ask.get("clusterName") or "", e.ask.get("brokerAddr") or ""


# -- registrations


def lacks_required(e: Exchange) -> bool:
    return any(e.ask.get(field) is None for field in REQUIRED)


def without_topic_names(e: Exchange) -> bool:
    return '"topicSysFlag"' in e.ask.body and '"topicName"' not in e.ask.body


def zlib_unannounced(e: Exchange) -> bool:
    is_zlib = e.ask.packing.startswith("zlib")
    return e.ask.packing == UNANNOUNCED or (is_zlib and (e.ask.get("compressed") or "").lower() != "true")


def zlib_without_static_part(e: Exchange) -> bool:
    return e.ask.packing == WITHOUT_STATIC and e.ask.version >= 413


def holder(e: Exchange, says: Registration) -> str | None:
    group = e.before.group(says.name)
    return group.addrs.get(says.id) if group else None


def single_newcomer(e: Exchange, says: Registration) -> bool:
    return len(says.topics) == 1 and holder(e, says) is None


def lower_state(e: Exchange, says: Registration) -> bool:
    """A newcomer whose state version is lower than the holder's."""
    place = holder(e, says)
    live = e.before.live.get((says.cluster, place or ""))
    return place not in (None, says.addr) and live is not None and _state(live.says) > _state(says)


def _state(says: Registration) -> int:
    """Java's DataVersion without a timestamp in the body has none of the other numbers either."""
    return says.version[0] if says.version is not None else 0


def leaves_a_trace(e: Exchange, says: Registration) -> bool:
    """Return whether Java has changed the group before it refuses this."""
    group = e.before.group(says.name)
    if group is None or says.cluster not in e.before.clusters_of(says.name):
        return True
    same = (group.acting, group.zone) == (says.acting is True, says.zone)
    return not same or says.addr in group.addrs.values() or (says.cluster, says.addr) in e.before.live


def adds_topics(e: Exchange, says: Registration) -> bool:
    """Topics that are new to the group come under a data version that is not."""
    live = e.before.live.get((says.cluster, says.addr))
    if live is None or live.says.version is None or live.says.version != says.version:
        return False
    return any(says.name not in e.before.queues.get(topic, {}) for topic in says.topics)


def master_of_another_cluster(e: Exchange, says: Registration) -> bool:
    master = e.ours.ext.get("masterAddr")
    return master is not None and e.java.ext == {} and (says.cluster, master) not in e.before.live


def known_in_another_cluster(e: Exchange, says: Registration) -> bool:
    members = (*e.before.live, *e.before.replaced)
    return any(cluster != says.cluster and addr == says.addr for cluster, addr in members)


def replaced(e: Exchange) -> bool:
    return member_of(e) in e.before.replaced


# -- unregistrations and closed connections


def without_number(e: Exchange) -> bool:
    text = e.ask.get("brokerId") or ""
    return not text.lstrip("+-").isdigit() or abs(int(text)) >= 1 << 63


def by_id_and_address(e: Exchange) -> bool:
    """Return whether 104 names an id with its address, or a broker name that is not registered."""
    group, number = e.before.group(e.ask.get("brokerName")), e.ask.get("brokerId") or ""
    return group is None or (number.isdigit() and group.addrs.get(int(number)) == e.ask.get("brokerAddr"))


def registered_over(e: Exchange) -> list[Member]:
    """Return the members that Java removes with the closed connection."""
    over = e.ask.over
    return [
        *(member for member, live in e.before.live.items() if live.over[-1:] == (over,)),
        *(member for member, last in e.before.replaced.items() if last == over),
    ]


def _names_hit(e: Exchange) -> set[str]:
    """Return the broker names from which a member is removed."""
    if e.ask.code == CUT:
        return {name for _, addr in registered_over(e) for name in e.before.names_of(addr)}
    name = e.ask.get("brokerName") or ""
    group = e.before.group(name)
    return {name} if group is not None and e.ask.get("brokerAddr") in group.addrs.values() else set()


def leaves_other_clusters(e: Exchange) -> bool:
    """A name is hit that other clusters list than the one Java looks at."""
    if e.ask.code == CUT:
        return any(len(e.before.clusters_of(name)) > 1 for name in _names_hit(e))
    cluster = e.ask.get("clusterName")
    return cluster is not None and any(e.before.clusters_of(name) != {cluster} for name in _names_hit(e))


def has_other_names(e: Exchange) -> bool:
    """An address is hit that stands under other names than the one that Java looks at."""
    if e.ask.code == CUT:
        return any(len(e.before.names_of(addr)) > 1 for _, addr in registered_over(e))
    return bool(e.before.names_of(e.ask.get("brokerAddr")) - {e.ask.get("brokerName") or ""})


def several_members(e: Exchange) -> bool:
    return len(registered_over(e)) > 1


def other_connections(e: Exchange) -> bool:
    live = e.before.live
    return any(len(live[member].over) > 1 for member in registered_over(e) if member in live)


def of_another_cluster(e: Exchange) -> bool:
    return any(
        e.before.groups[name].cluster != cluster
        for cluster, addr in registered_over(e)
        for name in e.before.names_of(addr)
    )


def live_in_another_cluster(e: Exchange) -> bool:
    """The address that a request names is a member of another cluster than it says."""
    cluster, addr = member_of(e)
    members = (*e.before.live, *e.before.replaced)
    return e.ask.code in OF_MEMBERS and any(c != cluster and a == addr for c, a in members)
