"""What a registration changes in the topic tables: its body against what is stored, under a decision. Pure."""

from collections.abc import Iterable, Mapping
from itertools import islice
from operator import attrgetter
from typing import Final

import msgspec

from registry.queue_data.queue_text import queue_text
from registry.queue_data.slices import Row, Slice, slices_of_few, slicing
from registry.registration.cached_tables import TEXTS_MOST
from registry.registration.decision import Decision
from rocketmq_remoting.cooperative import Cooperative
from rocketmq_remoting.registration import RegisterBrokerBody
from rocketmq_remoting.topic_config import TopicConfig
from rocketmq_remoting.topic_queue_mapping import encode_mapping_info

TOPICS_A_STEP: Final = 200
_setup_of: Final = attrgetter("read_queue_nums", "write_queue_nums", "perm", "topic_sys_flag")
Texts = dict[str, str]
"""Queue data or mapping info by topic, as stored without the epoch."""


class Growth(msgspec.Struct, frozen=True):
    """How many topics, and static topics, the broker's tables gain; and at most so many topics the namespace."""

    broker: int = 0
    namespace: int = 0
    mappings: int = 0

    @property
    def is_any(self) -> bool:
        """Return whether anything grows."""
        return self.broker > 0 or self.namespace > 0 or self.mappings > 0


class TableDiff(msgspec.Struct, frozen=True):
    """The slices to write, and whether the tables then are what the body says (`applied`).

    `texts` is what is then stored of the topics that the body names; None of more than are cached
    (`registry.registration.cached_tables`)."""

    slices: tuple[Slice, ...] = ()
    applied: bool = True
    texts: Texts | None = msgspec.field(default_factory=dict)
    growth: Growth = Growth()


NO_DIFF: Final = TableDiff()


class _TopicDiff(msgspec.Struct):
    """Topics by their queue data before and after; `stays` when a topic that is stored otherwise stays as it is."""

    topics: dict[tuple[str, str], list[str]]
    texts: Texts | None
    stays: bool


def table_diff(
    name: str,
    body: RegisterBrokerBody,
    topics: Mapping[str, str],
    mappings: list[Row],
    decision: Decision,
    *,
    delete_missing: bool,
    cause: str = "register",
) -> Cooperative[TableDiff]:
    """Return what becomes of the stored `topics` of broker `name`; `mappings` are the rows that change, and `cause` is
    that of their entries."""
    diff = yield from _topic_diff(body, topics, decision)
    if delete_missing and not body.mapping_infos:
        yield from _add_missing(diff, body, topics)
    slices = yield from slicing(name, cause, diff.topics, mappings)
    return TableDiff(tuple(slices), not diff.stays, diff.texts, _growth(diff, mappings))


def short_diff(
    name: str, topics: Mapping[str, TopicConfig], stored: Mapping[str, str], decision: Decision
) -> TableDiff:
    """Return the same at once for few topics, all of which are stored, and no static ones."""
    diff = _TopicDiff({}, {}, stays=False)
    _compare(topics.items(), stored, decision, diff, {})
    return TableDiff(slices_of_few(name, "register", diff.topics), not diff.stays, diff.texts)


def _growth(diff: _TopicDiff, mappings: list[Row]) -> Growth:
    new = gone = 0
    for (before, after), topics in diff.topics.items():
        new += 0 if before else len(topics)
        gone += 0 if after else len(topics)
    return Growth(new - gone, new, sum(not row.before for row in mappings))


def mapping_texts(body: RegisterBrokerBody, name: str) -> Cooperative[Texts]:
    """Return what is to be stored of the broker's static topics."""
    texts = {}
    for topic, info in body.mapping_infos.items():
        if info.bname == name:
            texts[topic] = encode_mapping_info(info).decode()
            yield
    return texts


def mapping_rows(wanted: Texts, stored: Texts) -> list[Row]:
    """Return the rows of static topics that change."""
    return [
        Row(topic, stored.get(topic, ""), text) for topic, text in wanted.items() if stored.get(topic) != text
    ]


def _topic_diff(
    body: RegisterBrokerBody, stored: Mapping[str, str], decision: Decision
) -> Cooperative[_TopicDiff]:
    few = len(body.topics) <= TEXTS_MOST
    diff = _TopicDiff({}, {} if few else None, not decision.every and bool(body.mapping_infos))
    text_of: dict[tuple[int, int, int, int], str] = {}
    topics = iter(body.topics.items())
    while step := [*islice(topics, TOPICS_A_STEP)]:
        _compare(step, stored, decision, diff, text_of)
        yield
    return diff


def _compare(
    topics: Iterable[tuple[str, TopicConfig]],
    stored: Mapping[str, str],
    decision: Decision,
    diff: _TopicDiff,
    text_of: dict[tuple[int, int, int, int], str],
) -> None:
    """Add these topics to `diff`; `text_of` has the texts of setups seen before, since most topics are set up alike."""
    changes, texts = diff.topics, diff.texts
    for topic, config in topics:
        setup = _setup_of(config)
        text = text_of.get(setup)
        if text is None:
            text = text_of[setup] = queue_text(config, without_write=decision.strips)
        before = stored.get(topic)
        if before != text:
            if before is not None and not decision.every:
                diff.stays = True
                continue
            changes.setdefault((before or "", text), []).append(topic)
        if texts is not None:
            texts[topic] = text


def _add_missing(diff: _TopicDiff, body: RegisterBrokerBody, stored: Mapping[str, str]) -> Cooperative[None]:
    """Add the deletion of topics that the body does not name."""
    for i, (topic, text) in enumerate(stored.items()):
        if topic not in body.topic_keys:
            diff.topics.setdefault((text, ""), []).append(topic)
        if i % TOPICS_A_STEP == 0:
            yield
