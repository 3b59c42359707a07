"""Copies of operators' entries are bounded in bytes: any peer may set KV, which is one of these."""

from registry.events.trim import AUDIT_PART, trim
from registry.kv import put
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

MOST = 4 << 20
NODE = 200_000  # what Redis lets a stream have beyond where it is trimmed: up to a whole node


def test_copies_have_a_part_of_the_memory_of_the_stream(ns: Namespace) -> None:
    ns.rewritten = True
    for number in range(200):
        ns.run(put(ns.keys, "n", "k", f"{number:05d}" * 2_000, origin()))
    last = ns.store.xrevrange(ns.keys.events, count=1)
    assert ns.run(trim(ns.keys, origin(), retention_ms=1000, max_bytes=MOST)).audited == 200
    assert 0 < ns.store.memory_usage(ns.keys.audit) < MOST // AUDIT_PART + NODE
    assert ns.store.xrevrange(ns.keys.audit, count=1) == last
