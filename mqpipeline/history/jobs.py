"""What RQ runs in a process that has the tables: by name, so that the caller need not import it."""

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

    Raises TimeoutError for what takes longer: the caller has timed out."""
    if _reader is None:
        raise RuntimeError("this process answers no questions: start it as `mqpipeline answer`")
    given = dict(arguments)
    try:
        reading = _reader.reading(given.pop("namespace"))
    except NothingLanded:
        return {"outside": True, "landed": None}
    return questions.ask(reading.within(within_s), question, given)
