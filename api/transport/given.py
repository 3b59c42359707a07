"""A request that has come, as the socket that gunicorn's parser reads."""


class Given:
    """Gives no more at a time than a socket would: gunicorn copies all that it has read for each chunk of a body."""

    def __init__(self) -> None:
        self._data = b""
        self._at = 0

    def give(self, data: bytes) -> None:
        """Add what may be read."""
        self._data = self._data[self._at :] + data
        self._at = 0

    def recv(self, size: int) -> bytes:
        """Called by gunicorn: return the next bytes, none where there are no more."""
        data = self._data[self._at : self._at + size]
        self._at += len(data)
        if self._at == len(self._data):
            self._data, self._at = b"", 0
        return data
