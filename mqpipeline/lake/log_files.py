"""What `_delta_log` of a table has in it, as files: for a log that delta-rs cannot open, or opens without all of it."""

import re
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from mqpipeline.lake.log import LOG, entry
from mqpipeline.lake.place import Place

ENTRY: Final = re.compile(r"(\d{20})\.json")
CHECKPOINT: Final = re.compile(r"(\d{20})\.checkpoint\..*parquet")
HINT: Final = f"{LOG}/_last_checkpoint"
ASIDE: Final = "_damaged-"
"""How the name of a folder in the log begins that has what was damaged there."""


class Entry(msgspec.Struct, frozen=True):
    """A log entry that can be read. `batch` is the number that its writer gives it, None if it is of no batch."""

    version: int
    empty: bool
    batch: int | None


class LogFiles(msgspec.Struct, frozen=True):
    """`version` is the last one up to which the log is whole, -1 if it has no beginning; it is read from a checkpoint
    of `base`, -1 for none. `aside` are the paths of what has to go so that the log ends there and delta-rs opens it;
    `entries` those that can be read, wherever they are."""

    base: int
    version: int
    aside: tuple[str, ...]
    entries: tuple[Entry, ...]

    def batches_after(self) -> set[int]:
        """Return the batches that are known to have been committed after `version`."""
        return {one.batch for one in self.entries if one.version > self.version and one.batch is not None}


def survey(place: Place, writer: str) -> LogFiles:
    """Look through the log of a table to which `writer` adds numbered batches."""
    paths = [path for path in place.under(LOG).names("") if "/" not in path]
    checkpoints = _checkpoints(place, paths, writer)
    whole = {version: batch for version, (batch, _) in checkpoints.items() if batch is not None}
    entries = {version: _entry(place, version, writer) for version in _versions(paths)}
    base = max(whole, default=-1)
    version = _last_whole(base, whole.get(base, 0), entries)
    readable = tuple(one for one in entries.values() if one is not None)
    bad = [entry(number) for number, one in entries.items() if one is None or number > version]
    bad += [path for _, (batch, of) in checkpoints.items() if batch is None for path in of]
    if place.has(HINT) and (bad or _hinted(place) not in {None, *whole}):  # delta-rs does without it
        bad.append(HINT)
    return LogFiles(base, version, tuple(sorted(bad)), readable)


@contextmanager
def copied(place: Place, log: LogFiles) -> Iterator[Path]:
    """A folder of this machine with a log that ends at `version`, and no other files; what is committed there changes
    nothing here."""
    with tempfile.TemporaryDirectory() as folder:
        of_base = re.compile(rf"{log.base:020d}\.checkpoint\..*parquet") if log.base >= 0 else None
        for path in place.under(LOG).names(""):
            number = ENTRY.fullmatch(path)
            if (number and log.base <= int(number[1]) <= log.version) or (
                of_base and of_base.fullmatch(path)
            ):
                target = Path(folder) / LOG / path
                target.parent.mkdir(exist_ok=True)
                with place.open(f"{LOG}/{path}") as opened:
                    target.write_bytes(opened.read())
        yield Path(folder)


def _versions(paths: list[str]) -> list[int]:
    return sorted(int(match[1]) for path in paths if (match := ENTRY.fullmatch(path)))


def _last_whole(base: int, batch: int, entries: Mapping[int, Entry | None]) -> int:
    """Return the last version that follows on `base` without a gap. An empty entry is one, unless the batch after it
    follows on that before: then it said nothing that is missing."""
    version, empty_since = base, None
    while (one := entries.get(version + 1)) is not None:
        if one.empty:
            empty_since = version if empty_since is None else empty_since
        elif one.batch is not None:
            if empty_since is not None and one.batch > batch + 1:
                return empty_since
            batch, empty_since = one.batch, None
        version += 1
    return version if empty_since is None else empty_since


def _hinted(place: Place) -> int | None:
    """Return the version of which `_last_checkpoint` says that it has one, None if it cannot be read."""
    with place.open(HINT) as opened:
        try:
            return msgspec.convert(msgspec.json.decode(bytes(opened.read()))["version"], int)
        except (msgspec.MsgspecError, KeyError, TypeError):
            return None


def _entry(place: Place, version: int, writer: str) -> Entry | None:
    """Return what an entry says, None if it cannot be read."""
    with place.open(entry(version)) as opened:
        lines = bytes(opened.read()).splitlines()
    try:
        actions: list[dict[str, dict[str, object]]] = [
            msgspec.json.decode(line, type=dict[str, dict[str, object]]) for line in lines
        ]
    except msgspec.DecodeError:
        return None
    batches = [one["txn"]["version"] for one in actions if one.get("txn", {}).get("appId") == writer]
    return Entry(version, not actions, msgspec.convert(batches[0], int) if batches else None)


def _checkpoints(
    place: Place, paths: list[str], writer: str
) -> dict[int, tuple[int | None, tuple[str, ...]]]:
    """Return for each version with a checkpoint the batch that it knows, None if it cannot be read, and its files."""
    files: dict[int, list[str]] = {}
    for path in paths:
        if match := CHECKPOINT.fullmatch(path):
            files.setdefault(int(match[1]), []).append(f"{LOG}/{path}")
    return {version: (_batch(place, of, writer), tuple(of)) for version, of in files.items()}


def _batch(place: Place, paths: list[str], writer: str) -> int | None:
    batch = 0
    for path in paths:
        try:
            with place.open(path) as opened:
                rows = pq.read_table(opened)  # all of it, so that all of it can be read
        except (pa.ArrowException, OSError):
            return None
        transactions = rows["txn"].to_pylist() if "txn" in rows.column_names else []
        batch = max([batch, *(int(one["version"]) for one in transactions if one and one["appId"] == writer)])
    return batch
