"""Versions in headers: the ordinals of Java's MQVersion.Version."""

from typing import Final

V3_0_11: Final = 37
"""From here on the body of REGISTER_BROKER is a RegisterBrokerBody."""
V4_9_4: Final = 401
"""From here on routes are sent in standard JSON."""
V5_0_0: Final = 413
"""From here on compressed registrations end with static topics."""
V5_3_1: Final = 475
"""Clients above this understand GO_AWAY."""
V5_5_0: Final = 513
CURRENT: Final = V5_5_0
"""The version that this project sends."""


def _names() -> tuple[str, ...]:
    """Return all members of the enumeration in order: each release follows its snapshot."""
    betas = [f"V3_0_0_BETA{n}{tail}" for n in range(6, 10) for tail in ("_SNAPSHOT", "")]
    first = ["V3_0_0_SNAPSHOT", "V3_0_0_ALPHA1"]
    first += [*(f"V3_0_0_BETA{n}" for n in range(1, 6)), *betas, "V3_0_0_FINAL"]
    releases = [f"V3_0_{z}" for z in range(1, 16)]
    releases += [f"V3_{y}_{z}" for y in range(1, 10) for z in range(0 if y < 3 else 1, 10)]
    releases += [f"V{x}_{y}_{z}" for x in (4, 5) for y in range(10) for z in range(10)]
    return (*first, *(name + tail for name in releases for tail in ("_SNAPSHOT", "")), "HIGHER_VERSION")


_NAMES: Final = _names()


def version_name(ordinal: int) -> str:
    """Return `V5_5_0` for 513; `HIGHER_VERSION` beyond the last member, the first member below zero."""
    return _NAMES[min(max(ordinal, 0), len(_NAMES) - 1)]


def release_ordinal(release: str) -> int:
    """Return 513 for `5.5.0`; ValueError for an unknown release."""
    return _NAMES.index(f"V{release.replace('.', '_')}")
