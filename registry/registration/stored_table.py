"""Reading what is stored of a broker's topics, as far as a registration needs it."""

from collections.abc import Collection

from registry.plans import Plan, call
from registry.queue_text import current
from registry.registration.diff import Texts, mapping_rows, mapping_texts
from registry.registration.request import RegisterContext
from registry.scan import PAGE, batches, scan
from registry.slices import TOPICS_MAX, Row
from registry.time_slices import cooperatively
from rocketmq_remoting.cooperative import Cooperative
from rocketmq_remoting.registration import RegisterBrokerBody


def stored_topics(context: RegisterContext, body: RegisterBrokerBody, epoch: str) -> Plan[Texts]:
    """Return the broker's topics that the registration can change; others may be among them."""
    only = None if context.delete_missing else body.topics
    return (yield from _stored(context.keys.topics_of(context.registration.name), epoch, only))


def changed_mappings(context: RegisterContext, body: RegisterBrokerBody, epoch: str) -> Plan[list[Row]]:
    """Return the rows of static topics that the registration changes."""
    name = context.registration.name
    wanted = yield from cooperatively(mapping_texts(body, name))
    stored = yield from _stored(context.keys.mappings_of(name), epoch, wanted)
    return mapping_rows(wanted, stored)


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
    texts: Texts = {}
    for batch in batches(stored, PAGE):
        texts.update(current(dict(batch), epoch))
        yield
    return texts
