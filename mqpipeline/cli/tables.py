"""Care of the tables' files: without Spark, so without Java."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Annotated

import pyarrow as pa
import typer
from deltalake.exceptions import DeltaError
from redis.exceptions import RedisError

from mqpipeline import derived
from mqpipeline import options as all_options
from mqpipeline.cli.common import NOT_THERE, WRONG_USAGE, OfUrl, OfWarehouse, stop, what_failed
from mqpipeline.lake import maintenance
from mqpipeline.lake.check import Checked
from mqpipeline.lake.log import LakeError, Log, opened
from mqpipeline.lake.place import Place, place
from mqpipeline.landing import check as checking
from mqpipeline.landing import migrate as migrating
from mqpipeline.landing import repair as repairing
from mqpipeline.landing.acknowledged import acknowledged
from mqpipeline.landing.kinds import LANDED, Landed
from mqpipeline.options import OptionError
from mqpipeline.texts import one_line
from pyspark_redis_stream.connection import AWAY

REPAIR = " Run `mqpipeline repair`"
"""What findings advise."""
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask")]


def add(app: typer.Typer) -> None:
    """The commands `check`, `repair`, `migrate`, `compact` and `vacuum`."""
    for command in (check, repair, migrate, compact, vacuum):
        app.command()(command)


def check(warehouse: OfWarehouse = None, url: OfUrl = None) -> None:
    """Check logs, files, numbers of entries, positions. One line a finding, exit code 1 for any."""
    findings = 0
    with _ended_by_error():
        chosen = _options(warehouse, url)
        checked = []
        for at, landed in _tables(place(chosen.warehouse)):
            result = checking.check(at, landed)
            rows = len(result.rows) if result.rows is not None else 0
            checked.append(f"{landed.table.name} ({rows:,} entries)")
            if chosen.url and not result.findings:
                result = result.and_also(_against_store(at, landed, chosen))
            for line in (*result.remarks, *result.findings):
                print(line)
            findings += len(result.findings)
        result = derived.check(place(chosen.warehouse))
        for line in (*result.remarks, *result.findings):
            print(line)
        findings += len(result.findings)
    if findings:
        raise typer.Exit(NOT_THERE)
    print(
        f"in order: {', '.join(checked)}: logs, files, numbers of entries, positions; derived tables: files"
    )


def repair(warehouse: OfWarehouse = None, url: OfUrl = None, yes: Yes = False) -> None:
    """Make the log of a damaged table whole again; no file is deleted. Stop the landing first. With --url it knows what
    was acknowledged."""
    with _ended_by_error():
        chosen = _options(warehouse, url)
        root = place(chosen.warehouse)
        for at, landed in _tables(root):
            plan = repairing.planned(at, landed, partial(acknowledged, chosen.url, chosen.consumer, landed))
            if plan is None:
                print(f"{landed.table.name}: the log is in order")
                continue
            print("\n".join(plan.lines()))
            if not (yes or typer.confirm(f"Repair {landed.table.name}?", default=False)):
                print(f"{landed.table.name}: nothing is done")
                continue
            repairing.done(plan)
            print(f"{landed.table.name}: done; mqpipeline check reads all of it")
        _repair_derived(root, yes=yes)


def migrate(warehouse: OfWarehouse = None) -> None:
    """Make a warehouse of release 0.1 one of this; no landed row is rewritten. Stop the landing first."""
    with _ended_by_error():
        root = place(_options(warehouse).warehouse)
        tables = [*_tables(root)]
        print(f"derived tables: {derived.migrate(root)}")
        for at, landed in tables:
            print(f"{landed.table.name}: {migrating.migrate(at, landed)}")


def compact(warehouse: OfWarehouse = None) -> None:
    """Make the many small files of a day few. Landing and readers go on meanwhile."""
    with _ended_by_error():
        for log in _writable_logs(warehouse):
            print(f"{log.table.name}: {maintenance.compact(log)} fewer files")


def vacuum(warehouse: OfWarehouse = None) -> None:
    """Delete files that no log has used for a week. Landing and readers go on meanwhile."""
    with _ended_by_error():
        for log in _writable_logs(warehouse):
            print(f"{log.table.name}: {maintenance.vacuum(log)} files are deleted")


def _repair_derived(root: Place, *, yes: bool) -> None:
    findings = derived.check(root).findings
    print("\n".join(findings).replace(REPAIR, "") or "derived tables: their files are in order")
    if findings and (
        yes or typer.confirm("Set all derived tables aside, to be computed again?", default=False)
    ):
        print(f"derived tables: moved to {derived.set_aside(root)}; the next run computes them again")


def _against_store(at: Place, landed: Landed, chosen: all_options.Options) -> Checked:
    known = partial(acknowledged, chosen.url, chosen.consumer, landed)
    try:
        return checking.check_streams(at, landed, chosen.url, known)
    except (RedisError, *AWAY) as error:
        if isinstance(error, OSError) and error.filename:
            raise
        finding = f"{landed.table.name}: not checked against the streams, for Redis does not answer: {error}"
        return Checked([finding], [])


def _writable_logs(warehouse: str | None) -> Iterator[Log]:
    """Those of the tables that are there, in folders that can be written."""
    for at, landed in _tables(place(_options(warehouse).warehouse)):
        if (log := opened(at, landed.table)) is not None:
            at.refuse_unwritable()
            yield log


def _tables(root: Place) -> Iterator[tuple[Place, Landed]]:
    if root.folder is not None and not root.folder.is_dir():
        raise LakeError(f"{root.name} is no folder: see its path, or fill it with `mqpipeline run`")
    for landed in LANDED:
        yield root.under(landed.table.name), landed


def _options(warehouse: str | None, url: str | None = None) -> all_options.Options:
    return all_options.load(os.environ, {"warehouse": warehouse, "url": url})


@contextmanager
def _ended_by_error() -> Iterator[None]:
    """With one line."""
    try:
        yield
    except OptionError as error:
        stop(str(error), WRONG_USAGE)
    except (LakeError, DeltaError, pa.ArrowException) as error:
        stop(one_line(error), NOT_THERE)
    except (RedisError, *AWAY) as error:
        if isinstance(error, OSError) and error.filename:
            stop(what_failed(error), NOT_THERE)
        stop(f"Redis does not answer: {error}; without --url what it knows is left out", NOT_THERE)
