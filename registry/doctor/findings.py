"""The findings of a name server, as they are now and as a scheduler counted them last."""

import shlex
from collections import Counter
from typing import Final

import msgspec
from msgspec.structs import replace

from registry.doctor import facts
from registry.doctor.catalogue import RULES, Severity
from registry.doctor.checks import Seen, check
from registry.growth.limits import Limits
from registry.keys import Keys
from registry.plans import Plan, call
from rocketmq_remoting.typed import decoded

__all__ = ["FINDINGS", "Examination", "Finding", "count", "counted", "examine", "finding"]

OF_PROCESS: Final = frozenset({"access-file-refused", "discovery-loopback"})
"""Rules of facts that the store has not: of the process that examines."""
FINDINGS: Final = tuple(name for name in RULES if name not in OF_PROCESS)
"""The names of the rules that a scheduler counts."""
SUBJECTS_MAX: Final = 100
COUNTED_MS: Final = 600_000
"""Counts that no process renews are no facts any more."""


class Finding(msgspec.Struct, frozen=True):
    """What one sees, why, what to do and which command, for the rule `check`; `subjects` are the first hundred of
    `count` brokers, clusters, options, jobs or consumers."""

    check: str
    severity: Severity
    what: str
    why: str
    advice: str
    command: str
    subjects: tuple[str, ...]
    count: int


class Examination(msgspec.Struct, frozen=True):
    """The findings at a time (Unix ms of the Redis clock); `size` is how many members and drains were read for them."""

    now_ms: int
    findings: tuple[Finding, ...]
    size: int


def examine(
    keys: Keys,
    limits: Limits,
    access_file_refused: str | None = None,
    discovery_loopback: tuple[str, ...] = (),
) -> Plan[Examination]:
    """Return the findings as they are now; `access_file_refused` and `discovery_loopback` are facts of this process
    (`registry.doctor.facts.Facts`). It reads all brokers."""
    of_store = yield from facts.read(keys, limits)
    found = replace(of_store, access_file_refused=access_file_refused, discovery_loopback=discovery_loopback)
    size = sum(len(broker.members) for broker in found.brokers) + len(found.drained)
    return Examination(found.clock.now_ms, tuple(finding(keys, seen) for seen in check(found)), size)


def count(keys: Keys, limits: Limits) -> Plan[None]:
    """Examine, and store for ten minutes how many subjects the findings of each rule have; one without any is one."""
    examined = yield from examine(keys, limits)
    counts = Counter[str]()
    for finding in examined.findings:
        counts[finding.check] += max(finding.count, 1)
    text = msgspec.json.encode({name: counts[name] for name in FINDINGS}).decode()
    yield call("SET", keys.doctor, text, "PX", COUNTED_MS)


def counted(keys: Keys) -> Plan[dict[str, int]]:
    """Return what was counted last; nothing where nothing was for ten minutes, and of damage until the next count."""
    text: str | None = yield call("GET", keys.doctor)
    try:
        counts = {} if text is None else decoded(text.encode(errors="replace"), dict[str, int])
    except msgspec.MsgspecError:
        return {}
    return {name: number for name, number in counts.items() if name in RULES}


def finding(keys: Keys, seen: Seen) -> Finding:
    """Return the finding of what is seen, with the texts of its rule."""
    rule = RULES[seen.rule]
    subject = seen.subjects[0] if seen.subjects else ""
    command = rule.command.format(
        subject=f"{'-- ' if subject.startswith('-') else ''}{shlex.quote(subject)}",
        consumers=shlex.quote(keys.events_consumers),
        workers=shlex.quote(keys.workers),
    )
    severity: Severity = "warning" if seen.mild else rule.severity
    return Finding(
        seen.rule,
        severity,
        seen.what,
        rule.why,
        rule.advice,
        command,
        seen.subjects[:SUBJECTS_MAX],
        len(seen.subjects),
    )
