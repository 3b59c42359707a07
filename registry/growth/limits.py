"""How far peers can make the tables grow: each limit is an option, which plans check and hand on to scripts.

A registered broker keeps its place at a limit that others reached: what is stored stays, may be sent again and may
shrink. Only what grows beyond a limit is refused."""

from typing import Any, Final, Self

import msgspec

from registry.errors import LimitReached
from registry.options.catalogue import BY_KEY, GROWTH_LIMITS, Options

BYTES_OF_A_CHARACTER: Final = 4


class Limits(msgspec.Struct, frozen=True, rename="camel"):
    """The limits of one name server, in JSON by their options' keys."""

    max_brokers: int
    max_members_of_broker: int
    max_clusters_of_broker: int
    max_names_of_member: int
    max_owners_of_member: int
    max_topics: int
    max_topics_of_broker: int
    max_name_bytes: int
    max_address_bytes: int
    max_entry_bytes: int
    max_filter_servers_bytes: int
    max_mapping_bytes: int
    max_kv_namespaces: int
    max_kv_keys: int
    max_kv_value_bytes: int
    max_kv_namespace_bytes: int
    max_percent_of_host: int

    @classmethod
    def of(cls, options: Options) -> Self:
        """Return the limits that these options set."""
        return cls(*(getattr(options, BY_KEY[key].name) for key in GROWTH_LIMITS))

    @property
    def brokers_of_host(self) -> int | None:
        """Return how many brokers may first be registered from one host (lua/includes/growth.lua); None is no limit."""
        percent = self.max_percent_of_host
        return self.max_brokers * percent // 100 if percent < 100 else None

    def reached(self, option: str, subject: str, what: str = "") -> LimitReached:
        """Return the error that names the option and whom it refuses; of a percentage, `what` has it."""
        return LimitReached(option, getattr(self, BY_KEY[option].name), subject, what)

    def check_bytes(self, option: str, subject: str, text: str) -> None:
        """Raise LimitReached for a text of more bytes than the option allows."""
        most: int = getattr(self, BY_KEY[option].name)
        if len(text) * BYTES_OF_A_CHARACTER <= most:
            return
        size = len(text.encode(errors="replace"))
        if size > most:
            raise self.reached(option, f"{subject} of {size} bytes")

    def check_reply(self, reply: Any, subject: str) -> Any:
        """Return what a script replied. Raises LimitReached for `{"full", option}` and `{"full", option, what}`."""
        match reply:
            case ["full", str(option), *what]:
                raise self.reached(option, subject, *what)
        return reply


DEFAULT_LIMITS: Final = Limits.of(Options())
