"""The form of the server's log lines, in all its processes: time, process, level, logger and message."""

import logging
from collections.abc import Sequence
from typing import Final

FORMAT: Final = "%(asctime)s [%(process)d] [%(levelname)s] %(name)s %(message)s"
TIME: Final = "[%Y-%m-%d %H:%M:%S %z]"


class OneLine(logging.Formatter):
    """Escapes what would end a line, or change how a terminal shows it: peers choose the names in messages."""

    def __init__(self) -> None:
        super().__init__(FORMAT, TIME)

    def formatMessage(self, record: logging.LogRecord) -> str:
        """Called by `format`, before it adds a traceback."""
        line = super().formatMessage(record)
        return line if line.isprintable() else "".join(map(_shown, line))


def _shown(character: str) -> str:
    return character if character.isprintable() else character.encode("unicode_escape").decode()


def to_standard_error(level: int) -> None:
    """Log lines of this level and above, unless logging is configured."""
    handler = logging.StreamHandler()
    handler.setFormatter(OneLine())
    logging.basicConfig(level=level, handlers=[handler])


def through(handlers: Sequence[logging.Handler], level: int) -> None:
    """Log by what gunicorn has set up for its own lines, unless logging is configured."""
    root = logging.getLogger()
    if not root.handlers:
        root.handlers = list(handlers)
        root.setLevel(level)
