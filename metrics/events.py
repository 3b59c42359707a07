"""The stream of events and its consumers, and how full the namespace is."""

from typing import Final

from metrics import catalogue as metrics
from metrics.metric import NAMED
from metrics.samples import Sample
from registry.clock import TIME, unix_ms
from registry.events.consumers import read_reports
from registry.growth.limits import Limits
from registry.keys import Keys
from registry.plans import Batch, Plan, call

__all__ = ["read"]

USED: Final = {"maxBrokers": "max_brokers", "maxTopics": "max_topics", "maxKvNamespaces": "max_kv_namespaces"}


def read(keys: Keys, limits: Limits, events_max_bytes: int) -> Plan[list[Sample]]:
    """Return what the store says of its stream now."""
    time, length, size, meta, *used = yield Batch(
        (
            TIME,
            call("XLEN", keys.events),
            call("MEMORY", "USAGE", keys.events),
            call("HMGET", keys.events_meta, "seq", "inc"),
            *(call("SCARD", key) for key in (keys.brokers, keys.topics, keys.kv_namespaces)),
        )
    )
    seq, began_ms = (int(text) if text and text.isdigit() else 0 for text in meta)
    samples = [
        Sample(metrics.EVENTS_SEQUENCE, (), seq),
        Sample(metrics.EVENTS_INCARNATION, (), began_ms / 1000),
        Sample(metrics.EVENTS_STREAM_LENGTH, (), length),
        Sample(metrics.EVENTS_STREAM_BYTES, (), size or 0),
        _used("eventsMaxBytes", size or 0, events_max_bytes),
    ]
    for (limit, field), number in zip(USED.items(), used, strict=True):
        samples.append(_used(limit, number, getattr(limits, field)))
    return samples + (yield from _consumers(keys, seq, unix_ms(time)))


def _used(limit: str, number: int, most: int) -> Sample:
    """Return how much of a limit is used; one of 0 counts as 1."""
    return Sample(metrics.LIMIT_USED, (limit,), number / max(most, 1))


def _consumers(keys: Keys, seq: int, now_ms: int) -> Plan[list[Sample]]:
    consumers, _ = yield from read_reports(keys)
    samples = []
    for name in sorted(consumers)[:NAMED]:
        consumer = consumers[name]
        samples.append(Sample(metrics.EVENTS_CONSUMER_LAG, (name,), max(seq - consumer.seq, 0)))
        samples.append(Sample(metrics.EVENTS_CONSUMER_AGE, (name,), max(now_ms - consumer.at_ms, 0) / 1000))
    return samples
