"""gunicorn's own lines, in the form of all others: `logger_class` of both gunicorns."""

from typing import Any

from gunicorn.glogging import Logger

from worker.logs.log_lines import FORMAT, TIME, OneLine


class GunicornLog(Logger):  # type: ignore[misc]
    """Its logger is called `gunicorn.error`, whatever the level."""

    error_fmt = FORMAT
    datefmt = TIME

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn at the start and at each reload."""
        super().setup(cfg)
        for handler in self.error_log.handlers:
            handler.setFormatter(OneLine())
