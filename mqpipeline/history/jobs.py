"""What RQ runs in a process with Spark: by name, so that the caller need not import it."""

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread
from typing import Any, Final

from mqpipeline.history import questions
from mqpipeline.history.reader import NothingLanded, Reader

CANCELLED_EVERY_S: Final = 0.2

log = logging.getLogger(__name__)

_reader: Reader | None = None


def answer_from(reader: Reader) -> None:
    """Whence this process answers."""
    global _reader
    _reader = reader


def answer(question: str, arguments: dict[str, Any], within_s: float) -> questions.Json:
    """The answer of `questions.ask`; `namespace` is among the arguments. `landed` is null where nothing has.

    What takes longer is cancelled: the caller has timed out. (RQ's own time limit is an exception out of a signal
    handler, which Spark's connection to its Java process does not outlive.)"""
    if _reader is None:
        raise RuntimeError("this process answers no questions: start it as `mqpipeline answer`")
    given = dict(arguments)
    with _cancelled_after(within_s, _reader.stop):
        try:
            return questions.ask(_reader.reading(given.pop("namespace")), question, given)
        except NothingLanded:
            return {"outside": True, "landed": None}


@contextmanager
def _cancelled_after(within_s: float, stop: Callable[[], None]) -> Iterator[None]:
    """Call `stop` from then on until the block ends: a Spark job that is still being planned is not cancelled yet."""
    ended = Event()

    def limit() -> None:
        wait_s = within_s
        while not ended.wait(wait_s):
            try:
                stop()
            except Exception:  # nothing else would cancel it
                log.exception(
                    "a question that takes too long was not cancelled; retried in %g s", CANCELLED_EVERY_S
                )
            wait_s = CANCELLED_EVERY_S

    thread = Thread(target=limit, name="limit of a question", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()  # no later question is cancelled
