"""The topics of one name server as far as they have been read, by broker name. Pure."""

import re
from collections.abc import Iterable
from math import inf
from typing import Final

from mqns.errors import ClientError
from mqns.mirror.target import TopicRow
from rocketmq_remoting.route import QueueData, TopicRouteData

__all__ = ["TooManyRows", "TopicTable"]

ROWS_MOST: Final = 1_000_000
"""Pairs of topic and broker name, some 400 bytes each."""


NAME: Final = re.compile(r"[^\x00-\x20\x7f]{1,255}")
PERM_MOST: Final = 15
"""As the HTTP API takes them (docs/http-api.md, Registration)."""


class TooManyRows(ClientError):
    """The name server has more pairs of topic and broker than a mirror holds."""

    def __init__(self, most: int) -> None:
        super().__init__(f"more than {most} pairs of topic and broker, which a mirror does not hold")


class TopicTable:
    """Rows of topics, and when each topic was read last (seconds of the caller's clock); the order of reading is from
    what was read longest ago, and first what never was. What is `left_out` has no rows: static topics, whose mapping is
    not mirrored, and names and numbers that a redis-namesrv refuses, since they would keep their broker out."""

    def __init__(self, rows_most: int = ROWS_MOST) -> None:
        self._rows_most = rows_most
        self._unread: dict[str, None] = {}
        self._read_at: dict[str, float] = {}
        self._names: dict[str, tuple[str, ...]] = {}
        self._rows: dict[str, dict[str, TopicRow]] = {}
        self._versions: dict[str, int] = {}
        self._count = 0
        self._listed_at = -inf
        self.left_out: set[str] = set()

    def list(self, topics: Iterable[str], asked_at: float) -> None:
        """Take the list of all topics, as it was at some time after `asked_at`: new ones are to be read, others go."""
        self._listed_at = asked_at
        listed = set(topics)
        for topic in [topic for topic in self._unread if topic not in listed]:
            del self._unread[topic]
        for topic in [topic for topic in self._read_at if topic not in listed]:
            self._put_rows(topic, {})
            del self._read_at[topic]
            self.left_out.discard(topic)
        for topic in listed:
            if topic not in self._read_at:
                self._unread[topic] = None

    def due(self, before: float) -> Iterable[str]:
        """Yield the topics that were read last before a time, in the order of reading."""
        yield from [*self._unread]
        for topic, at in [*self._read_at.items()]:
            if at >= before:
                return
            yield topic

    @property
    def all_read_since(self) -> float:
        """The time since which the list of topics and each of them has been read; -inf where one never was."""
        if self._unread:
            return -inf
        return min(self._listed_at, next(iter(self._read_at.values()), inf))

    def put(self, topic: str, route: TopicRouteData | None, asked_at: float) -> None:
        """Take the route of a topic, None without one, as it was at some time after `asked_at`. Raises TooManyRows."""
        self.skip(topic, asked_at)
        rows: dict[str, TopicRow] = {}
        self.left_out.discard(topic)
        if route is not None and not _can_be_mirrored(topic, route):
            self.left_out.add(topic)
        elif route is not None:
            rows = {data.broker_name: _row(topic, data) for data in route.queue_datas}
        self._put_rows(topic, rows)

    def skip(self, topic: str, asked_at: float) -> None:
        """Have a topic stay as it is until it is read again."""
        self._unread.pop(topic, None)
        self._read_at.pop(topic, None)
        self._read_at[topic] = asked_at

    def rows(self, name: str) -> tuple[TopicRow, ...]:
        """Return the topics of a broker name, sorted."""
        return tuple(row for _, row in sorted(self._rows.get(name, {}).items()))

    def version(self, name: str) -> int:
        """Return a number that grows when the rows of a broker name change."""
        return self._versions.get(name, 0)

    def _put_rows(self, topic: str, rows: dict[str, TopicRow]) -> None:
        before = self._names.pop(topic, ())
        for name in before:
            if name not in rows:
                del self._rows[name][topic]
                self._changed(name)
        for name, row in rows.items():
            of_name = self._rows.setdefault(name, {})
            if of_name.get(topic) != row:
                of_name[topic] = row
                self._changed(name)
        self._count += len(rows) - len(before)
        if self._count > self._rows_most:
            raise TooManyRows(self._rows_most)
        if rows:
            self._names[topic] = tuple(rows)

    def _changed(self, name: str) -> None:
        self._versions[name] = self._versions.get(name, 0) + 1


def _can_be_mirrored(topic: str, route: TopicRouteData) -> bool:
    return (
        NAME.fullmatch(topic) is not None
        and not route.topic_queue_mapping_by_broker
        and all(
            min(data.read_queue_nums, data.write_queue_nums, data.topic_sys_flag) >= 0
            and 0 <= data.perm <= PERM_MOST
            for data in route.queue_datas
        )
    )


def _row(topic: str, data: QueueData) -> TopicRow:
    return TopicRow(topic, data.read_queue_nums, data.write_queue_nums, data.perm, data.topic_sys_flag)
