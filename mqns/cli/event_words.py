"""An entry of the event stream as a line: when, what happened and why, to what, who did it (docs/events.md)."""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import get_close_matches
from itertools import islice
from typing import Annotated, Any, Final

import msgspec

from mqns.cli.moments import moment_text
from mqns.cli.output import Document
from mqns.cli.routes import addresses_text, perm_text
from rocketmq_remoting.typed import converted

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
SUBJECT: Final = frozenset({"cluster", "broker", "id", "addr", "epoch", "group_cluster", "also"})
"""Fields of `broker_updated` that say which member it is."""
BEFORE: Final = "_before"


EntryId = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{1,20}-[0-9]{1,20}$")]


class EntryDocument(Document, frozen=True):
    """An entry as the HTTP API has it (docs/http-api.md), without its fields as they are written."""

    id: EntryId
    at_millis: int
    kind: str | None
    cause: str | None
    inc: int | None
    seq: int | None
    part: str | None
    op: str | None
    actor: str | None
    peer: str | None
    data: dict[str, Any]


class _Drain(msgspec.Struct):
    owner: str
    reason: str
    until_ms: int | None = None


class _Hold(msgspec.Struct):
    from_ms: int
    until_ms: int


def unknown_kind(kind: str) -> str | None:
    """Return a sentence about a kind that this release does not know, None for one that it knows."""
    if kind in KINDS:
        return None
    near = [known for known in KINDS if kind and known.startswith(kind)] or get_close_matches(
        kind, KINDS, n=1
    )
    meant = f"did you mean {' or '.join(near)}?" if near else f"kinds are {', '.join(KINDS)}"
    return f"--kind: {kind!r} is no kind that this release knows; {meant}"


def line_of(entry: EntryDocument, topic: str | None = None) -> str:
    """Return the entry in one line; `topic` comes first among the topics of an entry that names many."""
    kind = _name(entry.kind) if entry.kind else "no kind"
    what = f"{kind}/{_name(entry.cause)}" if entry.cause else kind
    actor = _name(entry.actor) if entry.actor else "no actor"
    peer = f" ({_name(entry.peer)})" if entry.peer else ""
    words = _cut(_words(entry, topic), LINE)
    return f"{moment_text(entry.at_millis)} {what} {words} by {actor}{peer}"


def _words(entry: EntryDocument, topic: str | None) -> str:
    """Return what happened; the fields as they are where they are other ones than a name server writes."""
    try:
        if entry.kind == "topics_changed":
            return _topics_changed(entry.data, topic)
        return WORDS.get(entry.kind or "", _fields)(entry.data)
    except (LookupError, TypeError, ValueError):
        return _fields(entry.data)


def _fields(data: Data) -> str:
    shown = [f"{_name(name)}={_value(value)}" for name, value in islice(data.items(), FIELDS_SHOWN)]
    more = [f"{len(data) - FIELDS_SHOWN} more fields"] if len(data) > FIELDS_SHOWN else []
    return " ".join([*shown, *more]) or "no fields"


def _stream_started(data: Data) -> str:
    return "a new stream of events"


def _broker_registered(data: Data) -> str:
    return f"{_member(data)} entered{_others(data)}"


def _broker_removed(data: Data) -> str:
    seen = data.get("last_seen_ms")
    heartbeat = f"; last heartbeat {moment_text(seen)}" if isinstance(seen, int) else ""
    return f"{_member(data)} left{_others(data)}{heartbeat}"


def _broker_updated(data: Data) -> str:
    changed = [name for name in data if name not in SUBJECT and not name.endswith(BEFORE)]
    return f"{_member(data)}: " + ", ".join(
        f"{_name(name)} {_change(data.get(name + BEFORE), data[name])}" for name in changed
    )


def _topics_changed(data: Data, topic: str | None) -> str:
    rows = converted(data["rows"], list[tuple[str, str, str, list[str]]])
    rows.sort(key=lambda row: topic not in row[3])
    return _some(
        [
            f"{_topics(topics, topic)} on {_name(broker)}: {_queues_change(before, after)}"
            for broker, before, after, topics in rows
        ],
        "; ",
    )


def _mappings_changed(data: Data) -> str:
    rows = converted(data["rows"], list[tuple[str, str, Any, Any]])
    return "static topics: " + _some(
        [
            f"{_name(topic)} on {_name(broker)} {_verb(before, after)}"
            for broker, topic, before, after in rows
        ],
        ", ",
    )


def _kv_changed(data: Data) -> str:
    return f"{_name(data['kv_ns'])} {_name(data['key'])}: " + _change(
        _text_or_size(data, "before"), _text_or_size(data, "after")
    )


def _settings_changed(data: Data) -> str:
    changes = converted(data["changes"], dict[str, tuple[Any, Any]])
    return _some([f"{_name(option)} {_change(*change)}" for option, change in changes.items()], ", ")


def _hold_changed(data: Data) -> str:
    return f"leases held: {_hold(data.get('before'))} -> {_hold(data.get('after'))}"


def _hold(value: Any) -> str:
    if value is None:
        return "none"
    hold = converted(value, _Hold)
    return f"those that end from {moment_text(hold.from_ms)}, until {moment_text(hold.until_ms)}"


def _drain_changed(data: Data) -> str:
    return f"{_name(data['broker'])}: {_drain(data.get('before'))} -> {_drain(data.get('after'))}"


def _drain(value: Any) -> str:
    if value is None:
        return "not drained"
    drain = converted(value, _Drain)
    until = f" until {moment_text(drain.until_ms, 'seconds')}" if drain.until_ms else ""
    return f"drained for {_name(drain.owner)}, {_value(drain.reason)}{until}"


def _conflict_seen(data: Data) -> str:
    holder = " ".join(f"{_name(name)} {_value(value)}" for name, value in _table(data["holder"]).items())
    return f"{_member(data)} {_name(data['action'])}; there was {holder}"


def _tables_repaired(data: Data) -> str:
    names = [
        f"{field} {_some(map(_name, data[field]), ', ')}"
        for field in ("brokers", "topics", "keys")
        if data.get(field)
    ]
    return "; ".join([f"{_name(data['count'])} rows", *names])


def _checkpoint(data: Data) -> str:
    broker = f" of {_name(data['broker'])}" if "broker" in data else ""
    return f"round {_name(data['round'])}: {_name(data['scope'])}{broker}"


def _member(data: Data) -> str:
    return f"{_name(data['broker'])} {_name(data['id'])}={_name(data['addr'])} of {_name(data['cluster'])}"


def _others(data: Data) -> str:
    """Return which members the broker has now, unless it is one that just entered."""
    addresses = {int(number): _name(address) for number, address in _table(data["addrs"]).items()}
    if not addresses:
        return "; none is left"
    return "" if set(addresses) == {data["id"]} else f"; now {_cut(addresses_text(addresses))}"


def _topics(topics: Sequence[str], topic: str | None) -> str:
    return _some(map(_name, sorted(topics, key=lambda name: name != topic)), ", ")


def _queues_change(before: str, after: str) -> str:
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


def _some(texts: Iterable[str], separator: str) -> str:
    """Return the first texts, and how many others there are."""
    listed = list(texts)
    more = [f"{len(listed) - SHOWN} more"] if len(listed) > SHOWN else []
    return separator.join([*listed[:SHOWN], *more])


def _name(value: object) -> str:
    """Return a name; as JSON where it has blanks, quotes or what is not printed, and may be taken for other words."""
    name = _cut(value)
    plain = name.isprintable() and not any(character in QUOTED for character in name)
    return name if name and plain else json.dumps(name, ensure_ascii=False)


def _cut(text: object, most: int = CHARACTERS) -> str:
    whole = str(text)
    return whole if len(whole) <= most else f"{whole[:most]}…"


def _access_changed(data: Data) -> str:
    if "credential" not in data:
        return _rules_changed(data)
    roles = data.get("roles")
    until = data.get("expires_ms")
    return "".join(
        (
            f"{_name(data['credential'])} of {_name(data['principal'])}",
            f" as {_some([_name(role) for role in roles], ', ')}" if isinstance(roles, list) else "",
            f" until {moment_text(until)}" if isinstance(until, int) else "",
            f", in place of {_name(data['replaces'])}" if "replaces" in data else "",
        )
    )


def _rules_changed(data: Data) -> str:
    """The options; of principals their names, where these are known."""
    changes = converted(data["changes"], dict[str, tuple[Any, Any]])
    said = [f"{_name(key)} {_change(*change)}" for key, change in changes.items() if key != "principals"]
    for word in ("added", "changed", "removed"):
        names = converted(data.get(word, []), list[str])
        said += [f"{word} {_some(map(_name, names), ', ')}"] if names else []
    return "; ".join(said) or "principals of the access file"


def _access_denied(data: Data) -> str:
    times = data.get("count")
    return "".join(
        (
            f"{_name(data['operation'])}, of class {_name(data['class'])}",
            f", {times} times" if isinstance(times, int) and times > 1 else "",
        )
    )


class _Drift(msgspec.Struct):
    outcome: str
    counts: dict[str, int]
    unreachable: list[str]


def _drift_changed(data: Data) -> str:
    states = _drift(data.get("before")), _drift(data.get("after"))
    return f"{_name(data['comparison'])}: {states[0]} -> {states[1]}"


def _drift(value: Any) -> str:
    if value is None:
        return "not compared"
    drift = converted(value, _Drift)
    if drift.unreachable:
        return f"no answer of {_some(map(_name, drift.unreachable), ', ')}"
    counts = [f"{number} {_name(kind)}" for kind, number in drift.counts.items()]
    return _some(counts, ", ") if counts else _name(drift.outcome)


WORDS: Final[Mapping[str, Callable[[Data], str]]] = {
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
