"""The rules and the access file that a process has, as entries `access_changed` of cause `rules` tell of them."""

from collections.abc import Mapping
from typing import Final

import msgspec

from access.description import Change
from access.policy import OPTIONS
from registry.access_changes import Fields
from registry.options.catalogue import BY_KEY, Options, text_of
from registry.plans import as_json
from rocketmq_remoting.typed import decoded

__all__ = ["PRINCIPALS", "RulesInForce"]

PRINCIPALS: Final = "principals"
SHOWN: Final = (
    *(key for key, _ in OPTIONS.values()),
    *("accessMode", "accessNetworks", "ownershipGuard", "proxyTrustedCidrs", "proxyRequired"),
)
"""Options that decide which callers may ask what."""


class RulesInForce(msgspec.Struct, frozen=True):
    """By option its text; of the principals of the access file a digest. `change` is how these differ from before."""

    rules: Mapping[str, str]
    change: Change = Change()

    @classmethod
    def of(cls, options: Options, principals: str, change: Change = Change()) -> "RulesInForce":  # noqa: B008
        """Return those of a process."""
        texts = {key: text_of(getattr(options, BY_KEY[key].name)) for key in SHOWN}
        return cls({**texts, PRINCIPALS: principals}, change)

    @property
    def state(self) -> str:
        """What is compared with the rules that were reported last."""
        return as_json(dict(sorted(self.rules.items()))).decode()

    def fields(self, before: str) -> Fields:
        """Return what an entry says where those before were others, as their `state` was."""
        rules = _rules(before)
        changes = {
            key: (rules.get(key), self.rules.get(key))
            for key in sorted(rules.keys() | self.rules.keys())
            if rules.get(key) != self.rules.get(key)
        }
        named = {name: getattr(self.change, name) for name in ("added", "changed", "removed")}
        return (
            ("changes", as_json(changes).decode()),
            *((name, as_json(names).decode()) for name, names in named.items() if names),
            *((("count", str(self.change.count)),) if self.change.count else ()),
        )


def _rules(state: str) -> Mapping[str, str]:
    try:
        return decoded(state, dict[str, str])
    except (msgspec.DecodeError, RecursionError):
        return {}
