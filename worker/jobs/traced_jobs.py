"""Jobs as spans, with the round trips to the store as their children."""

from collections.abc import Callable

from opentelemetry.trace import Status, StatusCode, Tracer
from rq import Queue
from rq.job import Job

__all__ = ["perform_traced"]


def perform_traced(tracer: Tracer, perform: Callable[[Job, Queue], bool], job: Job, queue: Queue) -> bool:
    """Perform a job within a span; return whether it succeeded."""
    task = str(job.func_name).rpartition(".")[2]
    with tracer.start_as_current_span(f"job {task}") as span:
        succeeded = perform(job, queue)
        if not succeeded:
            span.set_status(Status(StatusCode.ERROR))
    return succeeded
