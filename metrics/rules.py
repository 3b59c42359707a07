"""What a Prometheus rule is: a recorded query, an alert; both with `N_` for the prefix of our names."""

import re
from enum import StrEnum
from typing import Final

import msgspec

from metrics.metric import PREFIX

__all__ = ["Alert", "Recording", "Severity", "written_out"]

_PREFIX: Final = re.compile(r"\bN_")


class Severity(StrEnum):
    """How soon it is to be looked at: PAGE at once, TICKET in working hours."""

    PAGE = "page"
    TICKET = "ticket"


class Recording(msgspec.Struct, frozen=True):
    """A query whose result is a series of its own, `name`; one for each window."""

    name: str
    expression: str

    def over(self, window: str) -> "Recording":
        """Return the rule for a window such as `5m`, which stands where `WINDOW` is in the template."""
        return Recording(self.name + window, self.expression.replace("WINDOW", window))


class Alert(msgspec.Struct, frozen=True):
    """`name` without its prefix. `after` is how long `expression` has to be true, as a duration of Prometheus.

    `summary` is what is wrong and `look` where to look first; `section` is a heading of docs/runbook.md. `by` are the
    labels of the series that fire, `unit` how their value is shown. `why` says what of the expression surprises."""

    name: str
    severity: Severity
    after: str
    expression: str
    summary: str
    look: str
    section: str
    by: tuple[str, ...] = ("ns",)
    unit: str = "humanize"
    why: str = ""


def written_out(expression: str) -> str:
    """Return the expression with the prefix of our names in the place of `N_`."""
    return _PREFIX.sub(PREFIX, expression)
