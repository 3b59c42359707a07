"""The runs that the name server's scheduler asks for, each in a process and with a Spark session of its own."""

import logging
import os

from rq import Worker
from rq.serializers import JSONSerializer

from pipeline import formats, job
from pipeline.history.asking import CONNECT_TIMEOUT_S
from pipeline.options import Options
from registry.store import connect_queue

QUEUE = "pipeline-runs"
log = logging.getLogger(__name__)

_chosen: Options | None = None
_worker = 0
"""The process of `work`."""


def work(options: Options, url: str, *, burst: bool = False) -> None:
    """Run with these options whenever a job says so, until SIGTERM or SIGINT, which wait for a run under way; or with
    `burst` until there is no job. `url` is RQ's Redis."""
    global _chosen, _worker
    _chosen, _worker = options, os.getpid()
    connection = connect_queue(url, socket_connect_timeout=CONNECT_TIMEOUT_S)
    queues = [*map(queue_name, options.namespaces)]
    worker = Worker(queues, connection=connection, serializer=JSONSerializer)
    worker.work(burst=burst, logging_level="WARNING")


def run() -> dict[str, int]:
    """Land, build, serve; which run it was, and up to when. Called by RQ, by name, in a child of `work`'s process."""
    if _chosen is None:
        raise RuntimeError("this process makes no runs: start it as `mqpipeline work`")
    session = formats.session(job.NAME, _chosen)
    made = job.run(session, _chosen, _told)
    session.stop()
    return {"run": made.run, "as_of_ms": made.as_of_ms}


def _told(text: str) -> None:
    """Logs. Ends a run whose worker was killed: the next worker may have begun another."""
    if os.getppid() != _worker:
        raise RuntimeError(f"the worker of this run is gone; not done: {text}")
    log.info(text)


def queue_name(namespace: str) -> str:
    """One Redis may serve several name servers."""
    return f"{QUEUE}:{namespace}"
