"""`mqns backup` and `restore` between two servers of ours with their HTTP sides."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from stat import S_IMODE
from typing import Any

import httpx
import msgspec
import pytest

from mqns.cli.backup import state
from mqns.cli.backup.restoring import Restoring
from mqns.cli.exit_codes import ExitCode
from mqns.cli.http_api import HttpApi
from registry.options.catalogue import SECRETS
from testbed.nameserver import NameServer
from testbed.scene import Scene
from tests.mqns.cli.conftest import ENVIRONMENT, Ended, http_side, run
from tests.mqns.cli.test_previews import on_terminal

SETTING = "serverSelectorThreads"
NAMES = ("a", "a/b", "..", " ", "ключ", "n\x1b[2J", "=", "%2F", "é")
"""Names and values that a path, a terminal or ASCII could spoil."""


class Side:
    """A server without KV, shared settings and drains, and commands for its HTTP side."""

    def __init__(self, scene: Scene) -> None:
        self.scene, self.server, self.url = scene, scene.server, http_side(scene.server)
        self.empty()

    def empty(self) -> None:
        for namespace in self.get("/v1/kv?limit=1000")["namespaces"]:
            name = namespace if namespace.strip(".") else f"={namespace}"
            httpx.delete(f"{self.url}/v1/kv/{name}", params={"all": "true"}).raise_for_status()
        self.set(SETTING, "3")  # its default, which workers learn of; then no value is shared
        with self.server.store() as store:
            store.delete(self.server.keys.settings)
        for drain in self.get("/v1/drains")["drains"]:
            httpx.delete(f"{self.url}/v1/brokers/{drain['brokerName']}/drain").raise_for_status()

    def __call__(self, *arguments: str) -> Ended:
        return run(*arguments, "--http", self.url)

    def get(self, path: str) -> Any:
        return httpx.get(self.url + path).raise_for_status().json()

    def put(self, path: str, body: object) -> None:
        httpx.put(self.url + path, json=body).raise_for_status()

    def put_values(self, namespace: str, values: dict[str, str]) -> None:
        self.put(f"/v1/kv/{namespace}", {"table": values})

    def values(self, namespace: str) -> Any:
        return self.get(f"/v1/kv/{namespace}?limit=1000")["table"]

    def set(self, key: str, text: str) -> None:
        httpx.patch(f"{self.url}/v1/settings", json={"settings": {key: text}}).raise_for_status()

    def drain(self, broker: str, until_millis: int | None = None, owner: str = "alice") -> None:
        body = {"owner": owner, "reason": "kernel upgrade", "untilMillis": until_millis}
        self.put(f"/v1/brokers/{broker}/drain", body)

    def fill(self) -> None:
        self.scene.f3()
        self.put_values("ORDER_TOPIC_CONFIG", {"TA": "broker-a:4;broker-b:4"})
        self.put_values("names", dict(zip(NAMES, reversed(NAMES), strict=True)))
        self.set(SETTING, "7")
        self.drain("broker-a", until_millis=4_000_000_000_000)
        self.drain("broker-b")

    def saved(self) -> dict[str, Any]:
        """What a backup has, without its time and place."""
        members: dict[str, Any] = self("backup").document
        return {name: members[name] for name in ("kv", "settings", "drains")}


@pytest.fixture
def sides(scenes: list[Scene]) -> Iterator[list[Side]]:
    both = [Side(scene) for scene in scenes]
    yield both
    for side in both:
        side.empty()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "backup.json"


def test_what_one_server_has_another_gets(
    sides: list[Side], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(state, "PAGE", 2)
    first, second = sides
    first.fill()
    second.scene.f3()
    ended = first("backup", str(file))
    assert (ended.code, ended.err) == (ExitCode.OK, "")
    assert ended.out == f"{file}: KV values: {len(NAMES) + 1}; settings: 1; drains: 2\n"
    assert second("restore", str(file)).words == [
        ["PART", "SET", "REMOVED"],
        ["kv", str(len(NAMES) + 1), "0"],
        ["settings", "1", "0"],
        ["drains", "2", "0"],
    ]
    assert second.values("names") == dict(zip(NAMES, reversed(NAMES), strict=True))
    assert second.saved() == first.saved()
    assert second.saved()["drains"]["broker-a"] == {
        "owner": "alice",
        "reason": "kernel upgrade",
        "untilMillis": 4_000_000_000_000,
    }


def test_a_second_restore_changes_nothing(sides: list[Side], file: Path) -> None:
    first, second = sides
    first.fill()
    second.scene.f3()
    first("backup", str(file))
    assert second("restore", str(file)).code == ExitCode.OK
    newest = second("events", "--limit", "1", "-o", "json").document
    again = second("restore", str(file), "--delete", "-o", "json")
    assert second("events", "--limit", "1", "-o", "json").document == newest
    assert again.document == {
        "http": second.url,
        "kvPut": 0,
        "kvDeleted": 0,
        "settingsSet": [],
        "drained": [],
        "undrained": [],
        "drainsOver": [],
        "brokersUnknown": [],
    }


def test_many_values(sides: list[Side], file: Path) -> None:
    first, second = sides
    tables = {f"many-{number}": {f"key-{key:03}": "v" * 20 for key in range(400)} for number in range(3)}
    for namespace, table in tables.items():
        first.put_values(namespace, table)
    assert first("backup", str(file)).code == ExitCode.OK
    assert second("restore", str(file), "-o", "json").document["kvPut"] == 1200
    assert second.saved()["kv"] == tables


def test_two_backups_of_the_same_state_differ_in_their_time_alone(sides: list[Side], file: Path) -> None:
    side = sides[0]
    side.fill()
    side("backup", str(file))
    written = file.read_text()
    shown = side("backup", "-").out
    unlike = re.compile(r'("takenMillis": )\d+')
    assert unlike.sub(r"\1", written) == unlike.sub(r"\1", shown)
    assert S_IMODE(file.stat().st_mode) == 0o600
    assert list(file.parent.iterdir()) == [file]
    assert written.isascii()
    members = json.loads(written)
    assert (members["format"], members["version"]) == ("redis-namesrv-backup", 1)
    assert members["server"] == {"url": side.url}
    assert members["takenMillis"] <= side.get("/readyz")["nowMillis"]


def test_no_secret_is_in_a_backup(sides: list[Side]) -> None:
    side = sides[0]
    secrets = dict.fromkeys(SECRETS, "hunter2") | {
        "redisUrl": "redis://:hunter2@host",
        "rqRedisUrl": "redis://host",
    }
    with side.server.store() as store:
        store.hset(side.server.keys.settings, mapping=secrets)
    side.set(SETTING, "8")
    ended = side("backup")
    assert ended.document["settings"] == {SETTING: "8"}
    assert "hunter2" not in ended.out


def test_what_a_server_was_started_with_is_left_out(launch: Callable[..., NameServer]) -> None:
    given = {"orderMessageEnable": "true", "returnOrderTopicConfigToBroker": "false", SETTING: "5"}
    server = launch(**given)
    url = http_side(server)
    assert run("backup", "--http", url).document["settings"] == {}
    changed = {"enableTopicList": "false", "orderMessageEnable": "false", SETTING: "7"}
    httpx.patch(f"{url}/v1/settings", json={"settings": changed}).raise_for_status()
    assert run("backup", "--http", url).document["settings"] == changed


def test_what_the_file_has_not_is_removed_with_delete_alone(sides: list[Side], file: Path) -> None:
    side = sides[0]
    side.scene.f3()
    side.put_values("kept", {"a": "1"})
    side("backup", str(file))
    side.put_values("kept", {"a": "2", "b": "2"})
    side.put_values("later", {"c": "3"})
    side.drain("broker-b")
    assert side("restore", str(file)).words[1:] == [
        ["kv", "1", "0"],
        ["settings", "0", "0"],
        ["drains", "0", "0"],
    ]
    assert (side.values("kept"), side.values("later")) == ({"a": "1", "b": "2"}, {"c": "3"})
    assert side("restore", str(file), "--delete", "--only", "kv").words[1:] == [
        ["kv", "0", "2"],
        ["settings", "0", "0"],
        ["drains", "0", "0"],
    ]
    assert side("restore", str(file), "--delete", "-o", "json").document["undrained"] == ["broker-b"]
    assert side.saved() == {"kv": {"kept": {"a": "1"}}, "settings": {}, "drains": {}}


@pytest.mark.parametrize("part", ["kv", "settings", "drains"])
def test_one_part_alone(sides: list[Side], file: Path, part: str) -> None:
    first, second = sides
    first.fill()
    second.scene.f3()
    first("backup", str(file))
    second.put_values("own", {"a": "1"})
    second.drain("broker-a", owner="bob")
    before = second.saved()
    assert second("restore", str(file), "--delete", "--only", part).code == ExitCode.OK
    assert second.saved() == before | {part: first.saved()[part]}


def test_a_dry_run_shows_what_differs_and_changes_nothing(sides: list[Side], file: Path) -> None:
    first, second = sides
    first.fill()
    first("backup", str(file))
    second.scene.f3()
    second.put_values("other", {f"k{number:02}": "v" for number in range(12)})
    before = second.saved()
    shown = [
        preview["change"]
        for preview in second("restore", str(file), "--delete", "--dry-run", "-o", "json").document
    ]
    assert shown[1:] == [
        "delete KV values: 12 (" + ", ".join(f"other/k{number:02}" for number in range(10)) + ", …)",
        f"set options: 1 ({SETTING})",
        "drain brokers: 2 (broker-a, broker-b)",
    ]
    assert shown[0].startswith(f"put KV values: {len(NAMES) + 1} (ORDER_TOPIC_CONFIG/TA, names/ ")
    assert second.saved() == before
    assert first("restore", str(file), "--dry-run").out == (
        f"{first.url}: restore\n  nothing changes: it is so already\n"
    )


def test_a_terminal_is_asked(sides: list[Side], file: Path) -> None:
    side = sides[0]
    side.put_values("asked", {"a": "1"})
    side("backup", str(file))
    side.put_values("asked", {})
    over = ("restore", str(file), "--http", side.url)
    code, shown = on_terminal("n\n", *over)
    assert (code, "put KV values: 1 (asked/a)" in shown) == (ExitCode.REFUSED, True)
    assert side.values("asked") == {}
    assert on_terminal("y\n", *over)[0] == ExitCode.OK
    assert side.values("asked") == {"a": "1"}
    code, shown = on_terminal("", *over)
    assert (code, "Go on?" in shown) == (ExitCode.OK, False)


@pytest.mark.parametrize(
    ("before", "meanwhile"),
    [({"a": "1"}, {"a": "3"}), ({"a": "1"}, {}), ({}, {"a": "3"})],
    ids=["changed", "deleted", "made"],
)
def test_a_value_that_changed_meanwhile_is_left_as_it_is(
    sides: list[Side],
    file: Path,
    before: dict[str, str],
    meanwhile: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    side = sides[0]
    side.put_values("first", {"0": "0"})
    side.put_values("raced", {"a": "22222"})  # grows by more, so comes later
    side("backup", str(file))
    side.put_values("first", {})
    side.put_values("raced", before)
    changed_before(monkeypatch, "run", lambda: side.put_values("raced", meanwhile))
    ended = side("restore", str(file))
    assert (ended.code, ended.words[1]) == (ExitCode.REFUSED, ["kv", "1", "0"])
    assert ended.err == (
        "mqns: KV value raced/a was changed meanwhile, and is left so; restore again to see what differs now\n"
    )
    assert side.values("raced") == meanwhile


def test_a_value_that_changes_between_its_etag_and_its_write_is_left_as_it_is(
    sides: list[Side], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = sides[0]
    side.put_values("raced", {"a": "1"})
    side("backup", str(file))
    side.put_values("raced", {"a": "2"})
    conditions = Restoring._conditions

    def raced(*given: Any) -> Any:
        found = conditions(*given)
        side.put_values("raced", {"a": "3"})
        return found

    monkeypatch.setattr(Restoring, "_conditions", raced)
    assert side("restore", str(file)).code == ExitCode.REFUSED
    assert side.values("raced") == {"a": "3"}


def test_settings_and_drains_that_changed_meanwhile_are_left_as_they_are(
    sides: list[Side], file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = sides[0]
    side.fill()
    side("backup", str(file))
    side.set(SETTING, "8")
    side.drain("broker-b", owner="bob")
    with monkeypatch.context() as patched:
        changed_before(patched, "run", lambda: side.set(SETTING, "9"))
        ended = side("restore", str(file))
    assert (ended.code, f"option {SETTING} was changed meanwhile" in ended.err) == (ExitCode.REFUSED, True)
    assert side.saved()["settings"] == {SETTING: "9"}
    changed_before(monkeypatch, "_change_drains", lambda: side.drain("broker-b", owner="carol"))
    ended = side("restore", str(file))
    assert (ended.code, "the drain of broker broker-b was changed" in ended.err) == (ExitCode.REFUSED, True)
    assert ended.words[1:] == [["kv", "0", "0"], ["settings", "1", "0"], ["drains", "0", "0"]]
    assert side.saved()["drains"]["broker-b"]["owner"] == "carol"


def changed_before(monkeypatch: pytest.MonkeyPatch, method: str, change: Callable[[], None]) -> None:
    """Have something change on the server before a restore goes on with this method."""
    original = getattr(Restoring, method)

    def later(*given: Any) -> None:
        change()
        original(*given)

    monkeypatch.setattr(Restoring, method, later)


def test_unknown_brokers_and_drains_that_are_over_are_left_out_and_named(
    sides: list[Side], file: Path
) -> None:
    first, second = sides
    first.fill()
    first("backup", str(file))
    members = json.loads(file.read_text())
    members["drains"]["gone"] = members["drains"]["broker-b"]
    members["drains"]["broker-a"]["untilMillis"] = 1
    file.write_text(json.dumps(members))
    second.scene.f3()
    dry = second("restore", str(file), "--dry-run")
    assert (dry.code, "drain brokers: 1 (broker-b)" in dry.out) == (ExitCode.REFUSED, True)
    assert dry.err == "mqns: no such brokers, so not drained: 1 (gone)\n"
    ended = second("restore", str(file), "-o", "json")
    assert ended.code == ExitCode.REFUSED
    assert ended.err == (
        "mqns: drains that are over were left out: 1 (broker-a); set those again that are still wanted\n"
        "mqns: no such brokers, so not drained: 1 (gone)\n"
    )
    assert (ended.document["drained"], ended.document["brokersUnknown"]) == (["broker-b"], ["gone"])
    assert list(second.saved()["drains"]) == ["broker-b"]


def test_settings_that_are_refused_are_so_before_anything_is_done(sides: list[Side], file: Path) -> None:
    side = sides[0]
    side.put_values("kept", {"a": "1"})
    side("backup", str(file))
    side.put_values("kept", {"a": "2"})
    members = json.loads(file.read_text())
    members["settings"] = {"kvConfigPath": "/etc/passwd"}
    file.write_text(json.dumps(members))
    ended = side("restore", str(file))
    assert (ended.code, ended.out) == (ExitCode.REFUSED, "")
    assert "kvConfigPath" in ended.err
    assert side.values("kept") == {"a": "2"}


def test_a_value_that_is_refused_ends_it_with_what_was_done(sides: list[Side], file: Path) -> None:
    side = sides[0]
    side.put_values("kept", {"a": "1"})
    side.set(SETTING, "7")
    side("backup", str(file))
    members = json.loads(file.read_text())
    members["kv"]["kept"] = {"a": "2", "long": "x" * (300 << 10)}
    members["settings"] = {SETTING: "8"}
    file.write_text(json.dumps(members))
    ended = side("restore", str(file))
    assert (ended.code, "value of 'long' in KV namespace 'kept'" in ended.err) == (ExitCode.REFUSED, True)
    assert ended.words[1:] == [["kv", "1", "0"], ["settings", "0", "0"], ["drains", "0", "0"]]
    assert side.saved() == {"kv": {"kept": {"a": "2"}}, "settings": {SETTING: "7"}, "drains": {}}


def test_a_full_namespace_needs_no_more_room_on_the_way(
    launch: Callable[..., NameServer], file: Path
) -> None:
    url = http_side(launch(maxKvKeys="3", maxKvNamespaceBytes="64"))
    at = f"{url}/v1/kv/full"
    full = {"a": "", "c": "z", "d": "y" * 40}
    httpx.put(at, json={"table": full}).raise_for_status()
    assert run("backup", str(file), "--http", url).code == ExitCode.OK
    httpx.put(at, json={"table": {"b": "", "c": "z" * 40, "d": "y"}}).raise_for_status()
    assert run("restore", str(file), "--delete", "--http", url).words[1] == ["kv", "3", "1"]
    assert httpx.get(at).json()["table"] == full


def test_a_damaged_drain_is_named_and_no_file_is_written(sides: list[Side], file: Path) -> None:
    side = sides[0]
    side.scene.f3()
    side("backup", str(file))
    with side.server.store() as store:
        store.hset(side.server.keys.drains, "broker-a", "no drain")
    other = file.with_name("other.json")
    ended = side("backup", str(other))
    assert (ended.code, "the drain of broker broker-a is damaged" in ended.err) == (ExitCode.REFUSED, True)
    assert not other.exists()
    assert side("restore", str(file), "--delete", "-o", "json").document["undrained"] == ["broker-a"]


@pytest.mark.parametrize("command", ["backup", "restore"])
def test_nothing_is_taken_for_settings_while_the_store_is_away(
    sides: list[Side], file: Path, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    side = sides[0]
    side("backup", str(file))
    request = HttpApi.request

    def unknown(self: HttpApi, shape: Any, method: str, path: str, body: object = None) -> Any:
        found = request(self, shape, method, path, body)
        return msgspec.structs.replace(found, shared_known=False) if path == "/v1/options" else found

    monkeypatch.setattr(HttpApi, "request", unknown)
    ended = side(command, str(file))
    assert (ended.code, "the store is away" in ended.err) == (ExitCode.REFUSED, True)


def test_more_kv_than_a_server_allows_ends_a_backup(
    sides: list[Side], monkeypatch: pytest.MonkeyPatch
) -> None:
    sides[0].put_values("long", {"a": "x" * 100})
    monkeypatch.setitem(state.KV_MOST, "characters", 100)
    assert sides[0]("backup").err == f"mqns: {sides[0].url}: over 100 characters of KV\n"


def program(words: Sequence[str], out: int = subprocess.PIPE) -> tuple[int, str]:
    """Run a program of Python with this standard output, and return its exit code and standard error."""
    buffered = ENVIRONMENT | {"PYTHONUNBUFFERED": None}
    env = {name: value for name, value in (os.environ | buffered).items() if value is not None}
    ended = subprocess.run(
        [sys.executable, *words], stdout=out, stderr=subprocess.PIPE, env=env, text=True, check=False
    )
    return ended.returncode, ended.stderr


@pytest.mark.parametrize("length", [1, 200_000], ids=["buffered", "beyond the buffer"])
def test_a_standard_output_that_is_full_is_an_error(sides: list[Side], length: int) -> None:
    sides[0].put_values("long", {"a": "x" * length})
    full = os.open("/dev/full", os.O_WRONLY)
    ended = program(["-m", "mqns.cli", "backup", "-", "--http", sides[0].url], full)
    os.close(full)
    assert ended == (ExitCode.WRONG_USAGE, "mqns: standard output: No space left on device\n")


def test_a_reader_that_has_gone_is_an_error(sides: list[Side]) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    ended = program(["-m", "mqns.cli", "backup", "--http", sides[0].url], writing)
    os.close(writing)
    assert ended == (ExitCode.WRONG_USAGE, "mqns: standard output: Broken pipe\n")


ENDED_AT_FSYNC = """
import os, signal
from mqns.cli.main import main
os.fsync = lambda descriptor: os.kill(os.getpid(), signal.SIGTERM)
main()
"""


def test_sigterm_leaves_the_earlier_file_and_nothing_beside_it(sides: list[Side], file: Path) -> None:
    file.write_text("of yesterday")
    ended = program(["-c", ENDED_AT_FSYNC, "backup", str(file), "--http", sides[0].url])
    assert ended == (ExitCode.INTERRUPTED, "")
    assert (file.read_text(), list(file.parent.iterdir())) == ("of yesterday", [file])


def test_parts_that_are_none_are_refused(sides: list[Side], file: Path) -> None:
    ended = sides[0]("restore", str(file), "--only", "kv,orders")
    assert (ended.code, ended.err) == (
        ExitCode.WRONG_USAGE,
        "mqns: --only: 'kv,orders' is no list of kv, settings, drains\n",
    )
