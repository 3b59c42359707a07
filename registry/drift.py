"""Results of comparisons of two name servers, which `mqns drift` reports.

A result is stored under the name of its comparison until seven days after its last report. One that says other than the
one before has an entry in the event stream."""

from collections.abc import Mapping
from typing import Final, Literal, get_args

import msgspec

from registry.clock import now_ms
from registry.errors import ComparisonNotFound, TableFull
from registry.keys import Keys
from registry.plans import Origin, Plan, ScriptCall, as_json, call
from rocketmq_remoting.typed import decoded

__all__ = [
    "COMPARISONS_MOST",
    "KEPT_MS",
    "KINDS",
    "Comparison",
    "Comparisons",
    "Difference",
    "DriftReport",
    "Kind",
    "Outcome",
    "Unanswered",
    "comparison",
    "comparisons",
    "delete",
    "report",
]

Kind = Literal[
    "broker-missing",
    "broker-conflict",
    "broker-cluster-differs",
    "topic-missing",
    "queues-missing",
    "queues-differ",
    "kv-differs",
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
"""Kinds of differences, as the findings of `mqns doctor` name them."""
Outcome = Literal["same", "drift", "unreachable"]
COMPARISONS_MOST: Final = 20
KEPT_MS: Final = 7 * 86_400_000
SECOND_MS: Final = 1_000


class Unanswered(msgspec.Struct, frozen=True):
    """A name server that could not be compared, and why."""

    name_server: str
    reason: str


class Difference(msgspec.Struct, frozen=True):
    """One of the differences: its kind, what it is about, and what each name server says."""

    kind: Kind
    subject: str
    what: str


class DriftReport(msgspec.Struct, frozen=True):
    """What a comparison found: how many differences of each kind there are, and some of them; nothing of both where a
    name server did not answer. It is of use for `valid_for_s`."""

    name_servers: tuple[str, ...]
    valid_for_s: int
    counts: Mapping[Kind, int] = {}
    unreachable: tuple[Unanswered, ...] = ()
    examples: tuple[Difference, ...] = ()

    @property
    def outcome(self) -> Outcome:
        """Whether the name servers agree, as far as they answered."""
        if self.unreachable:
            return "unreachable"
        return "drift" if self.counts else "same"


class Comparison(msgspec.Struct, frozen=True):
    """The last report of a comparison and when it came, and since when reports say that (Unix ms, Redis clock)."""

    at_ms: int
    since_ms: int
    report: DriftReport

    def is_stale(self, now: int) -> bool:
        """Return whether the time is over for which the report is of use."""
        return now > self.at_ms + self.report.valid_for_s * SECOND_MS


class Comparisons(msgspec.Struct, frozen=True):
    """All comparisons by name, sorted, at a time (Unix ms of the Redis clock)."""

    now_ms: int
    by_name: Mapping[str, Comparison]


def report(keys: Keys, name: str, found: DriftReport, origin: Origin) -> Plan[str]:
    """Store the result of a comparison; return the id of its entry, "" where the result before said the same.

    Raises TableFull. A report that another one overtakes is stored behind it."""
    while True:
        now, texts = yield from _stored(keys)
        before = _comparison(texts.get(name, ""), now)
        old = None if before is None else _state(before.report)
        new = _state(found)
        same = before is not None and old == new
        since_ms = before.since_ms if before is not None and same else now
        rows = [(name, texts.get(name, ""), as_json(Comparison(now, since_ms, found)).decode())]
        rows += [
            (other, text, "")
            for other, text in texts.items()
            if other != name and _comparison(text, now) is None
        ]
        event_id = yield from _write(keys, "compared", () if same else _fields(name, old, new), rows, origin)
        if event_id is not None:
            return event_id


def delete(keys: Keys, name: str, origin: Origin) -> Plan[str]:
    """Forget a comparison; return the id of its entry, "" where there is none."""
    while True:
        now, texts = yield from _stored(keys)
        if name not in texts:
            return ""
        before = _comparison(texts[name], now)
        fields = () if before is None else _fields(name, _state(before.report), None)
        event_id = yield from _write(keys, "deleted", fields, [(name, texts[name], "")], origin)
        if event_id is not None:
            return event_id


def comparisons(keys: Keys) -> Plan[Comparisons]:
    """Return all comparisons that were reported within seven days; none that is damaged."""
    now, texts = yield from _stored(keys)
    found = {name: _comparison(text, now) for name, text in sorted(texts.items())}
    return Comparisons(now, {name: one for name, one in found.items() if one is not None})


def comparison(keys: Keys, name: str) -> Plan[tuple[int, Comparison]]:
    """Return the time now (Unix ms) and a comparison. Raises ComparisonNotFound."""
    found = yield from comparisons(keys)
    if name not in found.by_name:
        raise ComparisonNotFound(f"no comparison {name!r} was reported within seven days")
    return found.now_ms, found.by_name[name]


def _stored(keys: Keys) -> Plan[tuple[int, dict[str, str]]]:
    now = yield from now_ms()
    return now, (yield call("HGETALL", keys.drift))


def _comparison(text: str, now: int) -> Comparison | None:
    """Return what is stored; None of what is none, or older than it is kept."""
    try:
        found: Comparison = decoded(text.encode(errors="replace"), Comparison)
    except msgspec.MsgspecError:
        return None
    return found if found.at_ms > now - KEPT_MS else None


def _state(found: DriftReport) -> str:
    """Return what an entry has of a report; reports of which it is equal say the same."""
    state = {
        "outcome": found.outcome,
        "name_servers": found.name_servers,
        "counts": {kind: found.counts[kind] for kind in KINDS if kind in found.counts},
        "unreachable": sorted(one.name_server for one in found.unreachable),
    }
    return as_json(state).decode()


def _fields(name: str, before: str | None, after: str | None) -> tuple[str, ...]:
    """Return the fields of an entry: name, value, and so on."""
    states = (("before", before), ("after", after))
    return (
        "comparison",
        name,
        *(word for field, text in states if text is not None for word in (field, text)),
    )


def _write(
    keys: Keys, cause: str, fields: tuple[str, ...], rows: list[tuple[str, str, str]], origin: Origin
) -> Plan[str | None]:
    """Write rows, with an entry if it has fields, and return its id, "" without one; None if another writer was faster.

    Raises TableFull."""
    request = {
        "origin": origin,
        "cause": cause,
        "fields": fields,
        "rows": rows,
        "most": COMPARISONS_MOST,
        "kept_ms": KEPT_MS,
    }
    reply = str((yield ScriptCall("set_drift", (keys.events_meta, keys.drift), (as_json(request),))))
    if reply == "full":
        raise TableFull(f"comparison {rows[0][0]!r}", COMPARISONS_MOST, "comparisons", "delete one of them")
    return None if reply == "changed" else reply
