"""What RQ runs in a process with Spark: by name, so that who asks need not import it."""

from typing import Any

from rq.timeouts import JobTimeoutException

from pipeline.history import questions
from pipeline.history.reader import NothingLanded, Reader

_reader: Reader | None = None


def answer_from(reader: Reader) -> None:
    """Whence this process answers."""
    global _reader
    _reader = reader


def answer(question: str, arguments: dict[str, Any]) -> questions.Json:
    """The answer of `questions.ask`; `namespace` is among the arguments. `landed` is null where nothing has."""
    if _reader is None:
        raise RuntimeError("this process answers no questions: start it as `mqpipeline answer`")
    given = dict(arguments)
    try:
        return questions.ask(_reader.reading(given.pop("namespace")), question, given)
    except NothingLanded:
        return {"outside": True, "landed": None}
    except JobTimeoutException:
        _reader.stop()
        raise
