"""The folder in which the processes of a container publish what they count, and a scrape reads it.

PROMETHEUS_MULTIPROC_DIR names it, a variable of the client library. What starts the processes makes it, empty; should
it be deleted, they make it again. Counters of a process that has ended stay, so that none falls; where there are many,
they are added up."""

import fcntl
import logging
import os
import shutil
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, MutableMapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Final

from prometheus_client.mmap_dict import MmapedDict

from metrics.metric import Merge
from metrics.readable import readable

__all__ = ["VARIABLE", "discard", "folder", "identity", "inodes", "locked", "prepared", "reserve", "tidy"]

VARIABLE: Final = "PROMETHEUS_MULTIPROC_DIR"
MEMORY: Final = "/dev/shm"
"""Where the folder is by default: no disk keeps a worker waiting."""
MADE: Final = "mqnamesrv-metrics-"
"""What the name of a folder that was made begins with, before the id of the process."""
ENDED_MOST: Final = 4
"""Processes that have ended whose files are left as they are."""
SUM: Final = "ended.0"
"""Stands for all processes whose files were added up."""
LOCK: Final = "lock"
RESERVED: Final = {
    "counter": 1 << 19,
    "histogram": 1 << 19,
    **{f"gauge_{merge}": 1 << 16 for merge in Merge},
}
"""Bytes of each file of a process: a number takes some 170."""

log = logging.getLogger(__name__)


def folder() -> Path | None:
    """Return the folder, None where none is named: then nothing is published."""
    path = os.environ.get(VARIABLE)
    return Path(path) if path else None


@contextmanager
def prepared(env: MutableMapping[str, str]) -> Iterator[Path]:
    """Empty the folder that the variable names; or have it name a new one, which is removed at the end: where none is
    named, or that is of another server, or is none."""
    given = env.get(VARIABLE)
    with ExitStack() as stack:
        if given:
            path = Path(given)
            try:
                stack.enter_context(_claimed(path))
                for file in path.glob("*.db"):
                    file.unlink(missing_ok=True)
            except OSError as error:
                log.warning(
                    "the folder of metrics %s cannot be used: %s; this server has a folder of its own instead, give "
                    "each server another one (%s)",
                    path,
                    "another server uses it" if isinstance(error, BlockingIOError) else error,
                    VARIABLE,
                )
            else:
                yield path
                return
    with _made(env) as path:
        yield path


@contextmanager
def _claimed(path: Path) -> Iterator[None]:
    """Make the folder, and keep other servers from it. Raises OSError: BlockingIOError where another one has it."""
    path.mkdir(parents=True, exist_ok=True)
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(fd)


@contextmanager
def _made(env: MutableMapping[str, str]) -> Iterator[Path]:
    """Have the variable name a new folder, which is removed at the end."""
    given = env.get(VARIABLE)
    within = MEMORY if os.access(MEMORY, os.W_OK) else tempfile.gettempdir()
    _remove_left_ones(Path(within))
    made = tempfile.mkdtemp(prefix=f"{MADE}{os.getpid()}-", dir=within)
    env[VARIABLE] = made
    try:
        yield Path(made)
    finally:
        env.pop(VARIABLE, None)
        if given is not None:
            env[VARIABLE] = given
        shutil.rmtree(made, ignore_errors=True)


def identity(role: str, pid: int) -> str:
    """Return what the files of a process are named by: ids alone are not unique where containers share a folder."""
    return f"{role}.{pid}"


def tidy() -> None:
    """Drop the gauges of processes that have ended; of many, add up what they counted. For the process that starts the
    others: whether one lives is not seen from another container."""
    if (path := folder()) is None:
        return
    for file in path.glob("gauge_live*.db"):
        if not _lives(file):
            file.unlink(missing_ok=True)
    _add_up_ended(path)


def reserve(name: str) -> None:
    """Make the files of a process, and their folder, as long as they need to be: one that grows into a full disk or
    memory later would end the process by a signal. Raises OSError."""
    if (path := folder()) is None:
        return
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    for file, size in zip(_files_of(name), RESERVED.values(), strict=True):
        fd = os.open(file, os.O_RDWR | os.O_CREAT, 0o600)
        try:
            os.posix_fallocate(fd, 0, size)
        finally:
            os.close(fd)


def inodes(name: str) -> tuple[int, ...]:
    """Return what tells the files of a process from later ones of their names; 0 for one that is gone."""
    return tuple(_inode(file) for file in _files_of(name))


def discard(name: str) -> None:
    """Remove what is left of the files of a process. Raises OSError."""
    for file in _files_of(name):
        file.unlink(missing_ok=True)


@contextmanager
def locked(path: Path, how: int = fcntl.LOCK_SH) -> Iterator[None]:
    """Keep files from being added up (LOCK_SH), or read meanwhile (LOCK_EX)."""
    with open(path / LOCK, "a") as file:
        fcntl.flock(file, how)
        yield


def _files_of(name: str) -> list[Path]:
    path = folder()
    return [] if path is None else [path / f"{kind}_{name}.db" for kind in RESERVED]


def _inode(file: Path) -> int:
    try:
        return file.stat().st_ino
    except OSError:
        return 0


def _add_up_ended(path: Path) -> None:
    """Replace the counters and histograms of processes that have ended by their sum."""
    for kind in ("counter", "histogram"):
        files = [file for file in path.glob(f"{kind}_*.db") if not _lives(file)]
        if len(files) > ENDED_MOST:
            with locked(path, fcntl.LOCK_EX):
                _add_up([*map(Path, readable(files))], path / f"{kind}_{SUM}.db")


def _remove_left_ones(within: Path) -> None:
    """Remove folders of this user that were made by processes which were killed."""
    for left in within.glob(f"{MADE}*-*"):
        pid = left.name.removeprefix(MADE).partition("-")[0]
        with suppress(FileNotFoundError):  # another server that starts has removed it meanwhile
            if pid.isdecimal() and not os.path.exists(f"/proc/{pid}") and left.stat().st_uid == os.getuid():
                shutil.rmtree(left, ignore_errors=True)


def _lives(file: Path) -> bool:
    pid = file.stem.rpartition(".")[2]
    return pid != "0" and os.path.exists(f"/proc/{pid}")


def _add_up(files: Iterable[Path], into: Path) -> None:
    sums = defaultdict[str, float](float)
    for file in files:
        for key, value, *_ in MmapedDict.read_all_values_from_file(str(file)):
            sums[key] += value
    unfinished = into.with_suffix(".new")
    unfinished.unlink(missing_ok=True)
    written = MmapedDict(str(unfinished))
    for key, value in sums.items():
        written.write_value(key, value, 0.0)
    written.close()
    for file in files:
        file.unlink()
    unfinished.rename(into)
