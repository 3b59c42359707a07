"""How registrations leave the straight way, by name. The test finds it out by itself, from what was stored and said
before."""

from collections import Counter
from collections.abc import Iterator, Sequence
from copy import copy
from typing import Any, Final, NamedTuple

from registry.keys import Keys
from registry.plans import Call, ScriptCall
from registry.queue_data.slices import TOPICS_MAX
from registry.registration.cache import RegistrationCache
from rocketmq_remoting.topic_queue_mapping import encode_mapping_info
from tests.registry.brokers import V4, V5
from tests.registry.stored import Store
from tests.registry.two_ways.asked import Asked, Trace

SCRIPT: Final = "reregister_topics"
BEFORE_3_0_11: Final = 36
HEADER: Final = {
    "number": 0,
    "ha": None,
    "zone": None,
    "acting": None,
    "timeout_ms": 120_000,
    "header": V5,
    "compressed": False,
    "filters": (),
}
"""What no registration changes on the straight way, and its usual value."""
NOT_ASKED: Final = (
    *("not cached", "deletes topics", "a slave", "same version", "several slices"),
    *("laid out otherwise", "another name", "another registrant"),
    *(f"another {one}" for one in HEADER if one != "compressed"),
)
DIFFERS: Final = ("dv", "sig", "epoch", "gen", "lease", "connection", "time-out", "the call before")
EXITS: Final = (
    "short cut",
    *("done: topics", "done: more topics", "done: static topics", "done: version", "done: beside others"),
    *("full: refused", "full: written", "error: body", "error: wrong type"),
    *(f"differs: {one}" for one in DIFFERS),
    *(f"not asked: {one}" for one in NOT_ASKED),
)
"""The short cut, every end of `RegisterOperation.try_reregister`, and every reply of `lua/reregister_topics.lua`.

Nothing leads to two others: a topic that stays otherwise than a body has it under a new data version, and a member that
one call has under two names."""


class Seen(NamedTuple):
    """What is stored of a member and its broker; a wrong type is None."""

    dv: str | None
    sig: str | None
    epoch: str | None
    gen: str | None
    timeout: str | None
    mark: str | None
    lease: float
    damaged: bool

    def changed(self, since: "Seen") -> Iterator[str]:
        """Yield what is not as it was."""
        for name in ("dv", "sig", "epoch", "gen"):
            if getattr(self, name) != getattr(since, name):
                yield name


class Before(NamedTuple):
    """What was there when a registration began: `cached` is the worker's table of the member, which its registration
    `last` left when the store had `then`."""

    now: Seen
    cached: Any
    last: Asked | None
    then: Seen | None
    changed: tuple[bool, bool]
    """Whether topics and static topics change."""
    many: bool
    """More topics change than one script writes."""


class Exits:
    """Counts the exits that registrations take in a namespace, and has each explained."""

    def __init__(self, store: Store, keys: Keys, caches: Sequence[RegistrationCache]) -> None:
        self.taken = Counter[str]()
        self._store = store
        self._keys = keys
        self._caches = caches
        self._last: dict[tuple[int, str], tuple[Asked, Seen]] = {}

    def observe(self, requests: Sequence[Call | ScriptCall], _: float, replies: Sequence[Any]) -> None:
        """Take notice of a round trip of the driver."""
        for request, reply in zip(requests, replies, strict=True):
            if isinstance(request, ScriptCall) and request.name == SCRIPT and isinstance(reply, list):
                done = sum(of_item[0] == "done" for of_item in reply[1:])
                self.taken["done: beside others"] += done > 1

    def before(self, asked: Asked) -> Before:
        last, then = self._last.get((asked.worker, asked.member), (None, None))
        changed, many = self._changes(asked)
        return Before(self._seen(asked), copy(self._cached(asked)), last, then, changed, many)

    def after(
        self,
        asked: Asked,
        before: Before,
        trace: Trace,
        answer: str,
        entries: list[dict[str, str]],
        now_ms: int,
    ) -> None:
        """Count the exit of a registration that no other of the same moment met. Raises AssertionError where it should
        have gone the straight way and did not, or the other way about."""
        self._note_last(asked, before)
        replies = trace.of(SCRIPT)
        if "renewed" in trace.of("renew_registration"):
            self.taken["short cut"] += 1
            return
        if before.now.damaged:
            self.taken["error: wrong type"] += "WRONGTYPE" in replies
            return
        if before.cached is not None and before.last is None:
            return  # what it left was not seen
        reasons = [*_not_asked(asked, before)]
        differs = [*_differs(asked, before, now_ms)]
        if answer.startswith("BodyError"):
            self.taken["error: body"] += not reasons
            return
        assert differs or bool(reasons) == (not replies), f"{reasons}, and {trace.replies}"
        if not replies:
            self._only("not asked", reasons)
            return
        assert (replies == ["differs"]) == bool(differs), f"{differs}, but {replies}"
        match replies[0]:
            case "differs":
                self._only("differs", differs)
            case "full":
                self.taken["full: refused" if answer.startswith("LimitReached") else "full: written"] += 1
            case "done":
                assert self._cached(asked) != before.cached, "what it wrote is not cached"
                self._done(entries)

    def after_another(
        self, asked: Asked, before: Before, trace: Trace, entries: list[dict[str, str]]
    ) -> None:
        """The same of one whose member or broker another one of the same moment registered."""
        self._last.pop((asked.worker, asked.member), None)
        if trace.of(SCRIPT) == ["done"]:
            self._done(entries)
        elif trace.of(SCRIPT) == ["differs"] and before.then and not [*before.now.changed(before.then)]:
            self.taken["differs: the call before"] += 1

    def _note_last(self, asked: Asked, before: Before) -> None:
        """A table that is cached now and was not before is what this registration left."""
        cached = self._cached(asked)
        if cached is None:
            self._last.pop((asked.worker, asked.member), None)
        elif cached != before.cached:
            self._last[asked.worker, asked.member] = asked, self._seen(asked)

    def _only(self, way: str, reasons: list[str]) -> None:
        """Only what is the one reason is certainly looked at."""
        if len(reasons) == 1:
            self.taken[f"{way}: {reasons[0]}"] += 1

    def _done(self, entries: list[dict[str, str]]) -> None:
        (entry,) = entries
        of_kind = {
            "topics_changed": "topics",
            "mappings_changed": "static topics",
            "broker_updated": "version",
        }
        self.taken[f"done: {of_kind[entry['kind']]}"] += 1
        self.taken["done: more topics"] += entry["kind"] == "topics_changed" and ',"","' in entry["rows"]

    def _cached(self, asked: Asked) -> Any:
        return self._caches[asked.worker].tables.last(asked.member)

    def _seen(self, asked: Asked) -> Seen:
        pipe = self._store.pipeline(transaction=False)
        pipe.hmget(self._keys.member(asked.member), "dv", "sig", "timeout", f"owner:{asked.owner}")
        pipe.hmget(self._keys.broker(asked.name), "epoch", "gen")
        pipe.zscore(self._keys.leases, asked.member)
        member, broker, lease = pipe.execute(raise_on_error=False)
        damaged = any(isinstance(one, Exception) for one in (member, broker, lease))
        if damaged:
            return Seen(None, None, None, None, None, None, 0.0, damaged=True)
        (dv, sig, timeout, mark), (epoch, gen) = member, broker
        return Seen(dv, sig, epoch, gen, timeout, mark, lease or 0.0, damaged=False)

    def _changes(self, asked: Asked) -> tuple[tuple[bool, bool], bool]:
        """Return whether topics and static topics are stored otherwise; and whether more topics than one script
        writes."""
        topics = asked.said.get("topics", {})
        mappings = [one for one in asked.said.get("mappings", ()) if one.bname == asked.name]
        if asked.said.get("header", V5) <= V4:
            mappings = []  # its body has none
        if not mappings and len(topics) <= TOPICS_MAX:
            return (True, False), False
        stored = self._rows(self._keys.topics_of(asked.name))
        changed = sum(stored.get(topic) != text for topic, text in topics.items())
        stored = self._rows(self._keys.mappings_of(asked.name))
        of_static = any(stored.get(one.topic) != encode_mapping_info(one).decode() for one in mappings)
        return (changed > 0, of_static), changed > TOPICS_MAX

    def _rows(self, key: str) -> dict[str, str]:
        return {topic: text.partition(",")[2] for topic, text in self._store.hgetall(key).items()}


def _not_asked(asked: Asked, before: Before) -> Iterator[str]:
    """Yield why the straight way is none for a registration."""
    if asked.delete_missing:
        yield "deletes topics"
        return
    last, said = before.last, asked.said
    if before.cached is None or last is None:
        yield "not cached"
        return
    for name, usual in HEADER.items():
        if last.said.get(name, usual) != said.get(name, usual):
            yield f"another {name}"
    if last.name != asked.name:
        yield "another name"
    if (last.claimant.guard, last.claimant.registrant) != (asked.claimant.guard, asked.claimant.registrant):
        yield "another registrant"
    if said.get("number"):
        yield "a slave"
    if asked.spaced or last.spaced or said.get("compressed") or said.get("header", V5) <= BEFORE_3_0_11:
        yield "laid out otherwise"
    versions = [(one.get("state", 0), one.get("version", 1)) for one in (last.said, said)]
    if versions[0] == versions[1]:
        yield "same version"
    if before.many or all(before.changed):
        yield "several slices"


def _differs(asked: Asked, before: Before, now_ms: int) -> Iterator[str]:
    """Yield why what is stored is not what the worker's table was made of."""
    if before.then is None:
        return
    yield from before.now.changed(before.then)
    if before.now.lease <= now_ms:
        yield "lease"
    if asked.owner is not None and before.now.mark is None:
        yield "connection"
    if not (before.now.timeout or "").isdecimal():
        yield "time-out"
