"""Readiness of the remoting port, checked as a peer would, without slow imports."""

import socket
import ssl

from mqnamesrv.listeners import reachable
from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode, ResponseCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.remoting_command import Command
from worker.transport.tls_context import unverified_context

TIMEOUT_S = 0.5
CHECK_READINESS = Command(code=RequestCode.CHECK_READINESS, opaque=1)


def remoting_answers(options: Options, timeout_s: float = TIMEOUT_S) -> bool:
    """Return whether listenPort replies to request 19876, to which no rule of access belongs, whatever the reply; in
    enforcing TLS mode, whether it speaks TLS."""
    try:
        with socket.create_connection(
            (reachable(options.bind_address), options.listen_port), timeout_s
        ) as connection:
            if options.tls_server_mode == "enforcing":
                return _speaks_tls(connection)
            return _asked(connection, CHECK_READINESS) is not None
    except OSError:
        return False


def what_is_late(options: Options, timeout_s: float) -> str:
    """Return why the worker that takes a connection to listenPort is not ready, "" if it is."""
    where = (reachable(options.bind_address), options.listen_port)
    try:
        with socket.create_connection(where, timeout_s) as plain:
            encrypted = options.tls_server_mode == "enforcing"
            reply = _asked(unverified_context().wrap_socket(plain) if encrypted else plain, CHECK_READINESS)
    except OSError as error:
        return f"port {options.listen_port} does not answer: {error}"
    if reply is None:
        return f"port {options.listen_port} does not answer"
    return "" if reply.code == ResponseCode.SUCCESS else reply.remark or f"code {reply.code}"


def _asked(connection: socket.socket, command: Command) -> Command | None:
    connection.sendall(encode(command))
    reader = FrameReader()
    while data := connection.recv(65536):
        reader.feed(data)
        if reply := reader.next_command():
            return reply
    return None


def _speaks_tls(connection: socket.socket) -> bool:
    try:
        unverified_context().wrap_socket(connection).close()
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    return True
