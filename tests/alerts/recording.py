"""Scrapes of a running server as a test of promtool: which alerts fire on them.

A second of the service is a step of 15 s. Before the first scrape the service is at rest for RESTS steps; after the
last one all goes on as it was: counters by the mean of their last increments, gauges as they are, and time stamps that
moved go on moving, so that what was young stays young and what stands still grows old."""

import re
import subprocess
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Final

import httpx
import msgspec
import yaml

from metrics.metric import PREFIX as OURS
from tools.alert_rules import PREFIX, RULES

STEP_S: Final = 15
RESTS: Final = 30
GOES_ON: Final = 300
"""Steps after the last scrape: longer than any alert waits."""
LAST: Final = 6
"""Increments of the last so many seconds go on."""
LATE: Final = 12
"""A time stamp of a job stands still if it did not move for so many seconds more than the job's interval."""
NAMES: Final = frozenset(re.findall(r"rocketmq_\w+", RULES.read_text()))
AWAITED: Final = frozenset(f"{OURS}{name}" for name in ("drained_brokers",))
READ: Final = NAMES | AWAITED
BOUNDS: Final = frozenset(re.findall(r'le="([^"]+)"', RULES.read_text()))
LINE: Final = re.compile(r"^(?P<name>\w+)\{(?P<labels>.*)\} (?P<value>\S+)$", re.MULTILINE)
LABEL: Final = re.compile(r'(?P<name>\w+)="(?P<value>[^"\\]*)"')
STAMP: Final = "_timestamp_seconds"
INTERVAL: Final = f"{OURS}task_interval_seconds"
Labels = tuple[tuple[str, str], ...]
Series = tuple[str, Labels]
Values = Mapping[Series, float]


class Scrape:
    """What was read at a time of the machine's clock; no series where the server did not answer."""

    def __init__(self, at: float, text: str) -> None:
        self.at = at
        self._text = text

    @cached_property
    def values(self) -> Values:
        """Return the series of metrics that rules use, and of some by which faults are awaited."""
        return dict(_parsed(self._text))


def _parsed(text: str) -> Iterator[tuple[Series, float]]:
    for line in LINE.finditer(text):
        if line["name"] in READ:
            labels = {label["name"]: label["value"] for label in LABEL.finditer(line["labels"])}
            if "le" not in labels or labels["le"] in BOUNDS:
                yield (line["name"], tuple(sorted(labels.items()))), float(line["value"])


class Recorder(threading.Thread):
    """Scrapes each second until it is ended."""

    def __init__(self, url: str) -> None:
        super().__init__(daemon=True)
        self.scrapes: list[Scrape] = []
        self._url = url
        self._over = threading.Event()

    def run(self) -> None:
        while not self._over.is_set():
            began = time.time()
            self.scrapes.append(Scrape(began, self._read()))
            self._over.wait(max(began + 1 - time.time(), 0.01))

    def end(self) -> None:
        self._over.set()
        self.join()

    def _read(self) -> str:
        try:
            return httpx.get(self._url, timeout=10).text
        except httpx.HTTPError:
            return ""


class Recording(msgspec.Struct, frozen=True):
    """Scrapes of a service while it was well and, from `fault_at` on, with a fault; `history` has also those before
    and in between, from the start of the service on."""

    history: Sequence[Scrape]
    scrapes: Sequence[Scrape]
    fault_at: float

    @property
    def steps(self) -> dict[int, Scrape]:
        """Return the scrapes by their numbers of seconds, without the time in which the fault was made."""
        before = [scrape for scrape in self.scrapes if scrape.at < self.fault_at]
        after = [scrape for scrape in self.scrapes if scrape.at >= self.fault_at]
        steps = {round(scrape.at - before[0].at): scrape for scrape in before}
        next_step = max(steps) + 1
        return steps | {next_step + round(scrape.at - after[0].at): scrape for scrape in after}

    @property
    def seconds(self) -> int:
        return max(self.steps)

    def increase(self, series: Series) -> float:
        """Return by how much a counter grew, from the first to the last scrape that has it."""
        values = [scrape.values[series] for scrape in self.scrapes if series in scrape.values]
        return values[-1] - values[0] if values else 0.0

    def total(self, name: str, **labels: str) -> float:
        """Return the sum of increases of all series of this name with these labels."""
        return sum(
            self.increase(series)
            for series in self.series()
            if series[0] == name and labels.items() <= dict(series[1]).items()
        )

    def series(self) -> set[Series]:
        """Return those of metrics that rules use."""
        return {series for scrape in self.scrapes for series in scrape.values if series[0] in NAMES}

    def input(self) -> list[dict[str, str]]:
        """Return the series as promtool reads them."""
        return [
            {"series": _selector(*series), "values": " ".join(self._values(series))}
            for series in sorted(self.series())
        ]

    def _values(self, series: Series) -> Iterable[str]:
        is_stamp, is_counter = series[0].endswith(STAMP), series[0].endswith(("_total", "_bucket", "_count"))
        by_step, start = self.steps, self.scrapes[0].at
        first, was_there, value = self.scrapes[0].values.get(series), False, 0.0
        if first is None:
            yield f"_x{RESTS}"
        else:
            value = first - start if is_stamp else first
            yield _run(value, STEP_S if is_stamp else 0, RESTS)
        for step in range(max(by_step) + 1):
            scrape = by_step.get(step)
            if scrape is None:
                yield "_"
            elif series not in scrape.values:
                yield "stale" if was_there else "_"
                was_there = False
            else:
                was_there, value = True, scrape.values[series]
                if is_stamp:  # its age is as it was
                    value += (RESTS + step) * STEP_S - scrape.at
                yield f"{value:.6f}"
        if was_there:
            each = self._last_increment(series) if is_counter else STEP_S * self._moves(series)
            yield _run(value + each, each if is_counter or is_stamp else 0, GOES_ON)

    def _last_increment(self, series: Series) -> float:
        until = self.scrapes[-1].at
        last = [scrape for scrape in self.scrapes if scrape.at >= until - LAST and series in scrape.values]
        if len(last) < 2:
            return 0.0
        return (last[-1].values[series] - last[0].values[series]) / (last[-1].at - last[0].at)

    def _moves(self, series: Series) -> bool:
        """Return whether a time stamp moved not long ago, or may have before it was watched."""
        name, labels = series
        within = LATE + self.scrapes[-1].values.get((INTERVAL, labels), 0)
        since = self.scrapes[-1].at - within
        watched = [scrape for scrape in self.history if series in scrape.values]
        times = [scrape.values[series] for scrape in watched if scrape.at >= since]
        return name.endswith(STAMP) and (
            not watched or watched[0].at > since or any(a != b for a, b in pairwise(times))
        )


def promtool_says(
    recording: Recording, fired: Iterable[str], folder: Path, *, but: Iterable[str] = ()
) -> str:
    """Return "" if these alerts fire on a recording, at any time of it, and no others, else what promtool says.

    Alerts of `but` may fire or not."""
    end_s = (RESTS + recording.seconds + GOES_ON) * STEP_S
    return checked(recording.input(), STEP_S, end_s, fired, folder, but=but)


def checked(
    series: Sequence[Mapping[str, str]],
    step_s: int,
    end_s: int,
    fired: Iterable[str],
    folder: Path,
    *,
    but: Iterable[str] = (),
) -> str:
    """Return the same of series in promtool's form."""
    unjudged = "|".join(PREFIX + name for name in but)
    alerts = f'ALERTS{{alertstate="firing",alertname!~"{unjudged}"}}'
    expected = [{"labels": f'{{alertname="{PREFIX}{name}"}}', "value": 1} for name in set(fired) - set(but)]
    query = {
        "expr": f"group by (alertname) (last_over_time({alerts}[{end_s}s]))",
        "eval_time": f"{end_s}s",
        "exp_samples": expected,
    }
    test = {"interval": f"{step_s}s", "input_series": [*series], "promql_expr_test": [query]}
    file = folder / "alerts.yaml"
    whole = {"rule_files": [str(RULES)], "evaluation_interval": "1m", "tests": [test]}
    file.write_text(yaml.dump(whole, Dumper=yaml.CSafeDumper))
    done = subprocess.run(
        ["promtool", "test", "rules", str(file)], capture_output=True, text=True, check=False
    )
    return done.stdout + done.stderr if done.returncode else ""


def slow_machine(recording: Recording) -> set[str]:
    """Return the alerts about slowness that a recording comes near to: on a busy machine the service is slow."""
    near = set()
    timed = {"request_code": "105"}
    if _late(recording, "request_duration_seconds", **timed) > 0.005:
        near.add("LookupSlow")
    if _late(recording, "route_freshness_seconds") > 0.025:
        near.add("VisibilitySlow")
    name = f"{OURS}redis_command_duration_seconds"
    scripts = {dict(labels).get("script", "read") for _, labels in recording.series()} - {"read"}
    for script in scripts:
        late = recording.total(f"{name}_count", script=script) - recording.total(
            f"{name}_bucket", script=script, le="0.01"
        )
        if late / STEP_S > 0.03 * recording.seconds:
            near.add("SlowScript")
    return near


def _late(recording: Recording, histogram: str, **labels: str) -> float:
    """Return which part of what a histogram counted took longer than 5 ms."""
    counted = recording.total(f"{OURS}{histogram}_count", **labels)
    in_time = recording.total(f"{OURS}{histogram}_bucket", le="0.005", **labels)
    return 1 - in_time / counted if counted else 0.0


def _selector(name: str, labels: Labels) -> str:
    return name + "{" + ",".join(f'{label}="{text}"' for label, text in labels) + "}"


def _run(value: float, each: float, number: int) -> str:
    """Return so many values in promtool's short form, each greater than the one before by `each`."""
    return f"{value:.6f}+{each:.6f}x{number - 1}"
