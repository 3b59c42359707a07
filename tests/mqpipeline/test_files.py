from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from mqpipeline import files


def test_text_is_replaced(spark: SparkSession, tmp_path: Path) -> None:
    path = f"{tmp_path}/folder/text"
    assert files.read_text(spark, path) is None
    for text in ("old", "né\n"):
        files.write_text_atomically(spark, path, text)
        assert files.read_text(spark, path) == text
    assert [found.name for found in (tmp_path / "folder").iterdir()] == ["text"]


def test_a_checksum_that_a_kill_left_behind_does_no_harm(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop keeps one beside each local file, and renames the two one after the other."""
    path = f"{tmp_path}/text"
    files.write_text_atomically(spark, path, "old")
    (tmp_path / ".text.crc").write_bytes(b"crc\0\0\0\2\0\0\0\0\0")
    assert files.read_text(spark, path) == "old"
    files.write_text_atomically(spark, path, "new")
    assert files.read_text(spark, path) == "new"


@pytest.mark.parametrize(
    ("pattern", "found"), [("day=*/b=*", ["day=1/b=1", "day=1/b=2", "day=2/b=1"]), ("x*", [])]
)
def test_paths_that_match(spark: SparkSession, tmp_path: Path, pattern: str, found: list[str]) -> None:
    for name in ("day=1/b=1", "day=1/b=2", "day=2/b=1", "day=1/c=1"):
        (tmp_path / name).mkdir(parents=True)
        (tmp_path / name / "rows").write_bytes(b"12345")
    assert [
        path.rpartition(f"{tmp_path}/")[2] for path in files.matching(spark, f"{tmp_path}/{pattern}")
    ] == found
    assert files.size(spark, f"{tmp_path}/day=1") == 15
    assert (
        abs(files.changed_s(spark, f"{tmp_path}/day=1/b=1/rows") - (tmp_path / "day=1").stat().st_mtime) < 60
    )
