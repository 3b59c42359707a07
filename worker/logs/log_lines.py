"""The form of log lines in all processes of the server, text or JSON: time, process, namespace, level, logger, message;
and the fields that a line may have besides."""

import json
import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Final

from registry.options.catalogue import Options

__all__ = ["FIELDS", "formatter", "through", "to_standard_error"]

FORMAT: Final = "%(asctime)s [%(process)d] [{namespace}] [%(levelname)s] %(name)s %(message)s"
TIME: Final = "[%Y-%m-%d %H:%M:%S %z]"
FIELDS: Final = "fields"
"""`extra={FIELDS: {name: text}}` of a line: what JSON has as members, and text behind the message as `name=text`."""


class TextLine(logging.Formatter):
    """Escapes what would end a line, or change how a terminal shows it: peers choose the names in messages."""

    def __init__(self, namespace: str) -> None:
        super().__init__(FORMAT.format(namespace=namespace), TIME)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Called by `format`, before it adds a traceback."""
        fields = "".join(f" {name}={_word(text)}" for name, text in _fields_of(record).items())
        line = super().formatMessage(record) + fields
        return one_line(line)


class JsonLine(logging.Formatter):
    """An object a line: `time` (RFC 3339, UTC), `process`, `namespace`, `level`, `logger`, `message`, the fields, and
    `traceback` if there is one."""

    def __init__(self, namespace: str) -> None:
        super().__init__()
        self._namespace = namespace

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "process": record.process,
            "namespace": self._namespace,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        line |= {name: text for name, text in _fields_of(record).items() if name not in line}
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        sound = {_sound(name): _sound(value) for name, value in line.items()}
        return json.dumps(sound)  # in ASCII, which no terminal takes for more than text


def formatter(options: Options) -> logging.Formatter:
    """Return the form that the options ask for."""
    form = JsonLine if options.log_format == "json" else TextLine
    return form(options.namespace)


def to_standard_error(options: Options) -> None:
    """Log lines of the level of the options and above, unless logging is configured by another hand."""
    root = logging.getLogger()
    ours = [handler for handler in root.handlers if isinstance(handler.formatter, TextLine | JsonLine)]
    if root.handlers and not ours:
        return
    handler = ours[0] if ours else logging.StreamHandler()
    handler.setFormatter(formatter(options))
    root.handlers = [handler]
    root.setLevel(level_of(options))


def through(handlers: Sequence[logging.Handler], options: Options) -> None:
    """Log by what gunicorn has set up for its own lines, unless logging is configured."""
    root = logging.getLogger()
    if not root.handlers:
        root.handlers = list(handlers)
        root.setLevel(level_of(options))


def level_of(options: Options) -> int:
    """Return the level of the options as a number."""
    return logging.getLevelNamesMapping()[options.log_level.upper()]


def _fields_of(record: logging.LogRecord) -> Mapping[str, str]:
    fields: Mapping[str, str] = getattr(record, FIELDS, {})
    return fields


def one_line(text: str) -> str:
    """Return a text with those characters escaped that would end a line, or change how a terminal shows it."""
    return text if text.isprintable() else "".join(map(_shown, text))


def _word(text: str) -> str:
    """Return a text as one word: JSON where it has blanks or quotes, or is empty."""
    if text and not any(character.isspace() or character == '"' for character in text):
        return text
    return json.dumps(text, ensure_ascii=False)


def _sound(value: object) -> object:
    """Return a text with lone surrogates escaped, which strict readers of JSON refuse; others as they are."""
    return value.encode(errors="backslashreplace").decode() if isinstance(value, str) else value


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()
