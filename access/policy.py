"""The rules of a process, from its options: what a caller may ask."""

from collections.abc import Mapping
from typing import Final

import msgspec

from access.caller import Caller, Listener
from access.classes import AccessClass
from access.rules import PROOFS, Alternative, Rule, parse_rule
from registry.options.catalogue import InvalidOption, Options
from registry.options.networks import networks_of

__all__ = ["LACKS", "OPTIONS", "Policy"]

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
LACKS: Final[Mapping[Listener, frozenset[str]]] = {
    "remoting": frozenset({"token"}),
    "http": frozenset({"remoting", "tls", "signed", "mtls"}),
}
"""Factors that never hold on a listener."""


class Policy(msgspec.Struct, frozen=True):
    """A rule for each class. `observes`: what it does not admit is answered all the same."""

    rules: Mapping[AccessClass, Rule]
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
        return cls(rules, options.access_mode == "observe")

    def classes(self, caller: Caller) -> AccessClass:
        """Return the classes that are open to a caller."""
        classes = AccessClass(0)
        for of_class, rule in self.rules.items():
            if any(_holds(alternative, of_class, caller) for alternative in rule.alternatives):
                classes |= of_class
        return classes

    def needs(self, of_class: AccessClass, listener: Listener) -> str:
        """Return what would admit a caller to one of these classes on a listener, for people."""
        ways = []
        for one in of_class:
            for alternative in self.rules[one].alternatives:
                if not alternative.factors & LACKS[listener]:
                    text = alternative.text
                    if one in STRICT and "signed" in alternative.factors and not _is_safe(alternative):
                        text = text.replace("signed", "signed over TLS")
                    ways.append(text)
        return " or ".join(dict.fromkeys(ways)) or "what this port does not have"


def _is_safe(alternative: Alternative) -> bool:
    return bool(alternative.factors & {"loopback", "tls", "mtls"})


def _holds(alternative: Alternative, of_class: AccessClass, caller: Caller) -> bool:
    factors = alternative.factors
    if factors & LACKS[caller.listener]:
        return False
    for networks in alternative.networks:
        if caller.address is None or not any(caller.address in network for network in networks):
            return False
    if ("loopback" in factors and not caller.loopback) or ("tls" in factors and not caller.tls):
        return False
    if "signed" in factors and of_class & STRICT and not (caller.tls or caller.loopback):
        return False
    return all(of_class & getattr(caller, proof) for proof in PROOFS if proof in factors)
