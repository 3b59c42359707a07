"""Reports of consumers, the fields of `events:consumers`: what is safe with whom (docs/events.md).

Programs outside write them, so a report may be anything. What cannot be read holds nothing back, and is returned by
the consumer's name for the log.
"""

from typing import Final, Self

import msgspec

from registry.events.entry import FIRST, ID_PART_END, EventId
from registry.keys import Keys
from registry.plans import Plan, call
from rocketmq_remoting.typed import decoded

SILENT_MS: Final = 24 * 3600 * 1000  # a consumer that reported nothing for so long holds nothing back
UNREAD_NAMED: Final = 10  # consumers whose report cannot be read


class Consumer(msgspec.Struct):
    """A field of `events:consumers`: the consumer has all entries up to `id`; with `hold`, trimming waits for it."""

    id: str = str(FIRST)
    seq: int = 0
    at_ms: int = 0
    hold: bool | int = False

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read a report. Raises ValueError."""
        try:
            consumer = decoded(text, cls)
        except msgspec.DecodeError as error:
            raise ValueError(str(error)) from error
        if not all(0 <= part < ID_PART_END for part in consumer.position):
            raise ValueError(f"{consumer.id!r} is no id of an entry")
        return consumer

    @property
    def position(self) -> EventId:
        """The id as numbers. Raises ValueError."""
        return EventId.parse(self.id)

    def retains(self, now: int) -> bool:
        """Return whether entries behind `id` have to stay."""
        return bool(self.hold) and now - self.at_ms < SILENT_MS


def read_reports(keys: Keys) -> Plan[tuple[dict[str, Consumer], dict[str, str]]]:
    """Return the reports that can be read, by the consumer's name; and of some consumers why theirs cannot."""
    texts = yield call("HGETALL", keys.events_consumers)
    consumers, unread = dict[str, Consumer](), dict[str, str]()
    for name, text in texts.items():
        try:
            consumers[name] = Consumer.parse(text)
        except ValueError as error:
            if len(unread) < UNREAD_NAMED:
                unread[name] = str(error)
    return consumers, unread
