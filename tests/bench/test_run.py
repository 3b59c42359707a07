"""`python -m bench.run`: a row measured alone, and a report with its head and notes."""

import re
import subprocess
import sys
from contextlib import nullcontext
from pathlib import Path
from types import SimpleNamespace

import pytest

from bench import closed_loop, run
from bench import report as report_module
from bench.report import Row, report
from bench.run import Measurement, measurements
from bench.setting import HERE, Setting, choose_cores
from bench.workloads import Scene, Workload

ROW = Row("a load", "10", "30", "≥ 2 times", "**3 times**", True)


@pytest.mark.needs("cc")
def test_a_row_is_measured_alone_and_no_report_written() -> None:
    before = (HERE / "RESULTS.md").read_bytes()
    words = [
        "-m",
        "bench.run",
        "--only",
        "a.change.seen",
        "--rounds",
        "1",
        "--seconds",
        "0.1",
        "--warm-up",
        "0.1",
    ]
    out = subprocess.run(
        [sys.executable, *(word.replace(".change.seen", " change seen") for word in words)],
        cwd=HERE.parent,
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    assert re.fullmatch(
        r"\| a change seen by every worker \|  \| 3 workers, 300 changes: .*\| p99 ≤ 5 ms \|.*\n", out
    )
    assert (HERE / "RESULTS.md").read_bytes() == before


def test_each_row_has_a_name_that_finds_it_alone() -> None:
    names = [name for one in measurements("") for name in one.names]
    assert len(names) == len(set(names)) >= 20
    for name in names:
        assert [one for one in measurements(name) if name in one.names]


def test_only_the_wanted_loads_of_a_scene_are_run() -> None:
    (one,) = measurements("one topic of 10 changed")
    assert one.names == ("one topic of 10 changed",)


def test_a_measurement_that_fails_is_a_row_that_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    def fails(setting: Setting) -> list[Row]:
        raise RuntimeError("the server closed\nthe connection")

    setting = Setting(tmp_path, 0, 1, True, 1, 1.0, 1.0)
    monkeypatch.setattr(run, "prepare", lambda *_, **__: setting)
    monkeypatch.setattr(
        run,
        "measurements",
        lambda _: [Measurement(("one", "two"), fails), Measurement(("x",), lambda _: [ROW])],
    )
    monkeypatch.setattr(sys, "argv", ["run", "--only", "x"])
    run.main()
    reason = "not measured: the server closed the connection | **missed** |"
    assert capsys.readouterr().out == f"| one |  |  |  | {reason}\n| two |  |  |  | {reason}\n{ROW.line()}\n"


def test_a_load_that_fails_leaves_those_beside_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def measured(workload: Workload, *_: object) -> list[Row]:
        if workload.name == "lost":
            raise RuntimeError("lost: java erred 1, lost 0")
        return [ROW]

    asking = SimpleNamespace(ask_all=lambda _: None)
    monkeypatch.setattr(closed_loop, "_measured", measured)
    monkeypatch.setattr(closed_loop, "Asking", lambda _: nullcontext(asking))
    for server in ("java_name_server", "this_server"):
        monkeypatch.setattr(closed_loop, server, lambda *_, **__: nullcontext(SimpleNamespace(port=0)))
    loads = tuple(Workload(name, 1, 1, list) for name in ("first", "lost", "last"))
    rows = closed_loop.closed_loops(Scene(list, loads), Setting(tmp_path, 0, 1, True, 1, 1.0, 1.0))
    assert rows == [ROW, Row("lost", "", "", "", "not measured: lost: java erred 1, lost 0", False), ROW]


@pytest.mark.parametrize(
    ("still_us", "chosen"),
    [
        ({0: 0.0, 1: 0.0}, (0, 1, True)),
        ({0: 0.0, 1: 4000.0}, (1, 0, True)),
        ({0: 4000.0, 1: 0.0}, (0, 1, True)),
        ({0: 4000.0, 1: 4000.0}, (0, 1, False)),
        ({3: 0.0}, (3, 3, True)),
    ],
)
def test_the_load_has_the_core_whose_clock_is_good(
    still_us: dict[int, float], chosen: tuple[int, int, bool]
) -> None:
    assert choose_cores(still_us) == chosen


def test_the_report_has_the_table_between_what_people_wrote(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_module, "HERE", tmp_path)
    (tmp_path / "RESULTS.head.md").write_text("# Results\n\nBy hand.\n")
    setting = Setting(tmp_path, 0, 1, False, 3, 4.0, 25.0)
    assert "clock" in report([ROW], setting)
    (tmp_path / "RESULTS.notes.md").write_text("## Why\n\nBy hand too.\n")
    text = report([ROW], setting)
    assert text.startswith("# Results\n\nBy hand.\n\nMachine: ")
    assert "Median of 3 runs of 4 s" in text
    assert text.endswith(
        "| a load | 10 | 30 | ≥ 2 times | **3 times** | reached |\n\n## Why\n\nBy hand too.\n"
    )


@pytest.mark.parametrize(("reached", "verdict"), [(True, "reached"), (False, "**missed**"), (None, "")])
def test_a_row_ends_with_its_verdict(reached: bool | None, verdict: str) -> None:
    assert Row("a", "b", "c", "d", "e", reached).line() == f"| a | b | c | d | e | {verdict} |"
