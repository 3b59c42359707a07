"""Exit codes of `mqns`, and the error texts."""

from enum import IntEnum
from typing import Final

from mqns.errors import AddressError, CallTimeout, ClientError, ConfigError, RemotingError, ResponseError


class ExitCode(IntEnum):
    """The exit codes of `mqns`."""

    OK = 0
    REFUSED = 1
    WRONG_USAGE = 2
    UNREACHABLE = 3
    TIMED_OUT = 4
    FINDINGS = 5
    INTERRUPTED = 130


EPILOG: Final = (
    "Exit codes: 0 done; 1 a name server answered with an error, what was asked for is not there, or you said no; "
    "2 wrong usage; "
    "3 nothing was reachable; 4 no answer in time; 5 doctor found errors, drift differences; 130 interrupted."
)
_CODES: Final[tuple[tuple[type[ClientError], ExitCode], ...]] = (
    (ResponseError, ExitCode.REFUSED),
    (AddressError, ExitCode.WRONG_USAGE),
    (ConfigError, ExitCode.WRONG_USAGE),
    (CallTimeout, ExitCode.TIMED_OUT),
    (RemotingError, ExitCode.UNREACHABLE),
)


class NotFound(ClientError):
    """The requested object does not exist."""


class NotSet(ClientError):
    """Name servers accepted a change and did not make it."""


def code_of(error: ClientError) -> ExitCode:
    """Return the exit code of a command that failed with this error."""
    return next((code for kind, code in _CODES if isinstance(error, kind)), ExitCode.REFUSED)


def message_of(error: ClientError) -> str:
    """Return the error in one line, its address once."""
    if isinstance(error, RemotingError) and any(map(error.reason.startswith, error.address.split(";"))):
        return error.reason
    return str(error)
