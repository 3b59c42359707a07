"""Findings of the doctor."""

from collections.abc import Iterable
from enum import StrEnum
from typing import Final

from mqns.cli.output import Document

NAMED_MAX: Final = 5


class Severity(StrEnum):
    """error: messages or lookups fail, or may at any time; warning: they will, or for some clients; info: a note."""

    ERROR = "error"
    WARNING = "warning"
    INFO = "info"


RANKS: Final = tuple(Severity)


class Finding(Document, frozen=True):
    """`check` names the rule, `name_servers` are those at which it holds, `subjects` all brokers, topics, options or
    addresses that it is about; `what` names only some of them. `why` and `command` come from `rules`, where the check
    does not say them."""

    severity: Severity
    check: str
    what: str
    name_servers: tuple[str, ...]
    subjects: tuple[str, ...]
    advice: str
    why: str = ""
    command: str = ""


def in_order(findings: Iterable[Finding]) -> list[Finding]:
    """Return the findings sorted by severity, rule and name servers."""
    return sorted(findings, key=lambda f: (RANKS.index(f.severity), f.check, f.name_servers, f.subjects))


def confirmed(first: Iterable[Finding], second: Iterable[Finding]) -> list[Finding]:
    """Return the second findings that have a first one with the same rule, name servers and a common subject."""
    seen = {(f.check, f.name_servers, subject) for f in first for subject in f.subjects}
    return [f for f in second if any((f.check, f.name_servers, subject) in seen for subject in f.subjects)]


def named(names: Iterable[str]) -> str:
    """Return the first names, and the number of the others."""
    listed = list(names)
    more = f" and {len(listed) - NAMED_MAX} more" if len(listed) > NAMED_MAX else ""
    return ", ".join(listed[:NAMED_MAX]) + more


def counted(number: int, noun: str) -> str:
    """Return `1 topic`, `2 topics`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
