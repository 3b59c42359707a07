"""Roles of principals: the classes of requests that each may make."""

from collections.abc import Mapping
from enum import StrEnum
from typing import Final

from access.classes import ALL, AccessClass

__all__ = ["Role"]


class Role(StrEnum):
    """What a principal is there for."""

    READER = "reader"
    BROKER = "broker"
    OPERATOR = "operator"
    ADMIN = "admin"
    SCRAPER = "scraper"

    @property
    def classes(self) -> int:
        """Its classes as a number, a bit each."""
        return _CLASSES[self]


_CLASSES: Final[Mapping[Role, int]] = {
    Role.READER: int(AccessClass.READ),
    Role.BROKER: int(AccessClass.READ | AccessClass.BROKER),
    Role.OPERATOR: int(AccessClass.READ | AccessClass.ADMIN | AccessClass.AUDIT),
    Role.ADMIN: int(ALL),
    Role.SCRAPER: int(AccessClass.METRICS),
}
