"""What differs between two times, from the entries between them: of each thing its first state and its last.

Entries are as the API answers them, newest first. One that another program damaged says nothing here."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from heapq import nsmallest
from typing import Any, Final, Literal

import msgspec

from mqns.event_words import queues_change
from rocketmq_remoting.typed import converted

__all__ = ["SUBJECTS", "Actor", "Changed", "Net", "Subject", "actors", "net"]

Entry = Mapping[str, Any]
Key = tuple[str, ...]
State = tuple[Key, Any, Any]
"""A thing, and what it was before and after an entry; None where it was not there."""
KNOWN_BY_PORT: Final = ("wire:", "http:")


class Changed(msgspec.Struct, frozen=True):
    """A thing that is not as it was: `verb` says what became of it, `text` from what to what."""

    key: Key
    verb: str
    text: str


class Net(msgspec.Struct, frozen=True):
    """What is not as it was: the first of it by name, and how many there are in all, by verb. `as_before` changed and
    are as they were again."""

    first: tuple[Changed, ...]
    counts: Mapping[str, int]
    as_before: int

    @property
    def total(self) -> int:
        """How many things are not as they were."""
        return sum(self.counts.values())


class Subject(msgspec.Struct, frozen=True):
    """A kind of things. `of` is what the parts of a key are: `broker` and `topic` have pages, "" is text. `verbs` are
    for what is there, is there no more, and is another one. `kinds` are those of its entries. Things `of_brokers` go
    with the broker, the last part of their key."""

    name: str
    title: str
    of: tuple[Literal["broker", "topic", ""], ...]
    verbs: tuple[str, str, str]
    kinds: tuple[str, ...]
    states: Callable[[Entry], Iterator[State]]
    text: Callable[[Any, Any], str]
    of_brokers: bool = False


class Actor(msgspec.Struct, frozen=True):
    """An actor without the port, and how many entries are its."""

    name: str
    entries: int


def net(subject: Subject, entries: Sequence[Entry], most: int) -> Net:
    """Return what became of the things of a subject, the first `most` of them by name. What a broker took away with it,
    or brought back, is listed as far as entries of this time say what it was before."""
    states: dict[Key, tuple[Any, Any]] = {}
    there: dict[str, list[Key]] = defaultdict(list)
    left: set[str] = set()
    for entry in reversed(entries):
        if subject.of_brokers and (broker := _broker_gone(entry)) is not None:
            left.add(broker)
            states |= {key: (states[key][0], None) for key in there.pop(broker, ())}
        elif entry["kind"] in subject.kinds:
            for key, before, after in _readable(subject, entry):
                if key in states or key[-1] not in left:
                    states[key] = (states[key][0] if key in states else before, after)
                    there[key[-1]].append(key)
    changed = {key: state for key, state in states.items() if state[0] != state[1]}
    return Net(
        tuple(
            Changed(key, _verb(subject, *changed[key]), subject.text(*changed[key]))
            for key in nsmallest(most, changed)
        ),
        Counter(_verb(subject, *state) for state in changed.values()),
        len(states) - len(changed),
    )


def _broker_gone(entry: Entry) -> str | None:
    """Return the broker whose last member an entry removes."""
    data = entry["data"]
    return str(data.get("broker")) if entry["kind"] == "broker_removed" and data.get("addrs") == {} else None


def actors(entries: Iterable[Entry]) -> list[Actor]:
    """Return the actors of entries, the busiest first."""
    counts = Counter(_without_port(entry["actor"] or "") for entry in entries)
    return [Actor(name, count) for name, count in counts.most_common()]


def _without_port(actor: str) -> str:
    host, _, port = actor.rpartition(":")
    return host if actor.startswith(KNOWN_BY_PORT) and ":" in host and port.isdigit() else actor


def _verb(subject: Subject, before: Any, after: Any) -> str:
    came, went, changed = subject.verbs
    if before is None:
        return came
    return went if after is None else changed


def _readable(subject: Subject, entry: Entry) -> list[State]:
    """Return what an entry says of things; nothing of one whose fields are other ones than a name server writes."""
    try:
        return list(subject.states(entry))
    except (LookupError, TypeError, ValueError):
        return []


def _members(entry: Entry) -> Iterator[State]:
    data = entry["data"]
    key, there = (str(data["broker"]), f"{data['id']}={data['addr']}"), data["cluster"]
    yield (key, None, there) if entry["kind"] == "broker_registered" else (key, there, None)


def _attributes(entry: Entry) -> Iterator[State]:
    data = entry["data"]
    for name in data:
        if name.endswith("_before"):
            attribute = name.removesuffix("_before")
            yield (
                (str(data["broker"]), str(data["addr"]), attribute),
                _there(data[name]),
                _there(data.get(attribute)),
            )


def _there(value: Any) -> str:
    """Return an attribute as text: what is absent or empty is one of no value, and no thing that came or went."""
    return "none" if value in (None, "") else _text(value)


def _queue_data(entry: Entry) -> Iterator[State]:
    for broker, before, after, topics in converted(
        entry["data"]["rows"], list[tuple[str, str, str, list[str]]]
    ):
        for topic in topics:
            yield (topic, broker), before or None, after or None


def _static_topics(entry: Entry) -> Iterator[State]:
    for broker, topic, before, after in converted(entry["data"]["rows"], list[tuple[str, str, Any, Any]]):
        yield (topic, broker), before, after


def _drains(entry: Entry) -> Iterator[State]:
    data = entry["data"]
    yield (str(data["broker"]),), data.get("before"), data.get("after")


def _values(entry: Entry) -> Iterator[State]:
    data = entry["data"]
    before, after = (data.get(f"{name}_bytes", data.get(name)) for name in ("before", "after"))
    yield (str(data["kv_ns"]), str(data["key"])), before, after


def _settings(entry: Entry) -> Iterator[State]:
    for option, (before, after) in converted(entry["data"]["changes"], dict[str, tuple[Any, Any]]).items():
        yield (option,), before, after


def _cluster(before: Any, after: Any) -> str:
    return f"of {before if after is None else after}"


def _queues(before: Any, after: Any) -> str:
    try:
        return queues_change(before or "", after or "")
    except (TypeError, ValueError):
        return _change(before, after)


def _drain(before: Any, after: Any) -> str:
    drain = before if after is None else after
    return f"by {drain.get('owner')}: {drain.get('reason')}" if isinstance(drain, dict) else _text(drain)


def _change(before: Any, after: Any) -> str:
    if before is None:
        return _text(after)
    return f"was {_text(before)}" if after is None else f"{_text(before)} → {_text(after)}"


def _nothing(_: Any, __: Any) -> str:
    return ""


def _text(value: Any) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


ADDED: Final = ("added", "removed", "changed")
SUBJECTS: Final = (
    Subject(
        "brokers",
        "Brokers",
        ("broker", ""),
        ("entered", "left", "moved"),
        ("broker_registered", "broker_removed"),
        _members,
        _cluster,
    ),
    Subject(
        "attributes",
        "Attributes of brokers",
        ("broker", "", ""),
        ADDED,
        ("broker_updated",),
        _attributes,
        _change,
    ),
    Subject(
        "topics",
        "Topics on brokers",
        ("topic", "broker"),
        ADDED,
        ("topics_changed",),
        _queue_data,
        _queues,
        of_brokers=True,
    ),
    Subject(
        "static",
        "Static topics",
        ("topic", "broker"),
        ADDED,
        ("mappings_changed",),
        _static_topics,
        _nothing,
        of_brokers=True,
    ),
    Subject(
        "drains", "Drains", ("broker",), ("drained", "ended", "changed"), ("drain_changed",), _drains, _drain
    ),
    Subject("kv", "KV", ("", ""), ADDED, ("kv_changed",), _values, _change),
    Subject("settings", "Settings", ("",), ADDED, ("settings_changed",), _settings, _change),
)
