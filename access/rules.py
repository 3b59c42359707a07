"""Rules: which callers a class of requests is open to.

A rule is a list of alternatives, by blanks or commas, of which one is enough; each is made of factors joined by `+`,
all of which must hold: `net+signed mtls`.
"""

import re
from collections.abc import Iterator
from typing import Final

import msgspec

from registry.options.networks import Network, networks_of

__all__ = ["FACTORS", "PROOFS", "Alternative", "Rule", "parse_rule"]

PROOFS: Final = ("token", "signed", "mtls")
"""Factors that need a principal, in the order in which they name the actor."""
FACTORS: Final = ("open", "off", "remoting", "loopback", "net", "tls", *PROOFS)
CIDR: Final = "cidr:"
SEPARATORS: Final = re.compile(r"[\s,]+")


class Alternative(msgspec.Struct, frozen=True):
    """One way to be admitted: factors by their names, and lists of networks that must have the address."""

    factors: frozenset[str]
    networks: tuple[tuple[Network, ...], ...] = ()
    text: str = ""

    @property
    def is_for_all(self) -> bool:
        """Return whether any caller is admitted: no proof is asked for, and all its networks have a /0."""
        everywhere = all(any(not network.prefixlen for network in listed) for listed in self.networks)
        return everywhere and self.factors <= {"open", "remoting", "net", "tls"}


class Rule(msgspec.Struct, frozen=True):
    """The alternatives, none of a rule that admits no caller."""

    alternatives: tuple[Alternative, ...]

    @property
    def networks(self) -> Iterator[Network]:
        """Yield the networks in which an address is a factor."""
        return (
            network
            for alternative in self.alternatives
            for listed in alternative.networks
            for network in listed
        )

    def names(self, factor: str) -> bool:
        """Return whether an alternative has this factor."""
        return any(factor in alternative.factors for alternative in self.alternatives)


def parse_rule(text: str, net: tuple[Network, ...]) -> Rule:
    """Return the rule that a text is; `net` are the networks of that factor. Raises ValueError that says what is wrong.

    `off` alone admits no caller."""
    words = [word for word in SEPARATORS.split(text) if word]
    if words == ["off"]:
        return Rule(())
    if not words:
        raise ValueError("a rule has at least one alternative; off admits no caller")
    return Rule(tuple(_alternative(word, net) for word in words))


def _alternative(text: str, net: tuple[Network, ...]) -> Alternative:
    factors, networks = set(), []
    for name in text.split("+"):
        if name.startswith(CIDR):
            networks.append(_cidr(name))
        elif name == "off":
            raise ValueError("off stands alone")
        elif name not in FACTORS:
            raise ValueError(f"{name!r} is no factor; there are {', '.join(_shown())}")
        else:
            factors.add(name)
            if name == "net":
                networks.append(net)
    return Alternative(frozenset(factors), tuple(networks), text)


def _cidr(name: str) -> tuple[Network, ...]:
    try:
        networks = networks_of(name.removeprefix(CIDR))
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None
    if not networks:
        raise ValueError(f"{name} names no network")
    return networks


def _shown() -> Iterator[str]:
    yield from FACTORS
    yield f"{CIDR}NETWORK"
