"""Files of backups: those that are none, and how they are written."""

import json
import os
import threading
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from mqns.cli.backup import file as files
from mqns.cli.backup.file import Backup, Server, backup_text, read_backup, write_backup
from mqns.cli.backup.state import SavedDrain
from mqns.cli.exit_codes import ExitCode
from mqns.errors import ConfigError
from tests.mqns.cli.conftest import run

BACKUP = Backup(
    1_795_255_839_125,
    Server("http://127.0.0.1:8080"),
    {"ORDER_TOPIC_CONFIG": {"TA": "broker-a:4"}},
    {"orderMessageEnable": "true"},
    {"broker-a": SavedDrain("alice", "kernel upgrade", None)},
)


def test_a_file_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "backup.json"
    write_backup(path, backup_text(BACKUP))
    assert read_backup(path) == BACKUP


def test_the_order_of_names_makes_no_other_file() -> None:
    tables = {"b": {"y": "1", "x": "2"}, "a": {}}
    reordered = {"a": {}, "b": {"x": "2", "y": "1"}}
    assert backup_text(replace(BACKUP, kv=tables)) == backup_text(replace(BACKUP, kv=reordered))


DAMAGE: list[tuple[str, dict[str, Any], str]] = [
    ("format", {"format": "kvConfig"}, "its format is not redis-namesrv-backup"),
    ("newer", {"version": 2}, "it has version 2, and this mqns reads 1; a newer mqns reads it"),
    ("older", {"version": 0}, "it has version 0, and this mqns reads 1"),
    ("no version", {"version": True}, "version: Expected `int`, got `bool`"),
    ("unknown", {"tokens": {}}, "unknown member 'tokens'"),
    ("time", {"takenMillis": "now"}, "takenMillis: Expected `int`, got `str`"),
    ("server", {"server": {"url": "u", "password": "p"}}, "server: Object contains unknown field `password`"),
    ("kv", {"kv": []}, "kv: Expected `object`, got `array`"),
    ("namespace", {"kv": {"n": 1}}, "kv.n: Expected `object`, got `int`"),
    ("value", {"kv": {"n": {"k": 1}}}, "kv.n.k: Expected `str`, got `int`"),
    ("setting", {"settings": {"s": True}}, "settings.s: Expected `str`, got `bool`"),
    (
        "owner",
        {"drains": {"b": {"reason": "r", "untilMillis": None}}},
        "drains.b: Object missing required field `owner`",
    ),
    (
        "until",
        {"drains": {"b": {"owner": "o", "reason": "r", "untilMillis": "1"}}},
        "drains.b: Expected `int | null`, got `str` - at `$.untilMillis`",
    ),
    (
        "more of a drain",
        {"drains": {"b": {"owner": "o", "reason": "r", "untilMillis": None, "forced": True}}},
        "drains.b: Object contains unknown field `forced`",
    ),
]


@pytest.mark.parametrize(("changes", "reason"), [row[1:] for row in DAMAGE], ids=[row[0] for row in DAMAGE])
def test_the_member_that_is_wrong_is_named(tmp_path: Path, changes: dict[str, Any], reason: str) -> None:
    path = tmp_path / "backup.json"
    path.write_text(json.dumps(json.loads(backup_text(BACKUP)) | changes))
    ended = run("restore", str(path), "--http", "http://127.0.0.1:1")
    assert (ended.code, ended.out) == (ExitCode.WRONG_USAGE, "")
    assert ended.err == f"mqns: {path} is no whole backup: {reason}; nothing was restored\n"


TWICE = {
    "part": ('"kv": {', '"kv": {}, "kv": {', "kv"),
    "escaped": ('"kv": {', '"k\\u0076": {}, "kv": {', "kv"),
    "key": ('"TA": ', '"TA": "broker-b:4", "TA": ', "TA"),
    "setting": (
        '"orderMessageEnable": ',
        '"orderMessageEnable": "false", "orderMessageEnable": ',
        "orderMessageEnable",
    ),
    "owner": ('"owner": ', '"owner": "bob", "owner": ', "owner"),
    "equal": ('"version": ', '"version": 1, "version": ', "version"),
}


@pytest.mark.parametrize(("once", "twice", "member"), TWICE.values(), ids=TWICE)
def test_a_member_that_is_there_twice_is_refused(tmp_path: Path, once: str, twice: str, member: str) -> None:
    path = tmp_path / "backup.json"
    path.write_text(backup_text(BACKUP).replace(once, twice))
    with pytest.raises(
        ConfigError, match=f"no whole backup: it has the member '{member}' twice; nothing was"
    ):
        read_backup(path)


@pytest.mark.parametrize("member", sorted(files.MEMBERS))
def test_a_member_that_is_missing_is_missed(tmp_path: Path, member: str) -> None:
    members = json.loads(backup_text(BACKUP))
    del members[member]
    path = tmp_path / "backup.json"
    path.write_text(json.dumps(members))
    with pytest.raises(ConfigError, match=member):
        read_backup(path)


def test_no_beginning_of_a_file_is_taken_for_a_backup(tmp_path: Path) -> None:
    path = tmp_path / "backup.json"
    text = backup_text(BACKUP).rstrip()
    for length in range(len(text)):
        path.write_text(text[:length])
        with pytest.raises(ConfigError, match="no whole backup"):
            read_backup(path)


@pytest.mark.parametrize("data", [b"\xff", b"[" * 100_000, b"[]", b"{}{}"])
def test_what_is_no_json_object_is_refused(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "backup.json"
    path.write_bytes(data)
    with pytest.raises(ConfigError, match="no whole backup"):
        read_backup(path)


def test_a_file_beyond_the_limit_is_neither_read_nor_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "backup.json"
    text = backup_text(BACKUP)
    path.write_text(text)
    monkeypatch.setattr(files, "FILE_MOST", len(text) - 1)
    with pytest.raises(ConfigError, match=r"over \d+ bytes"):
        read_backup(path)
    with pytest.raises(ConfigError, match=r"over \d+ bytes"):
        backup_text(BACKUP)


def test_what_fails_leaves_the_earlier_file_and_nothing_beside_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "backup.json"
    path.write_text("of yesterday")

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(ConfigError, match="No space left on device"):
        write_backup(path, backup_text(BACKUP))
    assert path.read_text() == "of yesterday"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("is_there", [True, False], ids=["file", "nothing"])
def test_a_link_stays_and_what_it_leads_to_is_replaced(tmp_path: Path, is_there: bool) -> None:
    folder = tmp_path / "elsewhere"
    folder.mkdir()
    target = folder / "backup.json"
    if is_there:
        target.write_text("of yesterday")
    (tmp_path / "middle").symlink_to("elsewhere/backup.json")
    link = tmp_path / "link"
    link.symlink_to("middle")
    write_backup(link, backup_text(BACKUP))
    assert (link.is_symlink(), read_backup(link)) == (True, BACKUP)
    assert not target.is_symlink()
    assert list(folder.iterdir()) == [target]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "link", "middle"]


def test_a_link_that_leads_to_itself_is_an_error(tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(link)
    with pytest.raises(ConfigError, match="Too many levels of symbolic links"):
        write_backup(link, backup_text(BACKUP))
    assert link.is_symlink()


def test_what_the_system_does_not_follow_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As with protected_symlinks in a folder that all may write, where a link may be planted."""
    target = tmp_path / "own.json"
    target.write_text("own")
    link = tmp_path / "link"
    link.symlink_to(target)

    def refused(path: Path) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "stat", refused)
    with pytest.raises(ConfigError, match=f"{link}: Permission denied"):
        write_backup(link, backup_text(BACKUP))
    monkeypatch.undo()
    assert target.read_text() == "own"


def test_what_is_no_file_is_not_replaced(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file"):
        write_backup(tmp_path, "")
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    with pytest.raises(ConfigError, match="no file"):
        write_backup(fifo, "")
    with pytest.raises(ConfigError, match="No such file or directory"):
        write_backup(tmp_path / "absent" / "backup.json", "")


def test_what_is_no_file_is_not_read(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no file"):
        read_backup(tmp_path)
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_text, args=(backup_text(BACKUP),))
    writer.start()
    try:
        with pytest.raises(ConfigError, match="no file; a backup is read from a file only"):
            read_backup(fifo)
    finally:
        reading = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
        writer.join()
        os.close(reading)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"absent\.json: No such file"):
        read_backup(tmp_path / "absent.json")
