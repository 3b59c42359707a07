"""The errors of the library; all are ClientErrors."""


class ClientError(Exception):
    """Base of all errors of the library."""


class RemotingError(ClientError):
    """A call without a response; the subclass says at which stage it failed, `reason` why.

    `address` is the peer's, or the whole list if no name server could be reached."""

    def __init__(self, address: str, reason: str) -> None:
        super().__init__(f"{address}: {reason}" if address else reason)
        self.address = address
        self.reason = reason


class ConnectError(RemotingError):
    """No connection: nothing was sent."""


class SendError(RemotingError):
    """The request could not be written; its connection is closed."""


class CallTimeout(RemotingError, TimeoutError):
    """The timeout of the call expired; the request was sent unless the reason says otherwise."""


class ConnectionClosed(RemotingError):
    """The connection ended before the response came, or the client was closed."""


class TooBusy(RemotingError):
    """The permitted number of calls is in flight, and none of them ended within the timeout."""


class ResponseError(ClientError):
    """A response whose code the call does not accept.

    `remark` is the peer's explanation or None; codes are those of rocketmq_remoting.codes.ResponseCode."""

    def __init__(self, address: str, code: int, remark: str | None = None) -> None:
        super().__init__(f"{address} answered code {code}: {remark or 'no remark'}")
        self.address = address
        self.code = code
        self.remark = remark


class AddressError(ClientError, ValueError):
    """A text that is no address, or no list of addresses."""


class SubscriptionError(ClientError, ValueError):
    """An invalid subscription expression."""


class ConfigError(ClientError, ValueError):
    """An invalid configuration."""
