"""A broker as a process of its own, to be stopped and killed: it listens, registers, and sends heartbeats.

    python -m tests.service.broker_process NAMESRV_PORT ADDRESS TIMEOUT_MS

ADDRESS is `ip:port`, port 0 for a free one. Prints its address when it is registered; registers each 300 ms over one
connection, opened again whenever it ends.
"""

import socket
import sys
import threading
import time

from testbed.broker import Broker
from testbed.connection import Closed, Connection

HEARTBEAT_S = 0.3


def main(port: int, address: str, timeout_ms: int) -> None:
    host, _, listen_port = address.partition(":")
    listener = socket.create_server((host, int(listen_port)))
    threading.Thread(target=_accept, args=(listener,), daemon=True).start()
    broker = Broker(name="broker-p", addr=f"{host}:{listener.getsockname()[1]}", timeout_ms=timeout_ms)
    announced = False
    connection: Connection | None = None
    while True:
        try:
            connection = connection or Connection(port, source=host)
            answer = broker.register(connection)
            assert answer.code == 0, answer
        except (Closed, OSError):
            connection = None
        if not announced:
            print(broker.addr, flush=True)
            announced = True
        time.sleep(HEARTBEAT_S)


def _accept(listener: socket.socket) -> None:
    while True:
        listener.accept()[0].close()


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
