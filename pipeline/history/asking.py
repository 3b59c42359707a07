"""How a process without Spark asks one that has it: a job of RQ, whose result is waited for.

A job that nobody waits for any more is not begun, and one that is under way then is stopped.
"""

from typing import Any

from rq import Queue, Worker
from rq.job import Job
from rq.results import Result
from rq.serializers import JSONSerializer

from registry.store import connect_queue

ANSWER = "pipeline.history.jobs.answer"
QUEUE = "pipeline"
CONNECT_TIMEOUT_S = 1.0
RESULT_KEPT_S = 60
SLACK_S = 60  # the job ends itself in time


class NobodyListens(Exception):
    """No process is there that could answer."""


class TooSlow(Exception):
    """No answer in time."""


class Failed(Exception):
    """It was tried; the worker's log says more."""


def queue_name(namespace: str) -> str:
    """One Redis may serve several name servers, and their histories lie apart."""
    return f"{QUEUE}:{namespace}"


def queue_of(url: str, namespace: str, within_s: int) -> Queue:
    """Where questions are put that are waited for so long."""
    connection = connect_queue(
        url, socket_connect_timeout=CONNECT_TIMEOUT_S, socket_timeout=within_s + CONNECT_TIMEOUT_S
    )
    return Queue(queue_name(namespace), connection=connection, serializer=JSONSerializer)


def ask(queue: Queue, question: str, arguments: dict[str, Any], within_s: int) -> Any:
    """The answer of pipeline/history/questions.py to one of its questions, as JSON's values.

    Raises NobodyListens, TooSlow, Failed, redis.RedisError."""
    if not Worker.all(queue=queue, serializer=JSONSerializer):
        raise NobodyListens
    job: Job = queue.enqueue_call(
        ANSWER,
        (question, arguments, within_s),
        timeout=within_s + SLACK_S,
        ttl=within_s,
        result_ttl=RESULT_KEPT_S,
        failure_ttl=RESULT_KEPT_S,
    )
    result = job.latest_result(timeout=within_s)
    if result is None:
        raise TooSlow
    if result.type != Result.Type.SUCCESSFUL:
        raise Failed
    return result.return_value
