"""Reading what is stored of a broker's topics, as far as a registration needs it."""

from collections.abc import Collection
from itertools import islice
from typing import Final

from registry.keys import Keys
from registry.long_work.scan import PAGE, scan
from registry.long_work.time_slices import cooperatively
from registry.plans import Batch, Plan, call
from registry.queue_data.queue_text import current
from registry.queue_data.slices import TOPICS_MAX, Row
from registry.registration.diff import Texts, mapping_rows, mapping_texts
from registry.registration.request import RegisterContext
from rocketmq_remoting.cooperative import Cooperative
from rocketmq_remoting.registration import RegisterBrokerBody

PAGES_AT_ONCE: Final = 16


def stored_topics(context: RegisterContext, body: RegisterBrokerBody, epoch: str) -> Plan[Texts]:
    """Return the broker's topics that the registration can change; others may be among them."""
    only = None if context.delete_missing else body.topics
    return (yield from _stored(context.keys.topics_of(context.registration.name), epoch, only))


def changed_mappings(context: RegisterContext, body: RegisterBrokerBody, epoch: str) -> Plan[list[Row]]:
    """Return the rows of static topics that the registration changes."""
    name = context.registration.name
    if not body.mapping_infos:
        return []
    wanted = yield from cooperatively(mapping_texts(body, name))
    longest = max(wanted, key=lambda topic: len(wanted[topic]), default="")
    context.limits.check_bytes("maxMappingBytes", "queues of a static topic", wanted.get(longest, ""))
    context.limits.check_bytes("maxNameBytes", "a static topic", max(wanted, key=len, default=""))
    stored = yield from _stored(context.keys.mappings_of(name), epoch, wanted)
    return mapping_rows(wanted, stored)


def new_topics(keys: Keys, topics: Collection[str]) -> Plan[int]:
    """Return how many of the topics the namespace does not have."""
    known = 0
    names = [*topics]
    for start in range(0, len(names), PAGES_AT_ONCE * TOPICS_MAX):
        pages = [names[at : at + TOPICS_MAX] for at in range(start, len(names), TOPICS_MAX)][:PAGES_AT_ONCE]
        for page in (yield Batch(tuple(call("SMISMEMBER", keys.topics, *page) for page in pages))):
            known += sum(page)
    return len(names) - known


def _stored(key: str, epoch: str, only: Collection[str] | None) -> Plan[Texts]:
    """Return the fields of this epoch, "" for a broker without; all of them, or `only` those when they are few."""
    if not epoch:
        return {}
    if only is not None and len(only) <= TOPICS_MAX:
        if not only:
            return {}
        texts = yield call("HMGET", key, *only)
        return current({topic: text for topic, text in zip(only, texts, strict=True) if text}, epoch)
    return (yield from cooperatively(_current((yield from scan(key)), epoch)))


def _current(stored: dict[str, str], epoch: str) -> Cooperative[Texts]:
    texts, left = Texts(), iter(stored.items())
    while batch := dict(islice(left, PAGE)):
        texts.update(current(batch, epoch))
        yield
    return texts
