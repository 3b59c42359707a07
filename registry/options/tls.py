"""What Java's options `tls.*` mean together: the mode, and the file that comes before all others."""

import logging
from enum import Enum

import msgspec

from registry.options.catalogue import BY_KEY, Options, parse
from registry.options.load import read_properties

__all__ = ["TlsMode", "with_tls_file"]

log = logging.getLogger(__name__)


class TlsMode(Enum):
    """What a connection's first byte decides (RocketMQ TlsMode)."""

    DISABLED = "disabled"
    """Plain only."""
    PERMISSIVE = "permissive"
    """Either."""
    ENFORCING = "enforcing"
    """TLS only."""

    @classmethod
    def parse(cls, text: str) -> "TlsMode":
        """Return the mode of a text as Java reads it: any other text is permissive."""
        return next((mode for mode in cls if mode.value == text), cls.PERMISSIVE)


def with_tls_file(options: Options) -> Options:
    """Return the options overlaid with the TLS file's; a file that cannot be read is logged and ignored."""
    try:
        entries = read_properties(options.tls_config_file)
    except FileNotFoundError:
        return options
    except (OSError, ValueError) as error:
        log.error("TLS file %s cannot be read: %s; correct it and reload", options.tls_config_file, error)
        return options
    values: dict[str, object] = {}
    for key, text in entries.items():
        option = BY_KEY.get(key)
        if option and option.group == "tls" and (value := parse(option, text)) is not None:
            values[option.name] = value
    return msgspec.structs.replace(options, **values)
