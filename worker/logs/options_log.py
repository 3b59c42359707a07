"""Log lines about options that were given and have no effect."""

import logging
from collections.abc import Iterable

log = logging.getLogger(__name__)


def log_without_effect(sentences: Iterable[str]) -> None:
    """Log each of the sentences (`registry.options.without_effect`)."""
    for text in sentences:
        log.warning("the options: %s", text)
