"""What reports are made of."""

from collections.abc import Mapping
from importlib import import_module
from inspect import signature
from typing import NamedTuple

from pyspark.sql import DataFrame

from mqpipeline.reports.catalogue import Report
from mqpipeline.windows import Window


class Inputs(NamedTuple):
    """The tables and figures that a step may ask for, by the names of its parameters.

    `slots`, `brokers` and `writable` are states in all of history, `sessions` and `broker_versions` whole tables.
    `route_versions`, `events` (clean) and `heartbeats` are those that matter in the `windows`; `registrations` are raw
    entries, however old, and none without `heartbeats`. `ends` are the windows whose ends alone are looked at, `hours`
    spans the calendar months."""

    slots: DataFrame
    brokers: DataFrame
    writable: DataFrame
    sessions: DataFrame
    broker_versions: DataFrame
    route_versions: DataFrame
    events: DataFrame
    registrations: DataFrame
    heartbeats: DataFrame
    windows: tuple[Window, ...]
    ends: tuple[Window, ...]
    hours: tuple[int, int]
    as_of: int
    late_ms: int
    heartbeat_ms: int
    objectives: Mapping[str, float]
    objective: float


def make(report: Report, inputs: Inputs) -> DataFrame:
    """Return the rows of the report's table, by its step: the function of its name in the module of its name."""
    step = getattr(import_module(f"mqpipeline.reports.{report.name}"), report.name)
    rows: DataFrame = step(**{name: getattr(inputs, name) for name in signature(step).parameters})
    return rows
