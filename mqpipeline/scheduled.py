"""The runs that the name server's scheduler asks for, each in a process and with a Spark session of its own."""

import logging
import os
import sys

from rq import Worker
from rq.serializers import JSONSerializer

from mqpipeline import job, lean
from mqpipeline.job_queue import RUNS, connect_queue, queue_name
from mqpipeline.options import Options
from mqpipeline.session import spark_session

log = logging.getLogger(__name__)

_chosen: Options | None = None
_worker = 0
"""The process of `work`."""


def work(options: Options, url: str, *, burst: bool = False) -> None:
    """Run with these options whenever a job says so, until SIGTERM or SIGINT, which wait for a run under way; or with
    `burst` until there is no job. `url` is RQ's Redis."""
    global _chosen, _worker
    _chosen, _worker = options, os.getpid()
    connection = connect_queue(url)
    queues = [queue_name(RUNS, namespace) for namespace in options.namespaces]
    sys.modules.setdefault(
        "pipeline.scheduled", sys.modules[__name__]
    )  # jobs of 0.1 name it: one release long
    worker = Worker(queues, connection=connection, serializer=JSONSerializer)
    worker.work(burst=burst, logging_level="WARNING")


def run() -> dict[str, int]:
    """Land, compute, publish; return run and `as_of_ms`. Called by RQ, by name, in a child of `work`."""
    if _chosen is None:
        raise RuntimeError("this process makes no runs: start it as `mqpipeline work`")
    with job.leased(_chosen) as leases:
        session = spark_session(job.NAME, own={**lean.settings(_chosen), **_chosen.spark})
        snapshot = job.run(session, _chosen, _progress, leases).snapshot
        session.stop()
    return {"run": snapshot.run, "as_of_ms": snapshot.as_of_ms}


def _progress(text: str) -> None:
    """Log the next step. Raises RuntimeError once the worker is gone: the next worker may have begun another run."""
    if os.getppid() != _worker:
        raise RuntimeError(f"the worker of this run is gone: stopped before {text!r}; the next run does it")
    log.info(text)
