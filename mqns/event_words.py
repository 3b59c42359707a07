"""What an entry of the event stream says, in words (docs/events.md): for lines of a terminal, and for pages.

Words are parts: text, names of what can be looked at by itself, and times, which each reader writes in its own way."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, Final, Literal

import msgspec

from rocketmq_remoting.permission import perm_text
from rocketmq_remoting.typed import converted

__all__ = ["KINDS", "WORDS", "Instant", "Part", "Subject", "queues_change", "quoted", "words_of"]

Data = Mapping[str, Any]
SHOWN: Final = 3
"""Names and rows of one entry; how many others there are is said."""
FIELDS_SHOWN: Final = 10
"""Of an entry that another program wrote."""
CHARACTERS: Final = 60
"""Of a value or name."""
LINE: Final = 1000
"""Characters of all that an entry says."""
QUOTED: Final = " \"'"
"""Characters for which a name is quoted; isprintable() is False of all other blanks."""
MEMBER: Final = frozenset({"cluster", "broker", "id", "addr", "epoch", "group_cluster", "also"})
"""Fields of `broker_updated` that say which member it is."""
BEFORE: Final = "_before"


class Subject(msgspec.Struct, frozen=True):
    """The whole name of a broker, topic or cluster. As text it is `quoted`."""

    of: Literal["broker", "topic", "cluster"]
    name: str

    def __str__(self) -> str:
        return quoted(self.name)


class Instant(msgspec.Struct, frozen=True):
    """A time in Unix ms; `exact` if its ms matter."""

    ms: int
    exact: bool = True


Part = str | Subject | Instant
Parts = Iterator[Part]


def words_of(kind: str | None, data: Data, topic: str | None = None) -> list[Part]:
    """Return what happened by an entry's kind and fields; the fields as they are where they are other ones than a name
    server writes. `topic` comes first among the topics of an entry that names many."""
    try:
        if kind == "topics_changed":
            parts = list(_topics_changed(data, topic))
        else:
            parts = list(WORDS.get(kind or "", _fields)(data))
    except (LookupError, TypeError, ValueError):
        parts = list(_fields(data))
    return list(_first(parts))


def quoted(value: object) -> str:
    """Return a name; as JSON where it has blanks, quotes or what is not printed, and may be taken for other words."""
    name = _cut(value)
    plain = name.isprintable() and not any(character in QUOTED for character in name)
    return name if name and plain else json.dumps(name, ensure_ascii=False)


def _first(parts: Iterable[Part]) -> Parts:
    """Yield parts of LINE characters; the text that goes beyond is cut."""
    left = LINE
    for part in parts:
        if isinstance(part, str) and len(part) > left:
            yield _cut(part, left)
            return
        yield part
        left -= len(part) if isinstance(part, str) else len(str(part))
        if left < 0:
            yield "…"
            return


def _fields(data: Data) -> Parts:
    shown = [f"{quoted(name)}={_value(value)}" for name, value in islice(data.items(), FIELDS_SHOWN)]
    more = [f"{len(data) - FIELDS_SHOWN} more fields"] if len(data) > FIELDS_SHOWN else []
    yield " ".join([*shown, *more]) or "no fields"


def _stream_started(_: Data) -> Parts:
    yield "a new stream of events"


def _broker_registered(data: Data) -> Parts:
    yield from _member(data)
    yield f" entered{_others(data)}"


def _broker_removed(data: Data) -> Parts:
    yield from _member(data)
    yield f" left{_others(data)}"
    if isinstance(seen := data.get("last_seen_ms"), int):
        yield "; last heartbeat "
        yield Instant(seen)


def _broker_updated(data: Data) -> Parts:
    yield from _member(data)
    changed = [name for name in data if name not in MEMBER and not name.endswith(BEFORE)]
    yield ": " + ", ".join(
        f"{quoted(name)} {_change(data.get(name + BEFORE), data[name])}" for name in changed
    )


def _topics_changed(data: Data, topic: str | None) -> Parts:
    rows = converted(data["rows"], list[tuple[str, str, str, list[str]]])
    rows.sort(key=lambda row: topic not in row[3])
    yield from _some((_row(row, topic) for row in rows), "; ")


def _row(row: tuple[str, str, str, list[str]], topic: str | None) -> Parts:
    broker, before, after, topics = row
    listed = sorted(topics, key=lambda name: name != topic)
    yield from _some(([Subject("topic", name)] for name in listed), ", ")
    yield " on "
    yield Subject("broker", broker)
    yield f": {queues_change(before, after)}"


def _mappings_changed(data: Data) -> Parts:
    rows = converted(data["rows"], list[tuple[str, str, Any, Any]])
    yield "static topics: "
    yield from _some(
        (
            [Subject("topic", topic), " on ", Subject("broker", broker), f" {_verb(before, after)}"]
            for broker, topic, before, after in rows
        ),
        ", ",
    )


def _kv_changed(data: Data) -> Parts:
    change = _change(_text_or_size(data, "before"), _text_or_size(data, "after"))
    yield f"{quoted(data['kv_ns'])} {quoted(data['key'])}: {change}"


def _settings_changed(data: Data) -> Parts:
    changes = converted(data["changes"], dict[str, tuple[Any, Any]])
    yield from _some(([f"{quoted(option)} {_change(*change)}"] for option, change in changes.items()), ", ")


class _Hold(msgspec.Struct):
    from_ms: int
    until_ms: int


def _hold_changed(data: Data) -> Parts:
    yield "leases held: "
    yield from _hold(data.get("before"))
    yield " -> "
    yield from _hold(data.get("after"))


def _hold(value: Any) -> Parts:
    if value is None:
        yield "none"
        return
    hold = converted(value, _Hold)
    yield from ("those that end from ", Instant(hold.from_ms), ", until ", Instant(hold.until_ms))


class _Drain(msgspec.Struct):
    owner: str
    reason: str
    until_ms: int | None = None


def _drain_changed(data: Data) -> Parts:
    yield Subject("broker", _text(data["broker"]))
    yield ": "
    yield from _drain(data.get("before"))
    yield " -> "
    yield from _drain(data.get("after"))


def _drain(value: Any) -> Parts:
    if value is None:
        yield "not drained"
        return
    drain = converted(value, _Drain)
    yield f"drained for {quoted(drain.owner)}, {_value(drain.reason)}"
    if drain.until_ms:
        yield from (" until ", Instant(drain.until_ms, exact=False))


def _access_changed(data: Data) -> Parts:
    if "credential" not in data:
        yield _rules_changed(data)
        return
    roles = data.get("roles")
    yield f"{quoted(data['credential'])} of {quoted(data['principal'])}"
    if isinstance(roles, list):
        yield " as "
        yield from _some(([quoted(role)] for role in roles), ", ")
    if isinstance(until := data.get("expires_ms"), int):
        yield from (" until ", Instant(until))
    if "replaces" in data:
        yield f", in place of {quoted(data['replaces'])}"


def _rules_changed(data: Data) -> str:
    """The options; of principals their names, where these are known."""
    changes = converted(data["changes"], dict[str, tuple[Any, Any]])
    said = [f"{quoted(key)} {_change(*change)}" for key, change in changes.items() if key != "principals"]
    for word in ("added", "changed", "removed"):
        if names := converted(data.get(word, []), list[str]):
            said.append(f"{word} {_some_text(map(quoted, names))}")
    return "; ".join(said) or "principals of the access file"


def _access_denied(data: Data) -> Parts:
    yield f"{quoted(data['operation'])}, of class {quoted(data['class'])}"
    if isinstance(times := data.get("count"), int) and times > 1:
        yield f", {times} times"


def _conflict_seen(data: Data) -> Parts:
    yield from _member(data)
    holder = " ".join(f"{quoted(name)} {_value(value)}" for name, value in _table(data["holder"]).items())
    yield f" {quoted(data['action'])}; there was {holder}"


class _Drift(msgspec.Struct):
    outcome: str
    counts: dict[str, int]
    unreachable: list[str]


def _drift_changed(data: Data) -> Parts:
    states = _drift(data.get("before")), _drift(data.get("after"))
    yield f"{quoted(data['comparison'])}: {states[0]} -> {states[1]}"


def _drift(value: Any) -> str:
    if value is None:
        return "not compared"
    drift = converted(value, _Drift)
    if drift.unreachable:
        return f"no answer of {_some_text(map(quoted, drift.unreachable))}"
    counts = [f"{number} {quoted(kind)}" for kind, number in drift.counts.items()]
    return _some_text(counts) if counts else quoted(drift.outcome)


def _tables_repaired(data: Data) -> Parts:
    names = [
        f"{field} {_some_text(map(quoted, data[field]))}"
        for field in ("brokers", "topics", "keys")
        if data.get(field)
    ]
    yield "; ".join([f"{quoted(data['count'])} rows", *names])


def _checkpoint(data: Data) -> Parts:
    yield f"round {quoted(data['round'])}: {quoted(data['scope'])}"
    if "broker" in data:
        yield from (" of ", Subject("broker", _text(data["broker"])))


def _member(data: Data) -> Parts:
    yield Subject("broker", _text(data["broker"]))
    yield f" {quoted(data['id'])}={quoted(data['addr'])} of "
    yield Subject("cluster", _text(data["cluster"]))


def _others(data: Data) -> str:
    """Return which members the broker has now, unless it is one that just entered."""
    addresses = {int(number): quoted(address) for number, address in _table(data["addrs"]).items()}
    if not addresses:
        return "; none is left"
    listed = " ".join(f"{number}={address}" for number, address in sorted(addresses.items()))
    return "" if set(addresses) == {data["id"]} else f"; now {_cut(listed)}"


def queues_change(before: str, after: str) -> str:
    """Return `8/8 RW- -> 8/8 R--` of queue data, each "" where there is none. Raises ValueError."""
    if not before:
        return f"added {_queues(after)}"
    return f"{_queues(before)} -> {_queues(after)}" if after else f"deleted, was {_queues(before)}"


def _queues(text: str) -> str:
    """Return `8/8 RW-`, read and write queues and the permission."""
    read, write, perm, flag = map(int, text.split(","))
    return f"{read}/{write} {perm_text(perm)}" + (f" flag {flag}" if flag else "")


def _table(value: Any) -> dict[str, Any]:
    """Return an object of JSON. Raises msgspec.ValidationError for anything else."""
    return converted(value, dict[str, Any])


def _text(value: Any) -> str:
    """Return what is named, also where another program wrote what is no text."""
    return value if isinstance(value, str) else str(value)


def _verb(before: object, after: object) -> str:
    if before is None:
        return "added"
    return "deleted" if after is None else "changed"


def _text_or_size(data: Data, field: str) -> str | None:
    size = data.get(f"{field}_bytes")
    return data.get(field) if size is None else f"{size} bytes"


def _change(before: object, after: object) -> str:
    return f"{_value(before)} -> {_value(after)}"


def _value(value: object) -> str:
    return "none" if value is None else _cut(json.dumps(value, ensure_ascii=False))


def _some(listed: Iterable[Iterable[Part]], separator: str) -> Parts:
    """Yield the first of what is listed, and how many others there are."""
    rest = iter(listed)
    for place, parts in enumerate(islice(rest, SHOWN)):
        yield from ([separator] if place else [])
        yield from parts
    if more := sum(1 for _ in rest):
        yield f"{separator}{more} more"


def _some_text(texts: Iterable[str]) -> str:
    return "".join(map(str, _some(([text] for text in texts), ", ")))


def _cut(text: object, most: int = CHARACTERS) -> str:
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[:most]}…"


WORDS: Final[Mapping[str, Callable[[Data], Parts]]] = {
    "stream_started": _stream_started,
    "broker_registered": _broker_registered,
    "broker_updated": _broker_updated,
    "broker_removed": _broker_removed,
    "mappings_changed": _mappings_changed,
    "kv_changed": _kv_changed,
    "settings_changed": _settings_changed,
    "hold_changed": _hold_changed,
    "drain_changed": _drain_changed,
    "access_changed": _access_changed,
    "access_denied": _access_denied,
    "conflict_seen": _conflict_seen,
    "tables_repaired": _tables_repaired,
    "drift_changed": _drift_changed,
    "checkpoint": _checkpoint,
}
KINDS: Final = (*WORDS, "topics_changed")
