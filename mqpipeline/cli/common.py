"""What commands share: where the tables are, a Spark session, and how a command ends without a result."""

import builtins
import logging
import os
import re
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from textwrap import shorten
from types import MappingProxyType
from typing import Annotated, Any, Final, NoReturn

import typer
from deltalake.exceptions import DeltaError
from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkException
from redis.exceptions import ConnectionError, RedisError, TimeoutError

from mqpipeline.cli.interrupt import interrupted
from mqpipeline.cli.log_lines import as_line, log_to_standard_error
from mqpipeline.history.reader import NothingLanded, Reader
from mqpipeline.lake.log import LakeError
from mqpipeline.lake.place import place
from mqpipeline.options import OptionError, Options, load
from mqpipeline.session import spark_session, with_logging
from mqpipeline.texts import one_line
from mqpipeline.times import parse_time
from mqpipeline.warehouse import Warehouse

log = logging.getLogger(__name__)

NOT_THERE: Final = 1
WRONG_USAGE: Final = 2
NAMESPACE_MISSING: Final = 3
WITHOUT_CREDENTIALS: Final = ("IMDS", "CredentialsNotLoaded", "no credentials")
FULL: Final = ("No space left on device", "Disk quota exceeded", "File too large")
JAVA_ENDED: Final = (
    "Java ended, as when it gets no more memory: see its last lines, or give it less to do at once "
    "(MQNS_PIPELINE_MEMORY); no reader has seen what was not finished, start it again"
)
LINE_MOST: Final = 1000
"""Characters of an error that are printed."""
CAUSE: Final = re.compile(r"^(?:Caused by: )?([\w.$]*(?:Error|Exception)[^\n]*)", re.MULTILINE)
CREDENTIALS: Final = "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or what your object store asks for"

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
OfLogFormat = Annotated[
    str | None,
    typer.Option(
        "--log-format",
        help="Of log lines: text, or json with an object a line (env var: MQNS_PIPELINE_LOG_FORMAT)",
        show_default=False,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON")]


def time(metavar: str) -> Any:
    """A required argument that is a time."""
    return typer.Argument(
        parser=parse_time, metavar=metavar, help="2026-11-21T14:03:00Z, or Unix ms", show_default=False
    )


def options(warehouse: str | None, namespace: str | None, log_format: str | None = None) -> Options:
    """Those of the environment, and what the command line says instead."""
    try:
        given = {"warehouse": warehouse, "namespaces": namespace, "log_format": log_format}
        chosen = load(os.environ, given)
    except OptionError as error:
        stop(str(error), WRONG_USAGE)
    if chosen.log_format == "json":
        log_to_standard_error(chosen)
    return chosen


@contextmanager
def opened(
    name: str, chosen: Options, sized: Mapping[str, str] = MappingProxyType({})
) -> Iterator[Warehouse]:
    """The tables, with a Spark session of this process, `sized` so.

    Ctrl-C ends it, unless the command has another use for it."""
    with errors_as_lines(), _ended_by_interrupt():
        session = spark_session(name, own={**with_logging(sized, chosen), **chosen.spark})
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
    except (ConnectionError, TimeoutError) as error:
        stop(store_away(error), NOT_THERE)
    except (Py4JNetworkError, builtins.ConnectionError):
        stop(JAVA_ENDED, NOT_THERE)
    except (Py4JError, PySparkException) as error:
        stop(of_spark(error), NOT_THERE)
    except (LakeError, DeltaError, RedisError, OSError) as error:
        stop(what_failed(error), NOT_THERE)


def store_away(error: Exception) -> str:
    """Return the line of a Redis that does not answer, or refuses the login."""
    cause = shorten(str(error), 120)
    return f"the Redis of the name server does not answer: {cause}; check REDIS_URL, or --url"


def of_spark(error: Exception) -> str:
    """Return the line of a failure within Spark: its last cause, of hundreds of lines."""
    log.debug("Spark failed", exc_info=error)
    text = str(error)
    causes = CAUSE.findall(text)
    cause = shorten(one_line(causes[-1] if causes else text), 300, placeholder=" …")
    return f"Spark failed: {cause}; no reader has seen what was not finished, start it again; if it stays, report it"


def what_failed(error: Exception) -> str:
    """Return the line of an error of files or of Redis, with what to do where the error itself does not say it."""
    line = one_line(error)
    if any(word in line for word in FULL):
        return f"{line}; make room there, the next run goes on from what is whole"
    if isinstance(error, PermissionError):
        return f"{line}: give this user the right, or run as a user that has it"
    return f"{line}; {CREDENTIALS}" if any(word in line for word in WITHOUT_CREDENTIALS) else line


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Not by an exception: in the middle of a call to Java it would leave nothing that could be closed in order."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupted)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def reading(chosen: Options) -> Iterator[Reader]:
    """A reader of the tables, which needs no Spark."""
    with errors_as_lines():
        at = place(chosen.warehouse)
        if at.folder is not None and not at.folder.is_dir():
            stop(f"{at.name} is no folder: see its path, or fill it with `mqpipeline run`", NOT_THERE)
        try:
            yield Reader(at)
        except NothingLanded as nothing:
            stop(str(nothing), NOT_THERE)


def stop(text: str, code: int) -> NoReturn:
    """End with a line on standard error, cut if it is long."""
    line = text if len(text) <= LINE_MOST else f"{text[:LINE_MOST]}…"
    print(as_line(line), file=sys.stderr)
    raise typer.Exit(code)
