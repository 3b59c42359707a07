"""gunicorn's own lines, in the form of all others: `logger_class` of both gunicorns."""

from gunicorn.glogging import Logger

from worker.log_lines import FORMAT, TIME


class GunicornLog(Logger):  # type: ignore[misc]
    """Its logger is called `gunicorn.error`, whatever the level."""

    error_fmt = FORMAT
    datefmt = TIME
