"""The process that answers `/v1/history`."""

import logging
import os
from typing import Annotated

import typer

from pipeline import scheduled
from pipeline.cli.common import WRONG_USAGE, OfNamespace, OfWarehouse, options, reading, stop
from pipeline.history.worker import work

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
    """The command `answer`."""
    app.command()(answer)


def answer(queue: QueueUrl = None, warehouse: OfWarehouse = None, namespace: OfNamespace = None) -> None:
    """Answer the HTTP side at /v1/history and run when the scheduler says so, until told to end."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    chosen = options(warehouse, namespace)
    url = queue or os.environ.get("MQNS_RQ_REDIS_URL") or chosen.url
    if not url:
        stop("MQNS_RQ_REDIS_URL is not set: the Redis of the job queue", WRONG_USAGE)
    with reading(chosen) as reader:
        scheduled.run_with(reader.spark, chosen)
        work(reader, url, chosen.namespaces, after=[*map(scheduled.queue_name, chosen.namespaces)])
