"""Whether a rule admits a caller to a class."""

from dataclasses import dataclass, field
from typing import Final

from tests.guarded.names import is_in
from tests.guarded.world import World

OPERATING: Final = frozenset({"admin", "config"})


@dataclass
class Caller:
    """What a rule is applied to: `host` is None without rights by an address, `proved` are the classes that each factor
    proves."""

    port: str
    host: str | None
    loopback: bool
    tls: bool = False
    proved: dict[str, set[str]] = field(default_factory=dict)


def admits(world: World, of_class: str, caller: Caller) -> bool:
    """Return whether one of the alternatives holds, all of whose factors do."""
    return any(
        all(_holds(world, factor, of_class, caller) for factor in alternative.split("+"))
        for alternative in world.rules[of_class].split()
    )


def factors(rule: str) -> set[str]:
    """Return the factors that a rule names."""
    return {factor for alternative in rule.split() for factor in alternative.split("+")}


def _holds(world: World, factor: str, of_class: str, caller: Caller) -> bool:
    if factor.startswith("cidr:"):
        return caller.host is not None and is_in(caller.host, (factor.removeprefix("cidr:"),))
    if factor in ("signed", "mtls", "token"):
        safe = factor != "signed" or of_class not in OPERATING or caller.tls or caller.loopback
        return safe and of_class in caller.proved.get(factor, set())
    return {
        "open": True,
        "off": False,
        "remoting": caller.port == "remoting",
        "loopback": caller.loopback,
        "net": caller.host is not None and is_in(caller.host, world.networks),
        "tls": caller.tls,
    }[factor]
