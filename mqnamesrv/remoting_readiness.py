"""Readiness of the remoting port, checked as a peer would, without slow imports."""

import socket
import ssl

from mqnamesrv.listeners import reachable
from registry.options.catalogue import Options
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.frame import FrameReader
from rocketmq_remoting.remoting_command import Command

TIMEOUT_S = 0.5
GET_CONFIG = Command(code=RequestCode.GET_NAMESRV_CONFIG, opaque=1)


def remoting_answers(options: Options, timeout_s: float = TIMEOUT_S) -> bool:
    """Return whether listenPort replies to request 319; in enforcing TLS mode, whether it speaks TLS."""
    try:
        with socket.create_connection(
            (reachable(options.bind_address), options.listen_port), timeout_s
        ) as connection:
            if options.tls_server_mode == "enforcing":
                return _speaks_tls(connection)
            connection.sendall(encode(GET_CONFIG))
            reader = FrameReader()
            while data := connection.recv(65536):
                reader.feed(data)
                if reply := reader.next_command():
                    return reply.opaque == GET_CONFIG.opaque
    except OSError:
        return False
    return False


def _speaks_tls(connection: socket.socket) -> bool:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        context.wrap_socket(connection).close()
    except ssl.SSLError as error:
        return "ALERT" in (error.reason or "")
    return True
