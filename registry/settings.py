"""Configuration that all workers share (318, 319): the values that differ from what a process was started with."""

from collections.abc import Collection, Mapping

from registry.keys import Keys
from registry.plans import Act, Plan, ScriptCall, as_json, call


def read(keys: Keys) -> Plan[dict[str, str]]:
    """The shared values in force, by Java's option names."""
    return dict((yield call("HGETALL", keys.settings)))


def update(keys: Keys, values: Mapping[str, str], act: Act, *, hidden: Collection[str] = ()) -> Plan[str]:
    """Set values for every worker (318). Returns the event id, "" when nothing changed.

    The caller has refused what the black list names; `hidden` options are written as `***` in the event."""
    return (yield from _write(keys, "update", values, act, hidden))


def announce_start(
    keys: Keys, given: Mapping[str, str], act: Act, *, hidden: Collection[str] = ()
) -> Plan[dict[str, str]]:
    """Hand over what a start was given by file, environment and command line; the shared values then in force.

    A value is written only if it differs from what the last start gave, so that a restart does not undo 318."""
    if given:
        yield from _write(keys, "start", given, act, hidden)
    return (yield from read(keys))


def _write(keys: Keys, cause: str, values: Mapping[str, str], act: Act, hidden: Collection[str]) -> Plan[str]:
    request = {
        "act": act,
        "cause": cause,
        "values": list(values.items()),
        "hidden": dict.fromkeys(sorted(hidden), 1),
    }
    reply = yield ScriptCall(
        "settings", (keys.events_meta, keys.settings, keys.settings_given), (as_json(request),)
    )
    return str(reply[0])
