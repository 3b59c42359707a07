"""The pipeline's job queue for queries of history: an RQ job, whose result is waited for.

This process has no tables; `mqpipeline answer` has, and runs the job (mqpipeline/history/jobs.py). A job that has
waited for longer than its caller is not started, and one that is running then is stopped.
"""

from typing import Any

from rq import Queue, Worker
from rq.job import Job
from rq.results import Result
from rq.serializers import JSONSerializer

from registry.store.connect import connect_queue

ANSWER = "mqpipeline.history.jobs.answer"
QUEUE = "pipeline"
CONNECT_TIMEOUT_S = 1.0
RESULT_TTL_S = 60
SLACK_S = 60  # the job ends itself in time


class NoWorker(Exception):
    """No worker listens on the queue."""


class TimedOut(Exception):
    """No result within the time given."""


class JobFailed(Exception):
    """The job raised; the log of `mqpipeline answer` has the traceback."""


def queue_name(namespace: str) -> str:
    """Return the queue of a namespace: one Redis may serve several name servers, each with its own tables."""
    return f"{QUEUE}:{namespace}"


def queue_of(url: str, namespace: str, within_s: int) -> Queue:
    """Return the queue of a namespace, on a connection whose reads may block for `within_s` seconds."""
    connection = connect_queue(
        url, socket_connect_timeout=CONNECT_TIMEOUT_S, socket_timeout=within_s + CONNECT_TIMEOUT_S
    )
    return Queue(queue_name(namespace), connection=connection, serializer=JSONSerializer)


def ask(queue: Queue, question: str, arguments: dict[str, Any], within_s: int) -> Any:
    """Return the answer to one of the questions of mqpipeline/history/questions.py, as JSON's values.

    Raises NoWorker, TimedOut, JobFailed, redis.RedisError."""
    if not Worker.all(queue=queue, serializer=JSONSerializer):
        raise NoWorker
    job: Job = queue.enqueue_call(
        ANSWER,
        (question, arguments, within_s),
        timeout=within_s + SLACK_S,
        ttl=within_s,
        result_ttl=RESULT_TTL_S,
        failure_ttl=RESULT_TTL_S,
    )
    result = job.latest_result(timeout=within_s)
    if result is None:
        raise TimedOut
    if result.type != Result.Type.SUCCESSFUL:
        raise JobFailed
    return result.return_value
