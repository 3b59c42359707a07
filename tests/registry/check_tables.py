"""The one checker of everything that must hold between the keys of a namespace, whatever was done to it."""

import re
from collections.abc import Callable, Iterator
from typing import Any

from registry.keys import Keys
from tests.registry.stored import Store

QUEUE_DATA = re.compile(r"[1-9]\d*(,-?\d+){4}")
MAPPING = re.compile(r"[1-9]\d*,\{.*\}")
REGISTRANT = re.compile(r"host:.+|principal:[A-Za-z0-9._-]{1,64}")
SLACK_MS = 500  # on a busy machine a script may wait between two of its commands
ELSEWHERE = (
    "access:reported",
    "access:revoked",
    "access:sessions",
    "access:tokens",
    "access:used",
    "audit",
    "drains",
    "drains:ends",
    "events",
    "events:asked",
    "events:consumers",
    "events:groups",
    "events:meta",
    "events:offsets",
    "events:round",
    "events:round:left",
    "events:summaries",
    "heartbeats",
    "lapses",
    "leases",
    "owed",
    "repair",
    "repair:walker",
    "settings",
    "settings:given",
    "tasks",
    "topic_counts",
    "doctor",
    "gone",
    "refused",
    "drift",
    "workers",
    "announced",
)
TRANSIENT = ("access_denied", "http_writes", "kv_bytes", "kv_versions", "pushed")
Hashes = dict[str, dict[str, str]]


class Snapshot:
    """All keys of a namespace, by what they are of: `hashes["broker"]["b1"]` is the hash broker:b1."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self.keys = keys
        self.hashes: dict[str, Hashes] = {
            kind: {} for kind in ("broker", "member", "route", "mapping", "topics_of", "mappings_of", "kv")
        }
        self.sets: dict[str, set[str]] = {kind: set() for kind in ("brokers", "clusters", "topics", "kv")}
        self.cluster: dict[str, set[str]] = {}
        self.alive: dict[str, tuple[str, int]] = {}
        self.texts: dict[str, str] = {}
        self.leases = {key: int(end) for key, end in store.zrange(keys.leases, 0, -1, withscores=True)}
        self.deferred: dict[str, str] = store.hgetall(keys.deferred)
        self.meta: dict[str, str] = store.hgetall(keys.events_meta)
        self.last = store.xrevrange(keys.events, count=1)
        rests = [key.removeprefix(keys.prefix) for key in store.scan_iter(f"{keys.prefix}*", count=1000)]
        pipe = store.pipeline(transaction=False)
        keep = [self._read(pipe, rest, f"{keys.prefix}{rest}") for rest in rests]
        replies = iter(pipe.execute())
        for one in keep:
            one(replies)
        seconds, micros = store.time()
        self.now_ms = seconds * 1000 + micros // 1000

    def _read(self, pipe: Store, rest: str, key: str) -> Callable[[Iterator[Any]], None]:
        """Ask for a key; what is returned takes its part of the replies."""
        kind, _, name = rest.partition(":")
        if rest in ELSEWHERE or kind in TRANSIENT:
            return lambda replies: None
        if rest in self.sets:
            pipe.smembers(key)
            return lambda replies: self.sets.__setitem__(rest, next(replies))
        if kind == "cluster":
            pipe.smembers(key)
            return lambda replies: self.cluster.__setitem__(name, next(replies))
        if kind in self.hashes:
            pipe.hgetall(key)
            return lambda replies: self.hashes[kind].__setitem__(name, next(replies))
        if kind == "alive":
            pipe.get(key)
            pipe.pexpiretime(key)
            return lambda replies: self.alive.__setitem__(name, (next(replies), next(replies)))
        if kind == "pending" or rest == "epoch":
            pipe.get(key)
            return lambda replies: self.texts.__setitem__(rest, next(replies))
        raise AssertionError(f"a key that the catalogue does not have: {key}")


def check_tables(store: Store, keys: Keys, *, clean: bool = True) -> None:
    """Every invariant over all keys; with `clean` no clean-up may be pending either."""
    snapshot = Snapshot(store, keys)
    complaints = [
        *_brokers(snapshot),
        *_members(snapshot),
        *_leases(snapshot),
        *_table(snapshot, "route", "topics_of", QUEUE_DATA),
        *_table(snapshot, "mapping", "mappings_of", MAPPING),
        *_topics(snapshot),
        *_left_over(snapshot, clean),
        *_stream(snapshot),
    ]
    assert not complaints, "\n".join(complaints)


def _brokers(s: Snapshot) -> Iterator[str]:
    brokers = s.hashes["broker"]
    if s.sets["brokers"] != set(brokers):
        yield f"set brokers {sorted(s.sets['brokers'])}, hashes {sorted(brokers)}"
    listed: dict[str, set[str]] = {}
    epochs: set[str] = set()
    for name, fields in brokers.items():
        for cluster in (field[3:] for field in fields if field.startswith("in:")):
            listed.setdefault(cluster, set()).add(name)
        if not any(field.startswith("addr:") for field in fields):
            yield f"broker {name} has no member"
        if f"in:{fields['cluster']}" not in fields:
            yield f"broker {name} is not listed in its own cluster"
        if fields["acting"] not in ("0", "1"):
            yield f"broker {name}: acting is {fields['acting']!r}"
        if fields["epoch"] in epochs or not 0 < int(fields["epoch"]) <= int(s.texts["epoch"]):
            yield f"broker {name}: epoch {fields['epoch']} is not its own, or was never given"
        if int(fields["gen"]) < 1:
            yield f"broker {name}: generation {fields['gen']}"
        epochs.add(fields["epoch"])
    if listed != s.cluster:
        yield f"brokers list clusters {listed}, cluster sets {s.cluster}"
    if s.sets["clusters"] != set(s.cluster):
        yield f"set clusters {sorted(s.sets['clusters'])}, cluster sets {sorted(s.cluster)}"


def _members(s: Snapshot) -> Iterator[str]:
    places = {
        (key, f"{field[5:]}:{name}")
        for name, fields in s.hashes["broker"].items()
        for field, key in fields.items()
        if field.startswith("addr:")
    }
    slots = {
        (key, field[5:])
        for key, fields in s.hashes["member"].items()
        for field in fields
        if field.startswith("slot:")
    }
    if places != slots:
        yield f"places of brokers only: {places - slots}; slots of members only: {slots - places}"
    for key, fields in s.hashes["member"].items():
        if not any(field.startswith("slot:") for field in fields):
            yield f"member {key} is nowhere"
        if missing := {"broker", "id", "timeout", "since"} - set(fields):
            yield f"member {key} lacks {missing}"
        if "registrant" in fields and not REGISTRANT.fullmatch(fields["registrant"]):
            yield f"member {key} was registered by {fields['registrant']!r}"


def _leases(s: Snapshot) -> Iterator[str]:
    if set(s.leases) != set(s.hashes["member"]):
        yield f"leases {sorted(s.leases)}, members {sorted(s.hashes['member'])}"
    for key, (end, expires_ms) in s.alive.items():
        if key not in s.leases or not s.leases[key] - _short_ms(s, key) <= int(end) <= s.leases[key]:
            yield f"alive:{key} says {end}, leases {s.leases.get(key)}"
        elif abs(expires_ms - int(end)) > SLACK_MS:
            yield f"alive:{key} goes at {expires_ms}, and says {end}"
    for key, end_ms in s.leases.items():
        if key not in s.alive and end_ms - _short_ms(s, key) > s.now_ms:
            yield f"alive:{key} is missing"


def _short_ms(s: Snapshot, key: str) -> float:
    """Return by how much a countdown may end before the lease (lua/includes/countdown.lua)."""
    return float(s.hashes["member"].get(key, {}).get("timeout", 0)) / 8


def _table(s: Snapshot, forward: str, reverse: str, form: re.Pattern[str]) -> Iterator[str]:
    by_topic = {
        (name, topic): text for topic, fields in s.hashes[forward].items() for name, text in fields.items()
    }
    by_name = {
        (name, topic): text for name, fields in s.hashes[reverse].items() for topic, text in fields.items()
    }
    for place in by_topic.keys() | by_name.keys():
        if by_topic.get(place) != by_name.get(place):
            yield f"{place}: {forward} has {by_topic.get(place)}, {reverse} {by_name.get(place)}"
    yield from (
        f"{place}: {text!r} in {forward}" for place, text in by_topic.items() if not form.fullmatch(text)
    )


def _topics(s: Snapshot) -> Iterator[str]:
    if s.sets["topics"] != set(s.hashes["route"]):
        yield f"set topics and routes differ by {s.sets['topics'] ^ set(s.hashes['route'])}"


def _left_over(s: Snapshot, clean: bool) -> Iterator[str]:
    pending = [key for key in s.texts if key != "epoch"]
    if clean and (s.deferred or pending):
        yield f"deferred {s.deferred}, pending {pending}"
    for kind in ("topics_of", "mappings_of"):
        for name, fields in s.hashes[kind].items():
            epoch = s.hashes["broker"].get(name, {}).get("epoch")
            old = {topic: text for topic, text in fields.items() if text.partition(",")[0] != epoch}
            if old and (clean or f"clean:{name}" not in s.deferred):
                yield f"{kind}:{name} holds {len(old)} fields of another epoch than {epoch}, deferred {s.deferred}"


def _stream(s: Snapshot) -> Iterator[str]:
    if s.last and (s.last[0][1]["seq"], s.last[0][1]["inc"]) != (s.meta.get("seq"), s.meta.get("inc")):
        yield f"events:meta {s.meta}, last entry {s.last[0]}"
    if unknown := set(s.hashes["kv"]) - s.sets["kv"]:
        yield f"KV namespaces that are not listed: {unknown}"
