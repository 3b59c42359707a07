"""Round trips to the store as they are counted."""

from collections.abc import Mapping

import pytest
from redis.exceptions import (
    ConnectionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    ResponseError,
    TimeoutError,
)

from metrics.catalogue import REDIS_COMMAND_DURATION
from metrics.counts import Observed
from metrics.store_commands import StoreCommands
from registry.plans import Call, ScriptCall, call

TICK = ScriptCall("tick", ("k",))


def values(commands: StoreCommands) -> Mapping[tuple[str, ...], float]:
    found: dict[tuple[str, ...], float] = {}
    for read in commands.read():
        value = sum(read.histogram.counts) if isinstance(read, Observed) else read.value
        if value:
            found[read.metric.name, *read.labels] = value
    return found


def test_scripts_and_commands_by_name() -> None:
    commands = StoreCommands()
    requests: list[Call | ScriptCall] = [TICK, TICK, call("HGETALL", "k"), call("HSET", "k", "f", "v")]
    commands(requests, 0.002, [[], [], {}, 1])
    name = REDIS_COMMAND_DURATION.name
    assert values(commands) == {(name, "tick"): 2, (name, "read"): 1, (name, "other"): 1, ("redis_up",): 1}


@pytest.mark.parametrize(
    ("error", "kind", "up"),
    [
        (TimeoutError("slow"), "timeout", 0),
        (ConnectionError("gone"), "connection", 0),
        (OSError("gone"), "connection", 0),
        (ReadOnlyError("replica"), "readonly", 0),
        (OutOfMemoryError("full"), "oom", 0),
        (ResponseError("BUSY Redis is busy running a script"), "busy", 0),
        (ResponseError("WRONGTYPE"), "other", 1),
    ],
)
def test_errors_by_kind_and_whether_the_store_answers(error: Exception, kind: str, up: int) -> None:
    commands = StoreCommands()
    commands([TICK], 0.1, [error])
    found = values(commands)
    assert found["redis_errors_total", kind] == 1
    assert found.get(("redis_up",), 0) == up
    commands([TICK], 0.1, [[]])
    found = values(commands)
    assert found["redis_up",] == 1
    assert found.get(("redis_reconnects_total",), 0) == 1 - up


def test_a_script_that_the_store_does_not_have_yet_is_no_failure() -> None:
    """The driver sends it then: once for each script after a start of the store."""
    commands = StoreCommands()
    commands([TICK], 0.001, [NoScriptError("No matching script.")])
    assert values(commands) == {(REDIS_COMMAND_DURATION.name, "tick"): 1, ("redis_up",): 1}
