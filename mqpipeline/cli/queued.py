"""The processes that do what others put on the name server's job queue."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

import typer
from redis.exceptions import RedisError

from mqpipeline import scheduled
from mqpipeline.cli.common import (
    NOT_THERE,
    WRONG_USAGE,
    OfLogFormat,
    OfNamespaces,
    OfWarehouse,
    options,
    reading,
    stop,
)
from mqpipeline.cli.log_lines import log_to_standard_error
from mqpipeline.cli.progress import log_step
from mqpipeline.history.worker import work as work_on_questions
from mqpipeline.options import ALL, PREFIX, Options
from mqpipeline.texts import one_line
from pyspark_redis_stream.url import parse, with_login

QueueUrl = Annotated[
    str | None,
    typer.Option(
        "--queue",
        help="The Redis of the name server's job queue (env var: MQNS_RQ_REDIS_URL, else REDIS_URL)",
        metavar="URL",
        show_default=False,
    ),
]


def add(app: typer.Typer) -> None:
    """The commands `answer` and `work`."""
    app.command()(answer)
    app.command()(work)


def answer(
    queue: QueueUrl = None,
    warehouse: OfWarehouse = None,
    namespace: OfNamespaces = None,
    log_format: OfLogFormat = None,
) -> None:
    """Answer the HTTP side at /v1/history, until SIGTERM or Ctrl-C."""
    chosen = options(warehouse, namespace, log_format)
    url = _queue(queue, chosen)
    with reading(chosen) as reader, _queue_errors():
        ready = f"answers of {', '.join(chosen.namespaces)} come from {chosen.warehouse}"
        work_on_questions(reader, url, chosen.namespaces, lambda: log_step(ready))


def work(
    queue: QueueUrl = None,
    warehouse: OfWarehouse = None,
    namespaces: OfNamespaces = None,
    log_format: OfLogFormat = None,
) -> None:
    """Run when the name server's scheduler says so, until SIGTERM or Ctrl-C."""
    chosen = options(warehouse, namespaces, log_format)
    url = _queue(queue, chosen)
    log_step("waiting for runs that the name server's scheduler asks for (pipelineEveryMillis, 0 is never)")
    with _queue_errors():
        scheduled.work(chosen, url)


@contextmanager
def _queue_errors() -> Iterator[None]:
    """End with a line if the job queue cannot be reached, or refuses."""
    try:
        yield
    except RedisError as error:
        stop(
            f"the job queue does not answer: {one_line(error)}; check MQNS_RQ_REDIS_URL, or --queue",
            NOT_THERE,
        )


def _queue(given: str | None, chosen: Options) -> str:
    log_to_standard_error(chosen)
    if ALL in chosen.namespaces:
        stop(f"{PREFIX}NAMESPACES: {ALL} has no job queue; name each of them", WRONG_USAGE)
    url = given or os.environ.get("MQNS_RQ_REDIS_URL", "")
    if not (url or chosen.url):
        stop("MQNS_RQ_REDIS_URL is not set: set it, or --queue, to the Redis of the job queue", WRONG_USAGE)
    try:
        kind = parse(url or chosen.url).kind
    except ValueError as error:
        stop(f"--queue: {error}", WRONG_USAGE)
    if kind == "cluster":
        stop("--queue: a job queue cannot be in a Redis Cluster; name another Redis", WRONG_USAGE)
    login = [os.environ.get(f"MQNS_RQ_REDIS_{word}", "") for word in ("USERNAME", "PASSWORD")]
    return with_login(url, *login) if url else chosen.url
