"""Every error that the library raises on its own account; all are ClientErrors."""


class ClientError(Exception):
    """Something that this library was asked for did not happen."""


class RemotingError(ClientError):
    """A call that got no answer; the class says how far it came, `reason` why it ended there.

    `address` is the peer's, or the whole list where no name server could be reached."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}" if address else reason)
        self.address = address
        self.reason = reason


class ConnectError(RemotingError):
    """No connection: nothing was sent."""


class SendError(RemotingError):
    """The request could not be written; the connection it was meant for is closed."""


class CallTimeout(RemotingError, TimeoutError):
    """The time budget of the call is over; unless the reason says otherwise, the request was sent."""


class ConnectionClosed(RemotingError):
    """The connection ended while the call waited for its answer, or the client was closed."""


class TooBusy(RemotingError):
    """As many calls as are permitted are under way, and none of them ended within the budget."""


class AnswerError(ClientError):
    """An answer whose code the call does not accept.

    `remark` is the peer's own explanation, if it gave one; codes are those of remoting.codes.ResponseCode."""

    def __init__(self, address: str, code: int, remark: str | None = None) -> None:
        super().__init__(f"{address} answered code {code}: {remark or 'no remark'}")
        self.address = address
        self.code = code
        self.remark = remark


class AddressError(ClientError, ValueError):
    """Text that is no address, or no list of addresses."""


class SubscriptionError(ClientError, ValueError):
    """An expression that is no subscription."""


class ConfigError(ClientError, ValueError):
    """A configuration that makes no sense."""
