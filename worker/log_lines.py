"""The form of the server's log lines, in all its processes: time, process, level, logger and message."""

import logging
from collections.abc import Sequence
from typing import Final

FORMAT: Final = "%(asctime)s [%(process)d] [%(levelname)s] %(name)s %(message)s"
TIME: Final = "[%Y-%m-%d %H:%M:%S %z]"


def to_standard_error(level: int) -> None:
    """Log lines of this level and above, unless logging is configured."""
    logging.basicConfig(level=level, format=FORMAT, datefmt=TIME)


def through(handlers: Sequence[logging.Handler], level: int) -> None:
    """Log by what gunicorn has set up for its own lines, unless logging is configured."""
    root = logging.getLogger()
    if not root.handlers:
        root.handlers = list(handlers)
        root.setLevel(level)
