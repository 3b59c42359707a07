"""Copies of operators' entries are bounded in bytes: any peer may set KV, which is one of these."""

from registry.events.trim import AUDIT_PART, trim
from registry.kv import put
from tests.registry.brokers import origin
from tests.registry.namespace import Namespace

MOST = 1 << 20
NODE = 200_000  # what Redis lets a stream have beyond where it is trimmed: up to a whole node


def test_copies_have_a_part_of_the_memory_of_the_stream(ns: Namespace) -> None:
    ns.rewritten = True
    for number in range(400):
        ns.run(put(ns.keys, "n", "k", f"{number:05d}" * 200, origin()))
    last = ns.store.xrevrange(ns.keys.events, count=1)
    trimmed = ns.run(trim(ns.keys, origin(), retention_ms=1000, max_bytes=MOST))
    assert (trimmed.audited, trimmed.copies_trimmed) == (400, 400 - ns.store.xlen(ns.keys.audit))
    assert 0 < ns.store.memory_usage(ns.keys.audit) < MOST // AUDIT_PART + NODE
    assert ns.store.xrevrange(ns.keys.audit, count=1) == last
    assert ns.run(trim(ns.keys, origin(), retention_ms=1000, max_bytes=MOST)).copies_trimmed == 0


def test_long_values_drive_out_no_copies(ns: Namespace) -> None:
    """2,400 of 65,000 bytes left nothing of what operators had done before."""
    ns.run(put(ns.keys, "n", "mine", "v", origin()))
    for value in ("é" * 20_000, "x" * 20_000, "x" * 1024):
        for _ in range(2):
            ns.run(put(ns.keys, "n", "k", value, origin()))
    assert ns.run(trim(ns.keys, origin(), retention_ms=1000, max_bytes=MOST)).copies_trimmed == 0
    shown = [
        {name: text for name, text in fields.items() if name.startswith(("before", "after"))}
        for _, fields in ns.store.xrange(ns.keys.audit)
    ]
    assert shown == [
        {"after": "v"},
        {"after_bytes": "40000"},
        {"before_bytes": "40000", "after_bytes": "20000"},
        {"before_bytes": "20000", "after": "x" * 1024},
    ]
