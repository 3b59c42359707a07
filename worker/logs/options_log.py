"""Log lines about options that were given: that have no effect, or open doors."""

import logging
from collections.abc import Iterable

log = logging.getLogger(__name__)


def log_without_effect(sentences: Iterable[str]) -> None:
    """Log each of the sentences (`registry.options.without_effect`)."""
    for text in sentences:
        log.warning("the options: %s", text)


def log_access(sentences: Iterable[str]) -> None:
    """Log each of the sentences (`access.start_check`)."""
    for text in sentences:
        log.warning("access: %s", text)
