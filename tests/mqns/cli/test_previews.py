"""`--dry-run` of each command that changes something, and the question that those ask that take something away."""

import json
import os
import pty
import sys
from subprocess import Popen
from typing import Any

import pytest
import typer

from mqns.cli.exit_codes import ExitCode
from testbed.scene import Scene
from tests.mqns.cli.conftest import ENVIRONMENT, Ended, Mqns, address, http_side, run

WHY = ("--owner", "alice", "--reason", "kernel upgrade")
BOTH = {"count": 2, "names": ["TA", "TB"]}
NONE: dict[str, Any] = {"count": 0, "names": []}
WIPED = {
    "changed": BOTH,
    "ended": NONE,
    "unwritable": BOTH,
    "readQueues": {"before": 12, "after": 12},
    "writeQueues": {"before": 12, "after": 0},
    "unexamined": 0,
}
"""Of broker-a's two topics, which it alone has."""


def dry(mqns: Mqns, *arguments: str) -> Any:
    return mqns(*arguments, "--dry-run", "-o", "json").document


def test_a_permission_is_shown_by_either_side_in_the_same_words(ns: Scene, mqns: Mqns) -> None:
    ns.f1()
    here, url = address(ns.server), http_side(ns.server)
    (wiped,) = dry(mqns, "permissions", "wipe", "broker-a")
    assert wiped == {
        "nameServer": here,
        "change": "take the write permission from broker-a",
        "changes": True,
        "brokers": {"count": 1, "names": ["broker-a"]},
        "routes": WIPED,
    }
    assert dry(mqns, "wipeWritePerm", "-b", "broker-a") == [wiped]
    (drained,) = dry(mqns, "drain", "broker-a", *WHY, "--http", url)
    assert (drained["nameServer"], drained["brokers"], drained["routes"]) == (url, wiped["brokers"], WIPED)
    assert ns.perms("TA") == {"broker-a": 6}
    assert mqns("permissions", "wipe", "broker-a", "--dry-run").out == (
        f"{here}: take the write permission from broker-a\n"
        "  brokers: 1 (broker-a)\n"
        "  routes that change: 2 (TA, TB)\n"
        "  left without a queue to write to: 2 (TA, TB)\n"
        "  queues to read: 12 -> 12; to write: 12 -> 0\n"
    )
    assert mqns("permissions", "add", "broker-a", "--dry-run").out.endswith(
        "  nothing changes: it is so already\n"
    )
    assert dry(mqns, "addWritePerm", "-b", "broker-a")[0]["changes"] is False


def test_a_deleted_topic_is_shown_at_each_name_server(scenes: list[Scene], mqns_both: Mqns) -> None:
    scenes[0].f3()
    first, second = dry(mqns_both, "deleteTopic", "-t", "TA")
    assert first["brokers"] == {"count": 2, "names": ["broker-a", "broker-b"]}
    assert first["routes"]["ended"] == {"count": 1, "names": ["TA"]}
    assert first["routes"]["readQueues"] == {"before": 16, "after": 0}
    assert (second["changes"], second["routes"]["changed"]) == (False, NONE)
    assert dry(mqns_both, "deleteTopic", "-t", "TA", "-c", "other")[0]["changes"] is False
    assert scenes[0].has_route("TA")


def test_values_are_shown_with_what_they_are_now(ns: Scene, mqns: Mqns) -> None:
    ns.f1()
    assert dry(mqns, "kv", "set", "previewed", "key", "one")[0]["change"] == (
        "set key key of namespace previewed to one (now not there)"
    )
    mqns("kv", "set", "previewed", "key", "one")
    shown = dry(mqns, "kv", "delete", "previewed", "key")[0]
    assert (shown["change"], shown["changes"]) == ("delete key key of namespace previewed (now one)", True)
    assert dry(mqns, "deleteKvConfig", "-s", "previewed", "-k", "key") == [shown]
    assert mqns("kv", "get", "previewed", "key").out == "one\n"
    ordered = dry(mqns, "updateOrderConf", "-t", "TA", "-m", "put", "-v", "broker-a:8")[0]
    assert ordered["routes"]["changed"] == {"count": 1, "names": ["TA"]}
    assert dry(mqns, "updateKvConfig", "-s", "previewed", "-k", "key", "-v", "one")[0]["changes"] is False
    assert mqns("kv", "delete", "previewed", "key").code == ExitCode.OK


def test_options_are_shown_with_what_they_are_now(ns: Scene, mqns: Mqns) -> None:
    shown = dry(mqns, "config", "set", "orderMessageEnable", "true")
    assert shown[0]["change"] == "set option orderMessageEnable to true (now false)"
    assert dry(mqns, "updateNamesrvConfig", "-k", "orderMessageEnable", "-v", "true") == shown
    by_http = dry(mqns, "config", "set", "orderMessageEnable", "true", "--http", http_side(ns.server))
    assert by_http[0]["changes"] is True
    assert "orderMessageEnable  false" in mqns("config", "get", "orderMessageEnable").out


def _tokens(over: tuple[str, ...]) -> Any:
    return json.loads(run("access", "list", *over, "-o", "json").out)["tokens"]


def test_commands_over_http_are_asked_there(ns: Scene, mqns: Mqns) -> None:
    ns.f1()
    over = ("--http", http_side(ns.server))
    assert dry(mqns, "kv", "set", "previewed", "key", "one", *over)[0]["changes"] is True
    assert mqns("kv", "delete", "previewed", "key", "--dry-run", *over).code == ExitCode.REFUSED
    assert dry(mqns, "undrain", "broker-a", *over)[0]["changes"] is False
    before = _tokens(over)
    created = dry(mqns, "access", "create", "ops", "--role", "admin", *over)
    assert created[0]["change"] == "create a token of ops"
    assert mqns("access", "rotate", "none", "--dry-run", *over).code == ExitCode.REFUSED
    assert mqns("access", "revoke", "acl:none", "--dry-run", *over).code == ExitCode.REFUSED
    assert dry(mqns, "access", "restore", "acl:none", *over)[0]["changes"] is False
    assert _tokens(over) == before


def on_terminal(answer: str, *arguments: str) -> tuple[int, str]:
    """Call `mqns` on a terminal where this is typed; return its exit code and what it showed."""
    mine, its = pty.openpty()
    env = {name: value for name, value in os.environ.items() if name not in ENVIRONMENT}
    command = [sys.executable, "-m", "mqns.cli", *arguments]
    with Popen(command, stdin=its, stdout=its, stderr=its, env=env, start_new_session=True) as called:
        os.close(its)
        os.write(mine, answer.encode())
        shown = b""
        try:
            while block := os.read(mine, 65536):
                shown += block
        except OSError:  # the other side has closed it
            pass
        finally:
            os.close(mine)
    return called.returncode, shown.decode()


def test_a_terminal_is_asked_before_something_is_taken_away(ns: Scene) -> None:
    ns.f1()
    at = ("-n", address(ns.server), "deleteTopic", "-t", "TA")
    code, shown = on_terminal("n\n", *at)
    assert code == ExitCode.REFUSED
    assert "routes that change: 1 (TA)" in shown
    assert "Go on? [y/N]" in shown
    assert "nothing was changed" in shown
    assert ns.has_route("TA")
    code, shown = on_terminal("y\n", *at)
    assert (code, "success" in shown) == (ExitCode.OK, True)
    assert not ns.has_route("TA")
    code, shown = on_terminal("", "-n", address(ns.server), "deleteTopic", "-t", "TB", "--yes")
    assert (code, "Go on?" in shown) == (ExitCode.OK, False)
    assert not ns.has_route("TB")


def test_what_gives_something_asks_nothing(ns: Scene) -> None:
    ns.f1()
    code, shown = on_terminal("", "-n", address(ns.server), "permissions", "add", "broker-a")
    assert (code, "Go on?" in shown) == (ExitCode.OK, False)


def test_a_script_is_not_asked(ns: Scene, mqns: Mqns, monkeypatch: pytest.MonkeyPatch) -> None:
    ns.f1()
    monkeypatch.setattr(typer, "confirm", None)
    assert mqns("deleteTopic", "-t", "TA").code == ExitCode.OK
    assert not ns.has_route("TA")


def test_each_command_that_changes_something_can_be_asked(mqns: Mqns) -> None:
    """Those that look take no such option."""

    def has(option: str, *names: str) -> bool:
        ended: Ended = mqns(*names, "-h")
        return option in ended.out

    taking: list[tuple[str, ...]] = [
        ("deleteTopic",),
        ("deleteKvConfig",),
        ("updateOrderConf",),
        ("wipeWritePerm",),
    ]
    taking += [("updateNamesrvConfig",), ("permissions", "wipe"), ("drain",), ("kv", "delete")]
    taking += [("config", "set"), ("access", "revoke"), ("access", "rotate")]
    giving: list[tuple[str, ...]] = [
        ("updateKvConfig",),
        ("addWritePerm",),
        ("permissions", "add"),
        ("undrain",),
        ("kv", "set"),
    ]
    giving += [("access", "create"), ("access", "restore")]
    looking = [
        ("topicRoute",),
        ("kv", "get"),
        ("config", "get"),
        ("routes",),
        ("drains",),
        ("access", "list"),
    ]
    assert [has("--yes", *names) and has("--dry-run", *names) for names in taking] == [True] * len(taking)
    assert [has("--dry-run", *names) and not has("--yes", *names) for names in giving] == [True] * len(giving)
    assert [has("--dry-run", *names) for names in looking] == [False] * len(looking)
