"""The build hook: a compiled transport that its source has outrun is not left to be tested in its place."""

import os
from pathlib import Path

import pytest

import hatch_build


@pytest.mark.parametrize(("source_s", "stays"), [(1000, True), (3000, False)])
def test_what_is_older_than_its_source_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source_s: int, stays: bool
) -> None:
    folder = tmp_path / "worker" / "transport"
    folder.mkdir(parents=True)
    for name, at_s in (("epoll.pyx", source_s), ("epoll.cpython-311.so", 2000)):
        (folder / name).touch()
        os.utime(folder / name, (at_s, at_s))
    monkeypatch.setattr(hatch_build, "ROOT", tmp_path)
    hatch_build._remove_older()
    assert (folder / "epoll.cpython-311.so").exists() == stays
