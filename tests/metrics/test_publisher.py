"""What processes publish, and what a scrape makes of it."""

import fcntl
import logging
import os
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import NoReturn

import pytest
from prometheus_client.parser import text_string_to_metric_families

from metrics import exposition as scrapes
from metrics import files, publisher, readable
from metrics.catalogue import ADMISSION_REJECTED, CATALOGUE, FOLLOWER_CONNECTED, INFLIGHT, LOOP_LAG, REQUESTS
from metrics.counts import Counts, Histogram, Observed
from metrics.exposition import exposition
from metrics.files import VARIABLE, prepared, tidy
from metrics.metric import PREFIX, Scope
from metrics.publisher import Publisher
from metrics.samples import Sample
from worker.logs.rate_limited_log import RateLimitedLog

Series = dict[tuple[str, tuple[tuple[str, str], ...]], float]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "metrics"
    folder.mkdir()
    monkeypatch.setenv(VARIABLE, str(folder))
    for module in (publisher, readable, scrapes):  # each test has its lines
        monkeypatch.setattr(module, "log", RateLimitedLog(logging.getLogger(module.__name__)))
    return folder


def series() -> Series:
    """Return the samples of a scrape, by name without prefix and labels but `ns`."""
    found: Series = {}
    for family in text_string_to_metric_families(exposition().decode()):
        for sample in family.samples:
            labels = tuple(sorted((name, value) for name, value in sample.labels.items() if name != "ns"))
            found[sample.name.removeprefix(PREFIX), labels] = sample.value
    return found


class Process:
    """One that counts, in this process: two of them have two names."""

    def __init__(self, role: str = "remoting") -> None:
        self.rejected = Counts(ADMISSION_REJECTED)
        self.lag = Histogram(LOOP_LAG.buckets)
        self.inflight = 0
        self.connected = 1
        self.publisher = Publisher("default", Scope.REMOTING, role, self._read)

    def _read(self) -> Iterator[Sample | Observed]:
        yield from self.rejected.read()
        yield Observed(LOOP_LAG, (), self.lag)
        yield Sample(INFLIGHT, (), self.inflight)
        yield Sample(FOLLOWER_CONNECTED, (), self.connected)


ROUTES = "admission_rejected_total", (("class", "route"),)


def test_all_that_can_be_counted_is_there_from_the_start(folder: Path) -> None:
    Process().publisher.publish()
    found = series()
    for metric in CATALOGUE:
        if Scope.REMOTING in metric.scopes and metric.type != "gauge":
            name = metric.name + ("_bucket" if metric.type == "histogram" else "")
            shown = [labels for shown, labels in found if shown == name]
            assert len(shown) == len(list(metric.combinations())) * (len(metric.buckets) + 1 or 1), name
    assert found[ROUTES] == 0


def test_counters_and_gauges_of_processes_are_added(folder: Path) -> None:
    one, two = Process("one"), Process("two")
    one.rejected.add("route", by=3)
    two.rejected.add("route")
    one.inflight, two.inflight, two.connected = 4, 5, 0
    for process in (one, two, one):
        process.publisher.publish()
    found = series()
    assert found[ROUTES] == 4
    assert found["inflight_requests", ()] == 9
    assert found["follower_connected", ()] == 0
    assert found["workers", (("role", "one"),)] == 1


def test_a_histogram(folder: Path) -> None:
    one, two = Process("one"), Process("two")
    one.lag.observe(0.0002)
    one.lag.observe(0.0002, times=16)
    two.lag.observe(7.0)
    for process in (one, two):
        process.publisher.publish()
    found = series()
    assert found["loop_lag_seconds_bucket", (("le", "0.0001"),)] == 0
    assert found["loop_lag_seconds_bucket", (("le", "0.00025"),)] == 17
    assert found["loop_lag_seconds_bucket", (("le", "1.0"),)] == 17
    assert found["loop_lag_seconds_count", ()] == 18
    assert found["loop_lag_seconds_sum", ()] == pytest.approx(7.0034)


def test_a_histogram_is_published_again_once_something_was_observed(folder: Path) -> None:
    process = Process()
    for count in (1, 2, 3):
        process.lag.observe(0.0002)
        for _ in range(2):
            process.publisher.publish()
        assert series()["loop_lag_seconds_count", ()] == count
        assert series()["loop_lag_seconds_sum", ()] == pytest.approx(count * 0.0002)


def test_of_a_process_that_has_ended_the_counters_stay(folder: Path) -> None:
    process = Process()
    process.rejected.add("route")
    process.publisher.publish()
    for file in folder.glob("*.db"):
        file.rename(file.with_name(file.name.replace(f".{os.getpid()}.", f".{2**22 + 1}.")))
    tidy()
    found = series()
    assert found[ROUTES] == 1
    assert not {("inflight_requests", ()), ("workers", (("role", "remoting"),))} & found.keys()


def test_gauges_of_living_processes_stay(folder: Path) -> None:
    Process().publisher.publish()
    tidy()
    assert series()["workers", (("role", "remoting"),)] == 1


def test_a_later_process_with_its_id_counts_on(folder: Path) -> None:
    for _ in range(2):
        process = Process()
        process.rejected.add("route", by=2)
        process.publisher.publish()
    assert series()[ROUTES] == 4


def test_a_code_that_a_peer_made_up_is_other(folder: Path) -> None:
    counts = Counts(REQUESTS)
    for code in (105, 7_000_000, 105):
        counts.add(code, "ok")
    values = {labels: value for _, labels, value in counts.read() if value}
    assert values == {("105", "ok"): 2, ("other", "ok"): 1}


def test_a_process_that_starts_is_not_the_least(folder: Path) -> None:
    """Before it has published what it has."""
    Process().publisher.publish()
    seen: list[float] = []

    def read() -> Iterator[Sample]:
        seen.append(series()["follower_connected", ()])
        yield Sample(FOLLOWER_CONNECTED, (), 1)

    Publisher("default", Scope.REMOTING, "starting", read).publish()
    assert seen == [1]


def test_many_processes_that_have_ended_are_added_up(folder: Path) -> None:
    for number in range(files.ENDED_MOST + 5):
        process = Process(f"worker{number}")
        process.rejected.add("route")
        process.lag.observe(0.1)
        process.publisher.publish()
        for file in folder.glob(f"*_worker{number}.*"):
            file.rename(file.with_name(file.name.replace(f".{os.getpid()}.", f".{2**22 + number}.")))
    before = series()
    tidy()
    assert len(list(folder.glob("counter_*"))) == len(list(folder.glob("histogram_*"))) == 1
    after = series()
    gauges = {metric.name for metric in CATALOGUE if metric.type == "gauge"}
    assert after == {key: value for key, value in before.items() if key[0] not in gauges}
    assert after[ROUTES] == files.ENDED_MOST + 5


def test_nothing_is_added_up_while_a_scrape_reads(folder: Path) -> None:
    with files.locked(folder):
        waiting = threading.Thread(
            target=lambda: files.locked(folder, fcntl.LOCK_EX).__enter__(), daemon=True
        )
        waiting.start()
        waiting.join(0.2)
        assert waiting.is_alive()
    waiting.join(10)
    assert not waiting.is_alive()


def test_without_a_folder_nothing_is_published(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    Process().publisher.publish()
    assert series() == {}


def test_where_there_is_no_room_a_line_says_so(
    folder: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", full)
    process = Process()
    process.publisher.publish()
    process.publisher.publish()
    (record,) = caplog.records
    assert "No space left on device" in record.message
    monkeypatch.undo()
    monkeypatch.setenv(VARIABLE, str(folder))
    process.rejected.add("route")
    process.publisher.publish()
    assert series()[ROUTES] == 1


@pytest.mark.parametrize("way", ["folder", "some", "all", "replaced"])
def test_files_that_were_deleted_are_written_again(
    folder: Path, way: str, caplog: pytest.LogCaptureFixture
) -> None:
    process = Process()
    process.rejected.add("route", by=3)
    process.publisher.publish()
    before = series()
    match way:
        case "folder":
            shutil.rmtree(folder)
        case "some":
            next(folder.glob("histogram_*.db")).unlink()
        case "all":
            for file in folder.glob("*.db"):
                file.unlink()
        case "replaced":
            copied = folder / "copy"
            shutil.copy(next(folder.glob("counter_*.db")), copied)
            copied.rename(next(folder.glob("counter_*.db")))
    for _ in range(3):
        process.publisher.publish()
    assert series() == before
    assert before[ROUTES] == 3
    (record,) = caplog.records
    assert str(folder) in record.message
    assert VARIABLE in record.message
    process.rejected.add("route")
    process.publisher.publish()
    assert series()[ROUTES] == 4


def test_where_the_folder_cannot_be_made_again_it_is_once_it_can(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    process = Process()
    process.publisher.publish()
    before = series()
    shutil.rmtree(folder)
    folder.write_text("a file")
    process.publisher.publish()
    assert series() == {}
    assert "metrics are not published: " in caplog.text
    folder.unlink()
    process.publisher.publish()
    assert series() == before


@pytest.mark.parametrize("name", ["counter_remoting.7.db", "gauge.db", "notes.db", "gauge_livesum_x.7.db"])
@pytest.mark.parametrize("junk", [b"\xff\xff\xff\x7f" + b"\xff" * 100, b"a note", b"\x40\0\0\0" * 16])
def test_a_file_that_cannot_be_read_costs_only_itself(
    folder: Path, name: str, junk: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    Process().publisher.publish()
    before = series()
    (folder / name).write_bytes(junk)
    assert series() == before
    (record,) = caplog.records
    assert str(folder / name) in record.message
    assert "remove" in record.message


def test_a_file_that_cannot_be_read_is_not_added_up(folder: Path) -> None:
    for number in range(files.ENDED_MOST + 1):
        (folder / f"counter_x.{2**22 + number}.db").write_bytes(b"a note")
    tidy()
    assert len(list(folder.glob("counter_x.*"))) == files.ENDED_MOST + 1


def test_files_without_values_are_nothing_to_tell(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A process that found no room for them has left empty ones."""
    Process().publisher.publish()
    before = series()
    (folder / "counter_remoting.7.db").touch()
    assert (series(), caplog.records) == (before, [])


def test_a_second_server_has_a_folder_of_its_own(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    first, second = {VARIABLE: str(tmp_path)}, {VARIABLE: str(tmp_path)}
    with prepared(first):
        (tmp_path / "counter_remoting.7.db").write_bytes(b"values")
        with prepared(second) as its_own:
            assert its_own != tmp_path
            assert second == {VARIABLE: str(its_own)}
            assert (tmp_path / "counter_remoting.7.db").exists()
        assert (its_own.exists(), second) == (False, {VARIABLE: str(tmp_path)})
    (record,) = caplog.records
    assert record.message.startswith(
        f"the folder of metrics {tmp_path} cannot be used: another server uses it; "
    )
    assert VARIABLE in record.message
    with prepared(second) as later:
        assert later == tmp_path


def test_a_folder_that_is_none_is_not_used(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").touch()
    env = {VARIABLE: str(tmp_path / "file")}
    with prepared(env) as path:
        assert env == {VARIABLE: str(path)}
    assert "cannot be used" in caplog.text


def test_the_folder_is_made_and_removed() -> None:
    env: dict[str, str] = {}
    with prepared(env) as made:
        assert made.is_dir()
        assert env == {VARIABLE: str(made)}
    assert not made.exists()
    assert env == {}


def test_a_folder_of_a_process_that_was_killed_is_removed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MEMORY", str(tmp_path))
    left, used = tmp_path / f"{files.MADE}{2**22 + 1}-abc", tmp_path / f"{files.MADE}{os.getppid()}-abc"
    for folder in (left, used):
        folder.mkdir()
    with prepared({}):
        assert (left.exists(), used.exists()) == (False, True)


def test_a_folder_that_another_server_removes_first_keeps_none_from_its_start(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, "MEMORY", str(tmp_path))
    (tmp_path / f"{files.MADE}{2**22 + 1}-abc").symlink_to(tmp_path / "gone")
    with prepared({}) as made:
        assert made.is_dir()


def test_a_folder_that_is_named_is_emptied_and_stays(tmp_path: Path) -> None:
    (tmp_path / "counter_remoting.7.db").write_bytes(b"old")
    (tmp_path / "notes").write_bytes(b"")
    with prepared({VARIABLE: str(tmp_path)}):
        assert [path.name for path in tmp_path.iterdir()] == ["notes"]
    assert tmp_path.is_dir()
