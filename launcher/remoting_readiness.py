"""Whether the remoting port answers: asked as a peer would, without a library of several tenths of a second."""

import socket
import ssl

from launcher.listeners import reachable
from registry.options import Options
from remoting.codes import RequestCode
from remoting.command import encode
from remoting.frame import FrameReader
from remoting.remoting_command import Command

TIMEOUT_S = 0.5
GET_CONFIG = Command(code=RequestCode.GET_NAMESRV_CONFIG, opaque=1)


def remoting_answers(options: Options, timeout_s: float = TIMEOUT_S) -> bool:
    """Whether listenPort answers request 319. In enforcing TLS mode a TLS peer counts: it may want our certificate."""
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
                if answer := reader.next_command():
                    return answer.opaque == GET_CONFIG.opaque
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
