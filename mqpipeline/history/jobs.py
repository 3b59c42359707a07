"""What RQ runs in a process with Spark: by name, so that the caller need not import it."""

from threading import Timer
from typing import Any

from mqpipeline.history import questions
from mqpipeline.history.reader import NothingLanded, Reader

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
    limit = Timer(within_s, _reader.stop)
    limit.start()
    try:
        return questions.ask(_reader.reading(given.pop("namespace")), question, given)
    except NothingLanded:
        return {"outside": True, "landed": None}
    finally:
        limit.cancel()
