"""How far a namespace has grown towards its limits, and from which hosts its brokers come."""

from collections import Counter

import msgspec

from registry.keys import Keys
from registry.long_work.scan import members_of
from registry.plans import Batch, Plan, call

NAMES_AT_ONCE = 500


class Usage(msgspec.Struct, frozen=True):
    """How many names there are of each kind; `hosts` by the host that a broker name was first registered from, those
    with most brokers first, an IPv6 one as its /64 (`registry.registration.request`)."""

    brokers: int
    topics: int
    kv_namespaces: int
    hosts: tuple[tuple[str, int], ...]


def usage(keys: Keys, *, hosts: int) -> Plan[Usage]:
    """Return the usage, with so many hosts at most."""
    brokers, topics, kv_namespaces = yield Batch(
        tuple(call("SCARD", key) for key in (keys.brokers, keys.topics, keys.kv_namespaces))
    )
    found: Counter[str] = Counter()
    names = [*(yield from members_of(keys.brokers))]
    for start in range(0, len(names), NAMES_AT_ONCE):
        page = names[start : start + NAMES_AT_ONCE]
        found.update(
            filter(None, (yield Batch(tuple(call("HGET", keys.broker(name), "network") for name in page))))
        )
    return Usage(int(brokers), int(topics), int(kv_namespaces), tuple(found.most_common(hosts)))
