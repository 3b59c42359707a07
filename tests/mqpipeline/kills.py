"""kill -9 of real drivers, again and again: what has landed and all tables are those of an undisturbed run.

    python -m tests.mqpipeline.kills [--kills N] [--minutes N] [--seed N]

Each `mqpipeline run` finds new entries in the stream of a store of its own. Half of the runs are killed within 50 ms of
a commit, that of what has landed or of one of the tables, the others at any time. The last one ends by itself; then its
tables are compared with those that a full run makes of the stream, and what has landed with the stream itself. The
lease that a killed run leaves is removed for nine of ten, which else wait for it to end.
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from pathlib import Path
from typing import Any

import msgspec
import redis as redis_py
from deltalake import DeltaTable

from mqnamesrv.store import EmbeddedStore
from mqpipeline.building import Source, build
from mqpipeline.lake.log import opened
from mqpipeline.lake.place import place
from mqpipeline.landing import reading
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.landing.progress import progress_of
from mqpipeline.options import Options
from mqpipeline.schemas import RUNS
from mqpipeline.session import spark_session
from mqpipeline.tables.health import ROUND, Entries
from mqpipeline.warehouse import DERIVED, Warehouse
from tests.mqpipeline.rows import rows_of
from tests.mqpipeline.stream import W0
from tests.mqpipeline.tables.histories import Namespace

NAMESPACE = "default"
LEASE = f"ns:{{{NAMESPACE}}}:events:landing:pipeline:main"
NEAR_S = 0.05
LOOKS_EVERY_S = 0.002
STEPS = 12
"""Changes between two runs."""
HISTORY_S = 3 * 86_400.0
NOT_COMPARED = {"as_of", *ROUND}
"""When a table was made; and the newest round that one run has read whole, which runs over all see more of."""


class Ended(msgspec.Struct, frozen=True):
    """How a driver ended: `step` is the last line that it printed, `commits` those of its run so far."""

    killed: bool
    step: str
    commits: int
    took_s: float


class Stage:
    """A store with a history that grows, and a warehouse."""

    def __init__(self, folder: Path, url: str, seed: int) -> None:
        self.url, self.root = url, folder / "warehouse"
        self.output = folder / "output"
        self.store = redis_py.Redis.from_url(url, decode_responses=True)
        self.history = Namespace(seed, inc=round(time.time() - HISTORY_S - W0 / 1000))
        self._given = 0

    def grow(self) -> None:
        """Let more happen, a checkpoint round now and then."""
        self.history.live(STEPS)
        fresh = self.history.stream.entries[self._given :]
        self._given += len(fresh)
        for entry in fresh:
            fields: Any = entry.fields
            self.store.xadd(EVENTS_LAND.stream(NAMESPACE), fields, id=entry.id)

    def run(self, kill_after_s: float | None = None, kill_after_commit: int | None = None) -> Ended:
        """Run a driver, until it ends or is killed."""
        begun, before = time.monotonic(), self._commits()
        with self._driver() as process:
            due: float | None = None if kill_after_s is None else begun + kill_after_s
            while process.poll() is None and (due is None or time.monotonic() < due):
                if (
                    due is None
                    and kill_after_commit is not None
                    and self._commits() - before >= kill_after_commit
                ):
                    due = time.monotonic() + random.uniform(0, NEAR_S)
                time.sleep(LOOKS_EVERY_S)
            killed = process.poll() is None
            if killed:
                os.killpg(process.pid, signal.SIGKILL)
            code = process.wait()
        lines = self.output.read_text().splitlines() or [""]
        if not killed and code:
            raise RuntimeError("\n".join(lines[-40:]))
        return Ended(
            killed,
            lines[-1].partition("[INFO] mqpipeline.")[2],
            self._commits() - before,
            time.monotonic() - begun,
        )

    @contextmanager
    def _driver(self) -> Iterator[subprocess.Popen[bytes]]:
        command = [
            sys.executable,
            "-m",
            "mqpipeline.cli",
            "run",
            "--url",
            self.url,
            "--warehouse",
            str(self.root),
        ]
        with self.output.open("wb") as output:
            process = subprocess.Popen(
                command, stdout=output, stderr=subprocess.STDOUT, start_new_session=True
            )
            try:
                yield process
            finally:
                process.kill()
                process.wait()

    def _commits(self) -> int:
        return sum(1 for _ in self.root.glob("*/_delta_log/*.json"))


def main() -> None:
    """Print a line for each kill, and at the end what differs; exit code 1 if anything does."""
    parser = argparse.ArgumentParser(description="kill -9 of the pipeline's driver")
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--minutes", type=float, default=inf, help="no more of them after that")
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    random.seed(given.seed)
    with tempfile.TemporaryDirectory() as folder:
        store = EmbeddedStore(Path(folder) / "store", keep=False)
        store.start()
        try:
            stage = Stage(Path(folder), store.url, given.seed)
            disturb(stage, given.kills, time.monotonic() + 60 * given.minutes)
            wrong = differences(stage)
        finally:
            store.stop()
    print("\n".join(wrong) or "nothing differs")
    sys.exit(bool(wrong))


def disturb(stage: Stage, kills: int, until: float) -> None:
    """Kill so many drivers, none after that time, and let the last one end."""
    stage.grow()
    whole = stage.run()
    stage.grow()
    again = stage.run()
    print(
        f"undisturbed: {whole.commits} commits in {whole.took_s:.0f} s, then {again.commits} in {again.took_s:.0f} s"
    )
    done, near, steps = 0, 0, Counter[str]()
    while done < kills and time.monotonic() < until:
        stage.grow()
        if done % 10:
            stage.store.delete(LEASE)
        if done % 2:
            ended = stage.run(kill_after_commit=random.choice((1, random.randint(2, again.commits))))
        else:
            ended = stage.run(kill_after_s=random.uniform(0, again.took_s))
        if not ended.killed:
            continue
        done, near = done + 1, near + done % 2
        steps[ended.step] += 1
        print(
            f"{done} of {kills}: {ended.commits} commits, {ended.took_s:.1f} s, in: {ended.step}", flush=True
        )
    print(
        f"{done} kills, {near} within {NEAR_S * 1000:.0f} ms of a commit; by step: {dict(steps.most_common())}"
    )
    stage.store.delete(LEASE)
    stage.grow()
    stage.run()


def differences(stage: Stage) -> list[str]:
    """Return a line for each table that is not as it is made of the whole stream at once."""
    wrong = _landed_wrong(stage)
    spark = spark_session("kills")
    disturbed, undisturbed = Warehouse(spark, str(stage.root)), Warehouse(spark, f"{stage.root}-undisturbed")
    snapshot = disturbed.snapshot
    landed = progress_of(opened(place(disturbed.root).under("events"), EVENTS_LAND.table), EVENTS_LAND)
    source = Source(
        reading.events(spark, disturbed.root),
        reading.heartbeats(spark, disturbed.root),
        snapshot.as_of_ms,
        snapshot.as_of,
        {one.namespace: Entries(one.entries, one.rejected) for one in landed.streams.values()},
    )
    build(undisturbed.begin(), source, Options(), lambda _: None)
    compared = 0
    for table in (table for table in DERIVED if table is not RUNS):
        names = [name for name in table.schema.names if name not in NOT_COMPARED]
        frames = disturbed.read(table), undisturbed.read(table)
        one, other = (rows_of(frame, *names) for frame in frames)
        count, expected = (frame.count() for frame in frames)
        compared += count
        if one != other or count != expected:
            wrong.append(
                f"{table.name}: {count} rows, of a whole run {expected}; {len(one - other)} only here, "
                f"{len(other - one)} only there"
            )
    print(f"{compared:,} rows of {len(DERIVED) - 1} tables compared after {snapshot.run} runs that ended")
    spark.stop()
    return wrong


def _landed_wrong(stage: Stage) -> list[str]:
    listed: Any = stage.store.xrange(EVENTS_LAND.stream(NAMESPACE))
    in_stream = Counter(str(id) for id, _ in listed)
    rows = DeltaTable(str(stage.root / "events")).to_pyarrow_table(columns=["id_ms", "id_n"]).to_pylist()
    landed = Counter(f"{row['id_ms']}-{row['id_n']}" for row in rows)
    print(f"{len(rows):,} entries have landed of {len(listed):,}")
    if landed == in_stream:
        return []
    return [f"events: {(in_stream - landed).total()} are missing, {(landed - in_stream).total()} too many"]


if __name__ == "__main__":
    main()
