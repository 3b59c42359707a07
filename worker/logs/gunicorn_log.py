"""gunicorn's own lines, in the form of all others: `logger_class` of both gunicorns."""

import os
from typing import Any

from gunicorn.glogging import Logger

from registry.options.load import load
from worker.logs.log_lines import formatter


class GunicornLog(Logger):  # type: ignore[misc]
    """Its loggers are called `gunicorn.error`, whatever the level, and `gunicorn.access`."""

    def setup(self, cfg: Any) -> None:
        """Called by gunicorn at the start and at each reload."""
        super().setup(cfg)
        form = formatter(load(os.environ))
        for handler in (*self.error_log.handlers, *self.access_log.handlers):
            handler.setFormatter(form)
