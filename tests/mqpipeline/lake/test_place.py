"""Where a table can be, and that a folder and an object store are used alike."""

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
