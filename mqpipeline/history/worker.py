"""Answers questions of the HTTP side: an RQ worker that does not fork, so it knows the tables' files already."""

import logging
import sys
from collections.abc import Callable

from rq import SimpleWorker
from rq.serializers import JSONSerializer

from mqpipeline.history import jobs
from mqpipeline.history.reader import NothingLanded, Reader
from mqpipeline.job_queue import QUESTIONS, connect_queue, queue_name

TTL_S = 30  # also bounds how long it waits on a connection that is dead

log = logging.getLogger(__name__)


def work(
    reader: Reader, url: str, namespaces: tuple[str, ...], ready: Callable[[], None] = lambda: None
) -> None:
    """Answer until SIGTERM or SIGINT; `url` is RQ's Redis. `ready` is called before the first question."""
    jobs.answer_from(reader)
    sys.modules.setdefault("pipeline.history.jobs", jobs)  # jobs of 0.1 name it: one release long
    _list_files(reader, namespaces)
    connection = connect_queue(url)
    queues = [queue_name(QUESTIONS, namespace) for namespace in namespaces]
    worker = SimpleWorker(queues, connection=connection, serializer=JSONSerializer, worker_ttl=TTL_S)
    worker.log_job_description = False
    connection.ping()
    ready()
    worker.work(logging_level="WARNING")


def _list_files(reader: Reader, namespaces: tuple[str, ...]) -> None:
    """So that the first question need not."""
    for namespace in namespaces:
        try:
            reader.reading(namespace)
        except NothingLanded as nothing:
            log.warning(
                "no answers about namespace %s: %s; `mqpipeline run` lands its events", namespace, nothing
            )
