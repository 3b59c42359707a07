"""Exit codes, and which error ends with which."""

from enum import IntEnum
from typing import Final

from client.errors import AddressError, AnswerError, CallTimeout, ClientError, ConfigError, RemotingError


class ExitCode(IntEnum):
    """What `mqns` ends with."""

    OK = 0
    REFUSED = 1
    WRONG_USAGE = 2
    UNREACHABLE = 3
    TIMED_OUT = 4
    FINDINGS = 5
    INTERRUPTED = 130


EPILOG: Final = (
    "Exit codes: 0 done; 1 a name server answered with an error, or what was asked for is not there; 2 wrong usage; "
    "3 nothing was reachable; 4 no answer in time; 5 doctor found errors; 130 interrupted."
)
_CODES: Final[tuple[tuple[type[ClientError], ExitCode], ...]] = (
    (AnswerError, ExitCode.REFUSED),
    (AddressError, ExitCode.WRONG_USAGE),
    (ConfigError, ExitCode.WRONG_USAGE),
    (CallTimeout, ExitCode.TIMED_OUT),
    (RemotingError, ExitCode.UNREACHABLE),
)


class NotThere(ClientError):
    """What was asked for does not exist."""


def code_of(error: ClientError) -> ExitCode:
    """What a command that failed with this error ends with."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.REFUSED)


def told(error: ClientError) -> str:
    """The error in one line, its address once."""
    if isinstance(error, RemotingError) and any(map(error.reason.startswith, error.address.split(";"))):
        return error.reason
    return str(error)
