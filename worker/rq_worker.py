"""`python -m worker.rq_worker`: runs the jobs that schedulers enqueue, one after the other, without forking.

It waits out an outage of the queue between jobs; one that breaks a job ends the process, and the supervisor starts
it again.
"""

import logging
import os
import sys

from rq import SimpleWorker
from rq.serializers import JSONSerializer

from registry import configuration
from registry.options import Options
from registry.store import connect_queue
from worker.schedule import JOBS

CONNECT_TIMEOUT_S = 1.0
TTL_S = 30  # also bounds how long it waits on a connection that is dead


class UpkeepWorker(SimpleWorker):
    """The jobs are short: look often whether the queue is back."""

    max_connection_wait_time = 2.0


def worker(options: Options) -> UpkeepWorker:
    """A worker for every queue of the timetable."""
    connection = connect_queue(
        options.rq_redis_url or options.redis_url, socket_connect_timeout=CONNECT_TIMEOUT_S
    )
    queues = list(dict.fromkeys(job.queue_of(options.namespace) for job in JOBS))
    made = UpkeepWorker(queues, connection=connection, serializer=JSONSerializer, worker_ttl=TTL_S)
    made.log_job_description = False
    return made


def main() -> None:
    """Options come from the environment, as the supervisor hands them over."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    upkeep = worker(configuration.load(os.environ))
    upkeep.work(logging_level="WARNING")
    sys.exit(0 if upkeep._stop_requested else 1)


if __name__ == "__main__":
    main()
