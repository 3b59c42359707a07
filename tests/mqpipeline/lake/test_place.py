"""Where a table can be, and that a folder and an object store are used alike."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from mqpipeline.lake.place import Place, is_data, place
from mqpipeline.options import OptionError


@pytest.fixture(params=["folder", "store"])
def at(request: pytest.FixtureRequest, tmp_path: Path) -> Place:
    """A folder, and the same by way of delta-rs, as an object store is."""
    known = place(f"{tmp_path}/a place")
    if request.param == "store":
        (tmp_path / "a place").mkdir()
    return known if request.param == "folder" else Place(known.url, None)


def test_files(at: Place, tmp_path: Path) -> None:
    assert not at.stored()
    at.write("day=1/b", memoryview(b"content"))
    at.write("a", memoryview(b""))
    assert (tmp_path / "a place" / "day=1" / "b").read_bytes() == b"content"
    assert {path: of.size for path, of in at.stored().items()} == {"a": 0, "day=1/b": 7}
    assert all(of.written_s > 1e9 for of in at.stored().values())
    assert at.names("b") == ["day=1/b"]
    assert (at.has("day=1/b"), at.has("day=1"), at.has("c")) == (True, False, False)
    assert at.size("day=1/b") == 7
    at.move("day=1/b", "_x/c")
    assert at.names("") == ["_x/c", "a"]
    with at.open("_x/c") as opened:
        assert opened.read() == b"content"
    with pytest.raises(FileNotFoundError):
        at.open("day=1/b")


def test_what_delta_rs_cannot_write_to_is_refused() -> None:
    for warehouse in ("/a%20b", "file:///a%2520b", "/a\\b"):
        with pytest.raises(OptionError, match="cannot write to a path with % or a backslash; rename it"):
            place(warehouse)
    assert place("file:///a%20b").folder == Path("/a b")


@pytest.mark.parametrize(
    ("path", "data"), [("day=1/part-1.txt", True), ("_delta_log/0.json", False), ("day=1/.part.crc", False)]
)
def test_what_may_be_data(path: str, data: bool) -> None:
    assert is_data(path) == data


def test_a_file_is_written_whole_or_not_at_all(tmp_path: Path) -> None:
    """A disk that is nearly full takes a part of a write, as a limit of a file's size does."""
    program = (
        "import resource, sys; from mqpipeline.lake.place import place; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)); "
        "place(sys.argv[1]).write('a', memoryview(bytes(150_000)))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", program, tmp_path], capture_output=True, text=True, check=False
    )
    assert "OSError: [Errno 27] File too large" in ended.stderr
    assert not (tmp_path / "a").exists()


def test_a_file_and_its_new_folders_are_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each folder's own entry too: a machine that loses its power forgets what lies in the cache of the system."""
    synced: list[str] = []
    monkeypatch.setattr(os, "fsync", lambda fd: synced.append(os.readlink(f"/proc/self/fd/{fd}")))
    place(str(tmp_path)).write("new/day=1/a", memoryview(b"content"))
    assert synced[0] == str(tmp_path / "new/day=1/a")
    assert set(synced[1:]) == {str(tmp_path / "new/day=1"), str(tmp_path / "new"), str(tmp_path)}


def test_one_name_for_all_who_read_and_write(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert place(f"/{tmp_path}/a").folder == tmp_path / "a"
    assert place(f"{tmp_path}/link/../b").folder == tmp_path / "b"
    assert place(f"{tmp_path}/link/c").folder == tmp_path / "real" / "c"


@pytest.mark.parametrize("url", ["file://host/a", "file:///a#b", "file:///a?b"])
def test_a_url_of_a_file_is_a_path_alone(url: str) -> None:
    with pytest.raises(OptionError, match="has no host"):
        place(url)
