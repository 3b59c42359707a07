"""What commands share: where the tables are, a Spark session, and how a command ends without a result."""

import logging
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType
from typing import Annotated, Any, Final, NoReturn

import typer
from deltalake.exceptions import DeltaError
from redis.exceptions import RedisError

from mqpipeline.history.reader import NothingLanded, Reader
from mqpipeline.lake.log import LakeError
from mqpipeline.lake.place import place
from mqpipeline.options import OptionError, Options, load
from mqpipeline.session import spark_session
from mqpipeline.texts import one_line
from mqpipeline.times import parse_time
from mqpipeline.warehouse import Warehouse

NOT_THERE: Final = 1
WRONG_USAGE: Final = 2
NAMESPACE_MISSING: Final = 3
INTERRUPTED: Final = 128 + signal.SIGINT  # as shells have it

OfWarehouse = Annotated[
    str | None,
    typer.Option(
        "--warehouse",
        "-w",
        help="Where the tables are: a folder, or a URL (env var: MQNS_PIPELINE_WAREHOUSE)",
        show_default=False,
    ),
]
OfUrl = Annotated[
    str | None,
    typer.Option("--url", help="The Redis of the name server (env var: REDIS_URL)", show_default=False),
]
OfNamespace = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        help="Of which name server (env var: MQNS_PIPELINE_NAMESPACES, its first)",
        show_default=False,
    ),
]
OfNamespaces = Annotated[
    str | None,
    typer.Option(
        "--namespace",
        help="Of which name servers, with commas between, or * for all (env var: MQNS_PIPELINE_NAMESPACES)",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON")]


def time(metavar: str) -> Any:
    """A required argument that is a time."""
    return typer.Argument(
        parser=parse_time, metavar=metavar, help="2026-11-21T14:03:00Z, or Unix ms", show_default=False
    )


def options(warehouse: str | None, namespace: str | None) -> Options:
    """Those of the environment, and what the command line says instead."""
    try:
        return load(os.environ, {"warehouse": warehouse, "namespaces": namespace})
    except OptionError as error:
        stop(str(error), WRONG_USAGE)


@contextmanager
def opened(
    name: str, chosen: Options, sized: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Warehouse]:
    """The tables, with a Spark session of this process, `sized` so.

    Ctrl-C ends it, unless the command has another use for it."""
    with errors_as_lines(), _ended_by_interrupt():
        session = spark_session(name, own={**sized, **chosen.spark})
        try:
            yield Warehouse(session, chosen.warehouse)
        finally:
            session.stop()


@contextmanager
def errors_as_lines() -> Iterator[None]:
    """End with a line where what is wrong is not this program."""
    try:
        yield
    except OptionError as error:
        stop(str(error), WRONG_USAGE)
    except (LakeError, DeltaError, RedisError, OSError) as error:
        stop(one_line(error), NOT_THERE)


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Not by an exception: in the middle of a call to Java it would leave nothing that could be closed in order."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, _interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _interrupted(*_: object) -> NoReturn:
    """End with Java. No reader has seen what was not committed; the next run clears it."""
    print("mqpipeline: interrupted", file=sys.stderr, flush=True)
    os._exit(INTERRUPTED)


@contextmanager
def reading(chosen: Options) -> Iterator[Reader]:
    """A reader of the tables, which needs no Spark."""
    with errors_as_lines():
        try:
            yield Reader(place(chosen.warehouse))
        except NothingLanded as nothing:
            stop(str(nothing), NOT_THERE)


def log_to_standard_error() -> None:
    """Log as the name server's processes do, what the operator is to know; of this package what it does as well."""
    logging.basicConfig(
        level=logging.WARNING,
        format="%(asctime)s [%(process)d] [%(levelname)s] %(name)s %(message)s",
        datefmt="[%Y-%m-%d %H:%M:%S %z]",
    )
    logging.getLogger("mqpipeline").setLevel(logging.INFO)


def stop(text: str, code: int) -> NoReturn:
    """End with a line on standard error."""
    print(f"mqpipeline: {text}", file=sys.stderr)
    raise typer.Exit(code)
