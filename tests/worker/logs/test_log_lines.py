"""The form of log lines, as text and as JSON."""

import json
import logging
import sys
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime

import msgspec
import pytest

from registry.options.catalogue import InvalidOption, Options, resolve
from worker.logs.log_lines import FIELDS, formatter, through, to_standard_error

AT = datetime(2026, 11, 28, 5, 13, 18, 250_000, UTC)


@pytest.fixture
def root() -> Iterator[logging.Logger]:
    """The root logger, whose handlers and level come back."""
    root = logging.getLogger()
    handlers, level = root.handlers, root.level
    yield root
    root.handlers = handlers
    root.setLevel(level)


def record(message: str, *args: object, error: bool = False, **fields: str) -> logging.LogRecord:
    made = logging.LogRecord(
        "worker.serving", logging.INFO, "", 1, message, args, sys.exc_info() if error else None
    )
    made.created, made.process = AT.timestamp(), 4711
    if fields:
        setattr(made, FIELDS, fields)
    return made


def text_of(made: logging.LogRecord) -> str:
    """Return what follows the time, which is local."""
    line = formatter(Options()).format(made)
    assert line.startswith("[2026-11-2")
    return line.partition("] ")[2]


def json_of(made: logging.LogRecord) -> Mapping[str, object]:
    line = formatter(Options(log_format="json", namespace="blue")).format(made)
    assert line.isprintable()
    found: Mapping[str, object] = json.loads(line)
    return found


def test_text_has_process_namespace_level_and_logger() -> None:
    assert text_of(record("draining %d", 3)) == "[4711] [default] [INFO] worker.serving draining 3"


def test_fields_follow_the_message_of_a_text() -> None:
    made = record("broker_registered first", broker="b 1", id="0", ha="", note='say "no"')
    assert text_of(made).endswith(
        r'worker.serving broker_registered first broker="b 1" id=0 ha="" note="say \"no\""'
    )


@pytest.mark.parametrize("name", ["a\nb", "a\x1b[2Jb", "a\u202eb", "a\ud800b"])
def test_what_a_peer_chose_ends_no_line(name: str) -> None:
    line = text_of(record("broker %s", name, broker=name))
    assert line.isprintable()
    assert json_of(record("broker %s", name, broker=name))["logger"] == "worker.serving"


def test_json_is_read_by_strict_readers() -> None:
    """An entry of the event stream may have bytes that are no UTF-8."""
    line = formatter(Options(log_format="json")).format(record("entry %s", "\udcff", actor="\udcfe", b="😀"))
    found = msgspec.json.decode(line)
    assert (found["message"], found["actor"], found["b"]) == (r"entry \udcff", r"\udcfe", "😀")


def test_json_has_an_object_a_line() -> None:
    assert json_of(record("drained %s", "b1", broker="b1", actor="http:127.0.0.1:5")) == {
        "time": "2026-11-28T05:13:18.250+00:00",
        "process": 4711,
        "namespace": "blue",
        "level": "INFO",
        "logger": "worker.serving",
        "message": "drained b1",
        "broker": "b1",
        "actor": "http:127.0.0.1:5",
    }


def test_no_field_takes_the_place_of_a_member() -> None:
    assert json_of(record("drained", time="now", level="ERROR"))["level"] == "INFO"


def test_json_has_the_traceback_of_an_error() -> None:
    try:
        raise ValueError("odd\nvalue")
    except ValueError:
        made = record("failed", error=True)
    assert "ValueError: odd\nvalue" in str(json_of(made)["traceback"])
    assert "ValueError: odd" in text_of(made)


def test_lines_below_the_level_are_left_out(root: logging.Logger, capsys: pytest.CaptureFixture[str]) -> None:
    root.handlers = []  # as at the start of a process
    to_standard_error(Options(log_level="warning"))
    logging.getLogger("worker.serving").info("not this")
    logging.getLogger("worker.serving").warning("but this")
    assert [line.rpartition(" ")[2] for line in capsys.readouterr().err.splitlines()] == ["this"]


def test_a_process_that_has_read_its_options_changes_the_form(
    root: logging.Logger, capsys: pytest.CaptureFixture[str]
) -> None:
    root.handlers = []
    to_standard_error(Options())
    to_standard_error(Options(log_format="json", namespace="blue"))
    logging.getLogger("worker.serving").info("begun")
    assert json.loads(capsys.readouterr().err)["namespace"] == "blue"
    assert len(root.handlers) == 1


def test_logging_that_is_configured_stays(root: logging.Logger) -> None:
    handler = logging.NullHandler()
    root.handlers = [handler]
    to_standard_error(Options())
    through([logging.StreamHandler()], Options())
    assert root.handlers == [handler]


@pytest.mark.parametrize("variable", ["MQNS_LOG_FORMAT", "MQNS_LOG_LEVEL"])
def test_a_form_or_level_that_there_is_not_is_refused(variable: str) -> None:
    with pytest.raises(InvalidOption, match=r"^log(Format|Level)=loud: log(Format|Level) is one of "):
        resolve({}, {variable: "loud"})
