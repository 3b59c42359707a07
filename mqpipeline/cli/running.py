"""Making what can be asked: one run, or runs without end."""

import logging
import os
import signal
import sys
import threading
from typing import Annotated

import typer
from redis.exceptions import RedisError

from mqpipeline import job, lean
from mqpipeline.cli.common import (
    NAMESPACE_MISSING,
    NOT_THERE,
    WRONG_USAGE,
    OfLogFormat,
    OfNamespaces,
    OfUrl,
    OfWarehouse,
    errors_as_lines,
    opened,
    stop,
    store_away,
)
from mqpipeline.cli.interrupt import interrupted
from mqpipeline.cli.log_lines import as_line, log_to_standard_error
from mqpipeline.cli.progress import log_step, steps_shown
from mqpipeline.lake.log import opened as opened_log
from mqpipeline.lake.place import place
from mqpipeline.landing.kinds import EVENTS_LAND
from mqpipeline.options import ALL, OptionError, Options, load
from mqpipeline.schemas import EVENTS
from pyspark_redis_stream.connection import AWAY, Store
from pyspark_redis_stream.options import options_of

AWAIT_S = 5
Full = Annotated[bool, typer.Option("--full", help="From all that was ever landed, not only what came since")]
OldFull = Annotated[bool, typer.Option("--anew", hidden=True)]  # what --full was called in 0.1
Every = Annotated[float, typer.Option("--every", help="Seconds from one report to the next", min=1)]
Trigger = Annotated[float, typer.Option("--trigger", help="Seconds from one landing to the next", min=0.1)]


def add(app: typer.Typer) -> None:
    """The commands `run`, `report` and `stream`."""
    app.command()(run)
    app.command()(report)
    app.command()(stream)


def run(
    url: OfUrl = None,
    warehouse: OfWarehouse = None,
    namespaces: OfNamespaces = None,
    full: Full = False,
    old_full: OldFull = False,
    log_format: OfLogFormat = None,
) -> None:
    """Land what is new, make tables and reports, serve them; then end."""
    options = _options(url, warehouse, namespaces, log_format)
    _refuse_unwritable(options)
    with (
        errors_as_lines(),
        job.leased(options) as leases,  # a second landing ends before Spark has started
        opened(job.NAME, options, lean.settings(options)) as tables,
        steps_shown(job.STEPS) as step,
    ):
        outcome = job.run(tables.spark, options, step, leases, full=full or old_full)
    _end(outcome)


def report(
    url: OfUrl = None,
    warehouse: OfWarehouse = None,
    namespaces: OfNamespaces = None,
    full: Full = False,
    old_full: OldFull = False,
    log_format: OfLogFormat = None,
) -> None:
    """Make tables and reports of what has landed already, serve them; then end."""
    options = _options(url, warehouse, namespaces, log_format)
    with errors_as_lines():
        if opened_log(place(options.warehouse).under(EVENTS.name), EVENTS) is None:
            stop(f"nothing has landed in {options.warehouse}: see its path, or `mqpipeline run`", NOT_THERE)
    _refuse_unwritable(options)
    with opened(job.NAME, options, lean.settings(options)) as tables, steps_shown(job.STEPS) as step:
        outcome = job.report(tables.spark, options, step, full=full or old_full)
    _end(outcome)


def stream(
    url: OfUrl = None,
    warehouse: OfWarehouse = None,
    namespaces: OfNamespaces = None,
    every: Every = 3600.0,
    trigger: Trigger = 5.0,
    log_format: OfLogFormat = None,
) -> None:
    """Land events as they come and report now and then, until SIGTERM or Ctrl-C."""
    options = _options(url, warehouse, namespaces, log_format)
    _refuse_unwritable(options)
    ending = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: ending.set())
    signal.signal(signal.SIGINT, lambda *_: _end_soon(ending))
    with errors_as_lines(), job.leased(options) as leases, opened(job.NAME, options) as tables:
        log_step(f"landing each {trigger:g} s into {options.warehouse}, a report each {every:g} s")
        job.stream(tables.spark, options, log_step, leases, ending, every_s=every, trigger_s=trigger)
        log_step("ended as asked; what has landed is acknowledged")


def _end_soon(ending: threading.Event) -> None:
    """End after the step under way; a second Ctrl-C ends at once."""
    if ending.is_set():
        interrupted()
    ending.set()
    line = as_line("ends after the step under way; Ctrl-C again ends it at once", logging.INFO)
    os.write(sys.stderr.fileno(), f"{line}\n".encode())


def _end(outcome: job.Outcome) -> None:
    """Exit with a code of its own where a namespace is not there: the reports of all others are made."""
    if outcome.missing:
        missing = ", ".join(outcome.missing)
        stop(f"done, but nothing has happened in {missing} yet: no entries there", NAMESPACE_MISSING)


def _refuse_unwritable(options: Options) -> None:
    """Stop with one line before Spark starts."""
    try:
        place(options.warehouse).refuse_unwritable()
    except OptionError as error:
        stop(str(error), WRONG_USAGE)


def _options(
    url: str | None, warehouse: str | None, namespaces: str | None, log_format: str | None
) -> Options:
    given = {"url": url, "warehouse": warehouse, "namespaces": namespaces, "log_format": log_format}
    try:
        options = load(os.environ, given)
        log_to_standard_error(options)
        place(options.warehouse)
    except OptionError as error:
        stop(str(error), WRONG_USAGE)
    if not options.url:
        stop("REDIS_URL is not set: set it, or --url, to the Redis of the name server", WRONG_USAGE)
    _await_store(options.url)
    return options


def _await_store(url: str) -> None:
    """Stop with one line if the store cannot be reached, before Spark starts."""
    source = {"url": url, "pattern": EVENTS_LAND.stream(ALL), "retrySeconds": str(AWAIT_S)}
    try:
        with Store(options_of(source)) as store:
            store.call("PING")
    except (RedisError, *AWAY) as error:
        stop(store_away(error), NOT_THERE)
    except ValueError as error:
        stop(str(error), WRONG_USAGE)
