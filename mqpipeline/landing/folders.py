"""Where a landing's rows are: `day=<day>/batches=<first>-<last>`, written by one batch or by making several one.

A folder counts if its batches have landed, as the progress says, and if no other folder of that day holds its
batches and more. One of several batches is whole once Spark has written its `_SUCCESS` file.
"""

from collections.abc import Iterable
from typing import NamedTuple

from pyspark.sql import SparkSession

from mqpipeline import files

WHOLE = "_SUCCESS"


class Folder(NamedTuple):
    """Rows of one day of some batches."""

    day: str
    first: int
    last: int

    def __str__(self) -> str:
        return f"day={self.day}/batches={batches(self.first, self.last)}"

    def within(self, other: "Folder") -> bool:
        """Whether another folder holds all of its rows."""
        return (
            self != other and self.day == other.day and other.first <= self.first and self.last <= other.last
        )


def batches(first: int, last: int) -> str:
    """How a folder names them; sorts as numbers do."""
    return f"{first:012d}-{last:012d}"


def folders(spark: SparkSession, root: str, day: str = "*") -> list[Folder]:
    """All there are, usable or not."""
    return [_folder(path) for path in files.matching(spark, f"{root}/day={day}/batches=*")]


def usable(spark: SparkSession, root: str, landed: int, day: str = "*") -> list[Folder]:
    """Those that hold each row of batches up to `landed` once."""
    success_files = files.matching(spark, f"{root}/day={day}/batches=*/{WHOLE}")
    whole = {_folder(path.rpartition("/")[0]) for path in success_files}
    all_folders = [
        folder
        for folder in folders(spark, root, day)
        if folder.last <= landed and (folder.first == folder.last or folder in whole)
    ]
    return _widest(all_folders)


def _widest(all_folders: Iterable[Folder]) -> list[Folder]:
    """Less those within others. Folders of a day never overlap otherwise."""
    widest: list[Folder] = []
    for folder in sorted(all_folders, key=lambda folder: (folder.day, folder.first, -folder.last)):
        if not (widest and folder.within(widest[-1])):
            widest.append(folder)
    return widest


def _folder(path: str) -> Folder:
    day, numbers = path.rsplit("/", 2)[1:]
    first, _, last = numbers.removeprefix("batches=").partition("-")
    return Folder(day.removeprefix("day="), int(first), int(last))
