"""`python -m worker.rq_worker`: runs the jobs that schedulers enqueue, one after the other, without forking.

It waits out an outage of the queue before the first job and between jobs; one that breaks a job ends the process, and
whoever keeps it running starts it again.
"""

import logging
import os
import signal
import sys
import time
from typing import Any

import redis
from rq import SimpleWorker
from rq.serializers import JSONSerializer

from registry import configuration
from registry.options import Options
from registry.store import connect_queue
from worker.beat import beat
from worker.schedule import JOBS

CONNECT_TIMEOUT_S = 1.0
QUEUE_WAIT_S = 0.5
TTL_S = 30  # also bounds how long it waits on a connection that is dead

log = logging.getLogger(__name__)


class UpkeepWorker(SimpleWorker):
    """The jobs are short: look often whether the queue is back."""

    max_connection_wait_time = 2.0
    beat_file = ""

    def heartbeat(self, *args: Any, **kwargs: Any) -> None:
        """RQ calls this at each turn of its loop, whether its Redis is there or not, and before a job."""
        beat(self.beat_file)
        super().heartbeat(*args, **kwargs)


def await_queue(options: Options) -> None:
    """Until its Redis answers: RQ's worker would end at once, and a pod that ends again and again is started late."""
    told = False
    with _connection(options, socket_timeout=CONNECT_TIMEOUT_S) as connection:
        while True:
            beat(options.beat_file)
            try:
                connection.ping()
                return
            except (redis.ConnectionError, redis.TimeoutError) as error:
                if not told:
                    log.warning("waiting for the job queue: %s", error)
                told = True
            time.sleep(QUEUE_WAIT_S)


def worker(options: Options) -> UpkeepWorker:
    """A worker for every queue of the timetable."""
    connection = _connection(options)
    queues = list(dict.fromkeys(job.queue_of(options.namespace) for job in JOBS))
    made = UpkeepWorker(queues, connection=connection, serializer=JSONSerializer, worker_ttl=TTL_S)
    made.log_job_description = False
    made.beat_file = options.beat_file
    return made


def _connection(options: Options, **settings: Any) -> redis.Redis:
    url = options.rq_redis_url or options.redis_url
    return connect_queue(url, socket_connect_timeout=CONNECT_TIMEOUT_S, **settings)


def main() -> None:
    """Options come from the environment, as the supervisor hands them over."""
    logging.basicConfig(level=logging.WARNING, format="%(levelname)s %(name)s %(message)s")
    signal.signal(
        signal.SIGTERM, lambda *_: sys.exit(0)
    )  # until RQ's own; a container's first process has none
    options = configuration.load(os.environ)
    await_queue(options)
    upkeep = worker(options)
    try:
        upkeep.work(logging_level="WARNING")
    except (redis.ConnectionError, redis.TimeoutError) as error:  # while it works, RQ waits for its Redis
        log.warning("the job worker could not sign off: %s", error)
    sys.exit(0 if upkeep._shutdown_requested_date else 1)  # _stop_requested is set only if it was at work


if __name__ == "__main__":
    main()
