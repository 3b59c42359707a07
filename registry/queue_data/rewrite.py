"""Rewrites of all queue data of one broker: permissions (205, 327), and the write bit of a group without master.

A peer may ask for as many of a large table as it likes: `Rewrites` bounds what a process has of them under way.
"""

from collections.abc import Callable

import msgspec

from registry.errors import BrokerBusy
from registry.keys import Keys
from registry.long_work.limiter import Limiter
from registry.long_work.scan import scan_pages
from registry.long_work.time_slices import cooperatively
from registry.plans import Origin, Plan, ScriptCall, as_json, call, within
from registry.queue_data.queue_text import current, restored, wiped
from registry.queue_data.slices import WrittenSlice, arguments, slicing
from rocketmq_remoting.cooperative import Cooperative

TRIES = 10
STEP = 250
"""Topics of one step between two looks at the time."""


class Rewrite(msgspec.Struct, frozen=True):
    """How many queue data the broker has (changed or not), and the last entry written, "" for none."""

    count: int
    event_id: str = ""


def wipe_write_perm(keys: Keys, name: str, origin: Origin) -> Plan[Rewrite]:
    """Clear the write bit of every queue data of a broker (205)."""
    return (yield from rewrite_topics(keys, name, origin, "wipe", wiped))


def add_write_perm(keys: Keys, name: str, origin: Origin) -> Plan[Rewrite]:
    """Set every queue data of a broker to read and write (327)."""
    return (yield from rewrite_topics(keys, name, origin, "restore", restored))


def rewrite_topics(
    keys: Keys,
    name: str,
    origin: Origin,
    cause: str,
    change: Callable[[str], str],
    *,
    epoch: str | None = None,
    without_master: bool = False,
) -> Plan[Rewrite]:
    """Rewrite in slices under the broker's generation fence, from the start again when another writer came between.

    With `epoch` only while the broker has it; with `without_master` only while its id 0 is free. Raises BrokerBusy.
    """
    event_id = ""
    for _ in range(TRIES):
        state = yield call("HMGET", keys.broker(name), "epoch", "gen", "addr:0")
        if state[0] is None or (epoch is not None and state[0] != epoch) or (without_master and state[2]):
            return Rewrite(0, event_id)
        texts = yield from _texts(keys.topics_of(name), state[0])
        changes = yield from cooperatively(_changes(texts, change))
        generation = int(state[1])
        for rows in (yield from cooperatively(slicing(name, cause, changes))):
            request = {"origin": origin, "name": name, "epoch": state[0], "gen": generation}
            if without_master:
                request["without_master"] = 1
            slice_call = ScriptCall(
                "write_slice",
                (keys.events_meta, keys.broker(name)),
                (as_json(request), *arguments(rows, (rows,))),
            )
            written = WrittenSlice.of((yield slice_call))
            if written.stale:
                break
            event_id, generation = written.event_id, written.generation
        else:
            return Rewrite(len(texts), event_id)
    raise BrokerBusy(f"broker {name!r} kept changing while its topics were rewritten")


class Rewrites:
    """The rewrites of one process and namespace: one is carried out at a time, and those of one broker that wait
    meanwhile as one.

    `limiter` is also for other changes of operators that take long."""

    def __init__(self) -> None:
        self.limiter = Limiter(1)
        self._waiting: dict[str, _Together] = {}

    def wipe_write_perm(self, keys: Keys, name: str, origin: Origin) -> Plan[Rewrite]:
        """As the function of this name."""
        together = self._joined(name, origin)
        together.wipes = True
        return (yield from self._when_acquired(keys, name, together))

    def add_write_perm(self, keys: Keys, name: str, origin: Origin) -> Plan[Rewrite]:
        """As the function of this name."""
        together = self._joined(name, origin)
        together.restores, together.wipes = True, False  # whatever the permission was
        return (yield from self._when_acquired(keys, name, together))

    def _joined(self, name: str, origin: Origin) -> "_Together":
        together = self._waiting.setdefault(name, _Together(origin))
        together.origin = origin
        return together

    def _when_acquired(self, keys: Keys, name: str, together: "_Together") -> Plan[Rewrite]:
        yield from within(self.limiter, self._carry_out(keys, name, together))
        if isinstance(together.end, Exception):
            raise together.end.with_traceback(None)  # which would grow with each that waited
        assert together.end is not None
        return together.end

    def _carry_out(self, keys: Keys, name: str, together: "_Together") -> Plan[None]:
        if together.end is None:
            del self._waiting[name]
            together.end = yield from together.carry_out(keys, name)


class _Together:
    """Rewrites of one broker that wait: what they make of its topics in the order in which they came, as one.

    The last one's `origin` is that of the change, for it decided; `end` is what all of them return or raise."""

    __slots__ = ("end", "origin", "restores", "wipes")

    def __init__(self, origin: Origin) -> None:
        self.origin = origin
        self.restores = self.wipes = False
        self.end: Rewrite | Exception | None = None

    def carry_out(self, keys: Keys, name: str) -> Plan[Rewrite | Exception]:
        try:
            cause = "wipe" if self.wipes else "restore"
            return (yield from rewrite_topics(keys, name, self.origin, cause, self._change))
        except Exception as error:
            return error

    def _change(self, text: str) -> str:
        text = restored(text) if self.restores else text
        return wiped(text) if self.wipes else text


def _texts(key: str, epoch: str) -> Plan[dict[str, str]]:
    """Return the queue data of this epoch by topic, equal ones as one object; no page is kept."""
    texts: dict[str, str] = {}
    alike: dict[str, str] = {}

    def take(page: dict[str, str]) -> None:
        for topic, text in current(page, epoch).items():
            texts[topic] = alike.setdefault(text, text)

    yield from scan_pages(key, take)
    return texts


def _changes(
    texts: dict[str, str], change: Callable[[str], str]
) -> Cooperative[dict[tuple[str, str], list[str]]]:
    """Return the topics that change, by their queue data before and after."""
    changes: dict[tuple[str, str], list[str]] = {}
    after: dict[str, str] = {}
    for number, (topic, text) in enumerate(texts.items()):
        if number % STEP == 0:
            yield
        if text not in after:
            after[text] = change(text)
        if after[text] != text:
            changes.setdefault((text, after[text]), []).append(topic)
    return changes
