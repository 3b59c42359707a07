"""The processes that do what others put on the name server's job queue."""

import logging
import os
from typing import Annotated, Final

import typer

from mqpipeline import scheduled
from mqpipeline.cli.common import WRONG_USAGE, OfNamespace, OfWarehouse, options, reading, stop
from mqpipeline.history.worker import work as work_on_questions
from mqpipeline.options import ALL, PREFIX, Options
from mqpipeline.source.url import with_login

FORMAT: Final = "%(asctime)s [%(process)d] [%(levelname)s] %(name)s %(message)s"
TIME: Final = "[%Y-%m-%d %H:%M:%S %z]"
"""As the name server's processes log."""
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


def answer(queue: QueueUrl = None, warehouse: OfWarehouse = None, namespace: OfNamespace = None) -> None:
    """Answer the HTTP side at /v1/history, until SIGTERM or Ctrl-C."""
    chosen = options(warehouse, namespace)
    url = _queue(queue, chosen)
    with reading(chosen) as reader:
        work_on_questions(reader, url, chosen.namespaces)


def work(queue: QueueUrl = None, warehouse: OfWarehouse = None, namespaces: OfNamespace = None) -> None:
    """Run when the name server's scheduler says so, until SIGTERM or Ctrl-C."""
    chosen = options(warehouse, namespaces)
    scheduled.work(chosen, _queue(queue, chosen))


def _queue(given: str | None, chosen: Options) -> str:
    logging.basicConfig(level=logging.WARNING, format=FORMAT, datefmt=TIME)
    if ALL in chosen.namespaces:
        stop(f"{PREFIX}NAMESPACES: {ALL} has no job queue; name each of them", WRONG_USAGE)
    url = given or os.environ.get("MQNS_RQ_REDIS_URL", "")
    if not (url or chosen.url):
        stop("MQNS_RQ_REDIS_URL is not set: set it, or --queue, to the Redis of the job queue", WRONG_USAGE)
    login = [os.environ.get(f"MQNS_RQ_REDIS_{word}", "") for word in ("USERNAME", "PASSWORD")]
    return with_login(url, *login) if url else chosen.url
