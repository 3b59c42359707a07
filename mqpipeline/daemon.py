"""PySpark's daemon, which forks the Python workers of tasks; one whose connection Java has closed ends without a word.

Java closes it when it has all that it needs, as at the end of a run; PySpark prints a traceback for that."""

import socket

from pyspark import daemon

_worker = daemon.worker


def worker(sock: socket.socket, authenticated: bool) -> int:
    """PySpark's own, which returns the worker's exit code."""
    try:
        return _worker(sock, authenticated)
    except BrokenPipeError:
        return 1


if __name__ == "__main__":
    daemon.worker = worker
    daemon.manager()
