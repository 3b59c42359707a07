"""Rewrites of all queue data of one broker: permissions (205, 327), and the write bit of a group without master."""

from collections.abc import Callable

import msgspec

from registry.errors import BrokerBusy
from registry.keys import Keys
from registry.plans import Origin, Plan, ScriptCall, as_json, call
from registry.queue_text import current, restored, wiped
from registry.scan import scan
from registry.slices import WrittenSlice, arguments, slices_of

TRIES = 10


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
        stored = yield from scan(keys.topics_of(name))
        if state[0] is None or (epoch is not None and state[0] != epoch) or (without_master and state[2]):
            return Rewrite(0, event_id)
        texts = current(stored, state[0])
        changes: dict[tuple[str, str], list[str]] = {}
        for topic, text in texts.items():
            after = change(text)
            if after != text:
                changes.setdefault((text, after), []).append(topic)
        generation = int(state[1])
        for rows in slices_of(name, cause, changes):
            counts, values = arguments(rows, (rows,))
            request = {"origin": origin, "name": name, "epoch": state[0], "gen": generation, "counts": counts}
            if without_master:
                request["without_master"] = 1
            slice_call = ScriptCall(
                "write_slice", (keys.events_meta, keys.broker(name)), (as_json(request), *values)
            )
            written = WrittenSlice.of((yield slice_call))
            if written.stale:
                break
            event_id, generation = written.event_id, written.generation
        else:
            return Rewrite(len(texts), event_id)
    raise BrokerBusy(f"broker {name!r} kept changing while its topics were rewritten")
