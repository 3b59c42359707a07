"""The answer to a registration (103)."""

import msgspec

from registry.options.catalogue import Options
from registry.plans import pairs
from registry.registration.decision import Outcome
from registry.registration.renewals import Renewal


class Registered(msgspec.Struct, frozen=True):
    """The answer: addresses for a slave whose master lives, the order topics (None: no such KV namespace).

    `event_id` is the last entry written, "" for none; the outcome `conflict` is of a newcomer whose state version was
    lower than the holder's. `renewal` is set for an unchanged registration whose body names its data version: the
    script item that answers every other with the same header and body signature."""

    master_address: str | None = None
    ha_address: str | None = None
    order_table: dict[str, str] | None = None
    event_id: str = ""
    outcome: Outcome = "unchanged"
    renewal: Renewal | None = None

    @classmethod
    def of(
        cls,
        master: tuple[str, str],
        order_table: list[str],
        *,
        event_id: str = "",
        outcome: Outcome = "unchanged",
        renewal: Renewal | None = None,
    ) -> "Registered":
        """Return the answer that a script's reply stands for: `{"1", topic, value, ...}` is an order table."""
        table = pairs(order_table[1:]) if order_table[0] == "1" else None
        return cls(master[0] or None, master[1] or None, table, event_id, outcome, renewal)

    @property
    def refused(self) -> bool:
        """Return whether another member keeps the id."""
        return self.outcome == "conflict"

    def order_topics(self, options: Options) -> dict[str, str] | None:
        """Return the order topics for the broker, None without returnOrderTopicConfigToBroker."""
        return self.order_table if options.return_order_topic_config_to_broker else None
