"""The rules of a process, from its options: what a caller may ask."""

from collections.abc import Mapping
from typing import Final

import msgspec

from access.caller import Caller, Listener
from access.classes import AccessClass
from access.rules import PROOFS, Alternative, Rule, parse_rule
from registry.options.catalogue import InvalidOption, Options
from registry.options.networks import networks_of

__all__ = ["LACKS", "OPTIONS", "Policy", "observes"]

OPTIONS: Final[Mapping[AccessClass, tuple[str, str]]] = {
    AccessClass.READ: ("accessRead", "access_read"),
    AccessClass.BROKER: ("accessBroker", "access_broker"),
    AccessClass.ADMIN: ("accessAdmin", "access_admin"),
    AccessClass.CONFIG: ("accessConfig", "access_config"),
    AccessClass.AUDIT: ("accessAudit", "access_audit"),
    AccessClass.METRICS: ("accessMetrics", "access_metrics"),
}
"""By class: the option that has its rule, and its attribute."""
STRICT: Final = AccessClass.ADMIN | AccessClass.CONFIG
"""Classes for which a signature counts over TLS or loopback only: it is good for every request with the same values."""
STRICT_BITS: Final = int(STRICT)
LACKS: Final[Mapping[Listener, frozenset[str]]] = {
    "remoting": frozenset({"token"}),
    "http": frozenset({"remoting", "tls", "signed", "mtls"}),
}
"""Factors that never hold on a listener."""
SAFE: Final = frozenset({"loopback", "tls", "mtls"})
"""Factors beside which a signature counts for STRICT."""


def observes(options: Options) -> bool:
    """Return whether what the rules refuse is answered all the same (accessMode)."""
    return options.access_mode == "observe"


class Policy(msgspec.Struct, frozen=True):
    """A rule for each class. `observes`: what it does not admit is answered all the same."""

    rules: Mapping[AccessClass, Rule]
    ways: Mapping[Listener, Mapping[AccessClass, tuple[Alternative, ...]]]
    """By listener: the alternatives of each class that can hold there."""
    observes: bool = False

    @classmethod
    def of(cls, options: Options) -> "Policy":
        """Return the rules that these options have. Raises InvalidOption."""
        net = networks_of(options.access_networks)
        rules = {}
        for of_class, (key, attribute) in OPTIONS.items():
            text = getattr(options, attribute)
            try:
                rules[of_class] = parse_rule(text, net)
            except ValueError as error:
                raise InvalidOption(f"{key}={text}: {error}; docs/access.md has the rules") from None
        ways = {listener: _ways(rules, lacking) for listener, lacking in LACKS.items()}
        return cls(rules, ways, observes(options))

    def classes(self, caller: Caller) -> AccessClass:
        """Return the classes that are open to a caller."""
        bits = 0
        for of_class, alternatives in self.ways[caller.listener].items():
            if any(_holds(way, of_class.value, caller) for way in alternatives):
                bits += of_class.value
        return AccessClass(bits)

    def admits(self, classes: AccessClass, caller: Caller) -> bool:
        """Return whether one of these classes is open to a caller."""
        ways = self.ways[caller.listener]
        return any(_holds(way, of_class.value, caller) for of_class in classes for way in ways[of_class])

    def needs(self, classes: AccessClass, listener: Listener) -> str:
        """Return what would admit a caller to one of these classes on a listener, for people."""
        ways = (_shown(way, of_class) for of_class in classes for way in self.ways[listener][of_class])
        return " or ".join(dict.fromkeys(ways)) or "what this port does not have"


def _ways(
    rules: Mapping[AccessClass, Rule], lacking: frozenset[str]
) -> dict[AccessClass, tuple[Alternative, ...]]:
    return {
        of_class: tuple(way for way in rule.alternatives if not way.factors & lacking)
        for of_class, rule in rules.items()
    }


def _shown(way: Alternative, of_class: AccessClass) -> str:
    if of_class & STRICT and "signed" in way.factors and not way.factors & SAFE:
        return way.text.replace("signed", "signed over TLS")
    return way.text


def _holds(way: Alternative, bit: int, caller: Caller) -> bool:
    factors = way.factors
    for networks in way.networks:
        if caller.address is None or not any(caller.address in network for network in networks):
            return False
    if ("loopback" in factors and not caller.loopback) or ("tls" in factors and not caller.tls):
        return False
    if "signed" in factors and bit & STRICT_BITS and not (caller.tls or caller.loopback):
        return False
    return all(bit & getattr(caller, proof) for proof in PROOFS if proof in factors)
