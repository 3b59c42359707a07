"""Configuration that all workers share (318, 319): the values that differ from those a process was started with.

An entry of the stream shows secrets as `***`."""

from collections.abc import Mapping
from typing import Literal

from registry.errors import SettingsRefused
from registry.keys import Keys
from registry.options.catalogue import BY_KEY, SECRETS, Options, acceptable, black_list
from registry.plans import Origin, Plan, ScriptCall, as_json, call

InForce = Literal["live", "restart", "never"]


def read(keys: Keys) -> Plan[dict[str, str]]:
    """Return the shared values in force, by Java's option names."""
    return dict((yield call("HGETALL", keys.settings)))


def accepted(options: Options, wanted: Mapping[str, str]) -> dict[str, str]:
    """Return what of `wanted` request 318 sets, as Java prints it; unknown keys and bad numbers are left out.

    Raises SettingsRefused when an option of the black list is among them."""
    for key in sorted(wanted.keys() & black_list(options)):
        raise SettingsRefused(key)
    return acceptable(options, wanted)


def in_force(options: Options, key: str) -> InForce:
    """Return when a shared value of an option is in force: at once, from the next start on, or never."""
    option = BY_KEY.get(key)
    if option is None or option.effect == "listed":
        return "never"
    if option.effect == "live":
        return "live"
    return "restart" if options.rewritten_file else "never"


def update(keys: Keys, values: Mapping[str, str], origin: Origin) -> Plan[str]:
    """Set `accepted` values for every worker (318); return the event id, "" when nothing changed."""
    return (yield from _write(keys, "update", values, origin))


def announce_start(keys: Keys, given: Mapping[str, str], origin: Origin) -> Plan[dict[str, str]]:
    """Share what a start was given by file, environment and command line; return the values then in force.

    A value is written only if it differs from what the last start gave, so that a restart does not undo 318."""
    if given:
        yield from _write(keys, "start", given, origin)
    return (yield from read(keys))


def _write(keys: Keys, cause: str, values: Mapping[str, str], origin: Origin) -> Plan[str]:
    request = {
        "origin": origin,
        "cause": cause,
        "values": list(values.items()),
        "hidden": dict.fromkeys(sorted(SECRETS), 1),
    }
    event_id = yield ScriptCall(
        "set_settings", (keys.events_meta, keys.settings, keys.settings_given), (as_json(request),)
    )
    return str(event_id)
