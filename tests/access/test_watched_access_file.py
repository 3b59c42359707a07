"""The file of the principals while a process runs: each change is seen, whole, and a bad one leaves what was."""

import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from access.access_file import InvalidAccessFile, Loaded
from access.access_tables import read_tables
from access.private_files import PrivateFiles
from access.watched_access_file import COMPARE_EVERY_S, WatchedAccessFile
from tests.access.files import access_file, write

TEXT = """
[principals.p]
roles = ["reader"]
[[principals.p.keys]]
accessKey = "K"
secrets = [{ file = "a.key" }]
"""
LATER = 100.0
"""Seconds after a change, when its time says for sure that there is no other."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return access_file(tmp_path, TEXT)


@pytest.fixture
def watched(path: Path) -> WatchedAccessFile:
    return WatchedAccessFile(path)


def secret_of(loaded: object) -> str:
    assert isinstance(loaded, Loaded)
    principal = loaded.principals.get("p")
    assert principal is not None
    return principal.keys[0].secrets[0].secret.reveal()


def settle(watched: WatchedAccessFile) -> float:
    """Return a time from which on the file counts as long unchanged."""
    now = time.time() + LATER
    assert watched.poll(now) is None
    return now


def test_a_file_that_stays_is_no_news(watched: WatchedAccessFile) -> None:
    assert [watched.poll(time.time() + seconds) for seconds in (0, 1, 5, 100, -100)] == [None] * 5


def test_a_change_is_returned_once(watched: WatchedAccessFile, path: Path) -> None:
    """AC-21."""
    before = watched.loaded
    write(path, TEXT.replace('"reader"', '"broker"'))
    after = watched.poll(time.time())
    assert isinstance(after, Loaded)
    assert after.principals.get("p") != before.principals.get("p")
    assert watched.loaded is after
    assert watched.poll(time.time() + 1) is None


def test_a_change_of_a_secret_alone_is_seen(watched: WatchedAccessFile, path: Path) -> None:
    settle(watched)
    write(path.parent / "a.key", "another secret, as long")
    assert secret_of(watched.poll(time.time() + LATER + 1)) == "another secret, as long"


def test_a_secret_that_is_written_again_in_place_with_the_same_times_is_seen(
    watched: WatchedAccessFile, path: Path
) -> None:
    """As within one tick of the clock of the file system: its status says nothing of it, so its content must."""
    secret = path.parent / "a.key"
    write(secret, "12345678" * 2)
    assert secret_of(watched.poll(time.time())) == "12345678" * 2
    stamps = watched._files.stamps()
    watched._files.stamps = lambda: stamps  # type: ignore[method-assign]
    with open(secret, "r+") as file:
        file.write("abcdefgh" * 2)
    assert secret_of(watched.poll(time.time() + 1)) == "abcdefgh" * 2


def test_content_is_compared_now_and_then_whatever_times_say(watched: WatchedAccessFile, path: Path) -> None:
    now = settle(watched)
    stamps = watched._files.stamps()
    watched._files.stamps = lambda: stamps  # type: ignore[method-assign]
    write(path.parent / "a.key", "another secret, as long")
    assert watched.poll(now + COMPARE_EVERY_S - 1) is None
    assert secret_of(watched.poll(now + COMPARE_EVERY_S)) == "another secret, as long"


def test_what_stays_is_not_read(watched: WatchedAccessFile, monkeypatch: pytest.MonkeyPatch) -> None:
    now = settle(watched)
    monkeypatch.setattr(PrivateFiles, "are_as_read", lambda self: pytest.fail("it was read"))
    assert [watched.poll(now + seconds) for seconds in range(1, 10)] == [None] * 9


@pytest.mark.parametrize("bad", ["", "[principals.p]", TEXT.replace("reader", "root")])
def test_a_bad_file_leaves_what_was_and_is_an_error_once(
    watched: WatchedAccessFile, path: Path, bad: str
) -> None:
    """AC-32."""
    before = watched.loaded
    write(path, bad)
    assert isinstance(watched.poll(time.time()), InvalidAccessFile)
    assert [watched.poll(time.time() + seconds) for seconds in (1, 2, 20)] == [None] * 3
    write(path, f"{bad} # another")
    assert isinstance(watched.poll(time.time()), InvalidAccessFile)
    assert watched.loaded is before
    write(path, TEXT)
    assert isinstance(watched.poll(time.time()), Loaded)


@pytest.mark.parametrize("spoil", [os.unlink, lambda path: os.chmod(path, 0o644)], ids=["unlink", "chmod"])
@pytest.mark.parametrize("name", ["a.key", "access.toml"])
def test_a_file_that_cannot_be_read_leaves_what_was(
    watched: WatchedAccessFile, path: Path, name: str, spoil: Callable[[Path], None]
) -> None:
    now = settle(watched)
    file = path.parent / name
    content = file.read_text()
    spoil(file)
    error = watched.poll(now + 1)
    assert isinstance(error, InvalidAccessFile)
    assert watched.poll(now + 2) is None
    write(file, content)
    assert isinstance(watched.poll(now + 3), Loaded)


def test_a_bad_file_at_the_start_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(InvalidAccessFile, match="no table"):
        WatchedAccessFile(access_file(tmp_path, ""))


class Mounted:
    """A Secret as a kubelet mounts it: files are links through `..data`, which is swapped for another folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._version = 0

    def swap(self, secret: str, text: str = TEXT, *, old_times: bool = False) -> None:
        self._version += 1
        fresh = self.folder / f"..{self._version}"
        fresh.mkdir()
        access_file(fresh, text)
        write(fresh / "a.key", secret, 0o440)
        if old_times:
            for file in fresh.iterdir():
                os.utime(file, (1, 1))
        link = self.folder / "..data_tmp"
        link.symlink_to(fresh.name)
        os.replace(link, self.folder / "..data")
        for name in ("access.toml", "a.key"):
            if not (self.folder / name).is_symlink():
                (self.folder / name).symlink_to(f"..data/{name}")


@pytest.mark.parametrize("old_times", [False, True])
def test_a_mounted_secret_is_swapped(tmp_path: Path, old_times: bool) -> None:
    mounted = Mounted(tmp_path)
    mounted.swap("the first secret")
    watched = WatchedAccessFile(tmp_path / "access.toml")
    now = settle(watched)
    mounted.swap("the other secret", old_times=old_times)
    assert secret_of(watched.poll(now + 1)) == "the other secret"
    assert watched.poll(now + 2) is None


def test_a_swap_while_it_is_read_gives_no_mixture(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The file of one version with the secrets of another would be taken, or be logged as bad."""
    mounted = Mounted(tmp_path)
    mounted.swap("the first secret")
    watched = WatchedAccessFile(tmp_path / "access.toml")
    now = settle(watched)
    mounted.swap("the other secret")
    place = "access.access_file.read_tables"

    def swapped(content: bytes) -> object:
        mounted.swap("the third secret", TEXT.replace("reader", "broker"))
        monkeypatch.setattr(place, read_tables)
        return read_tables(content)

    monkeypatch.setattr(place, swapped)
    assert watched.poll(now + 1) is None
    assert secret_of(watched.loaded) == "the first secret"
    after = watched.poll(now + 2)
    assert secret_of(after) == "the third secret"
    assert isinstance(after, Loaded)
    principal = after.principals.get("p")
    assert principal is not None
    assert [*principal.roles] == ["broker"]


def test_a_file_that_changes_all_the_time_is_an_error_at_the_start(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PrivateFiles, "are_as_read", lambda self: False)
    with pytest.raises(InvalidAccessFile, match="changes while it is read"):
        WatchedAccessFile(path)
