"""The form of the log lines of `mqpipeline`, text or JSON: as the name server's, whose package need not be there.

`tests/mqpipeline/cli/test_log_lines.py` compares the two."""

import json
import logging
from datetime import UTC, datetime
from typing import Final

from mqpipeline.options import Options
from mqpipeline.texts import plain

__all__ = ["JsonLine", "as_line", "log_to_standard_error"]

NAME: Final = "mqpipeline"
FORMAT: Final = "%(asctime)s [%(process)d] [%(levelname)s] %(name)s %(message)s"
TIME: Final = "[%Y-%m-%d %H:%M:%S %z]"


class JsonLine(logging.Formatter):
    """An object a line: `time` (RFC 3339, UTC), `process`, `namespace` (several with commas), `level`, `logger`,
    `message`, and `traceback` if there is one."""

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
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)  # in ASCII, which no terminal takes for more than text


def log_to_standard_error(options: Options) -> None:
    """Log as the name server's processes do, what the operator is to know; of this package what it does as well."""
    logging.basicConfig(level=logging.WARNING)
    form = JsonLine(",".join(options.namespaces)) if options.log_format == "json" else None
    for handler in logging.getLogger().handlers:
        handler.setFormatter(form or logging.Formatter(FORMAT, TIME))
    logging.getLogger("mqpipeline").setLevel(logging.INFO)


def as_line(text: str, level: int = logging.ERROR) -> str:
    """Return the line for a text that a command ends with: an object where log lines are, else text."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler.formatter, JsonLine):
            return handler.formatter.format(logging.LogRecord(NAME, level, __file__, 0, text, None, None))
    return f"{NAME}: {plain(text)}"
