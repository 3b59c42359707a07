"""KV values, which requests have in their headers: they count as bodies do."""

import threading

import pytest

from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import Command, encode
from rocketmq_remoting.version import CURRENT
from testbed.broker import A
from testbed.nameserver import NameServer
from tests.hostile.beside import RESIDENT_BYTES, Beside, on_one_worker

PEERS = 12


def puts(peer: int, values: int, length: int) -> bytes:
    """Each value differs from the one before it."""
    return b"".join(
        encode(
            Command(
                int(RequestCode.PUT_KV_CONFIG),
                number,
                version=CURRENT,
                ext={"namespace": "in-headers", "key": str(peer), "value": f"{number % 2}" * length},
            )
        )
        for number in range(values)
    )


@pytest.mark.parametrize(("values", "length"), [(60, 200_000), (100, 60_000)])
def test_many_long_values_at_once(server: NameServer, values: int, length: int) -> None:
    with on_one_worker(server, PEERS + 1) as (worker, (other, *attackers)):
        assert A.but(timeout_ms=600_000).register(other).code == 0
        opened = [attacker._socket for attacker in attackers]
        beside = Beside(worker, other)
        sending = [
            threading.Thread(target=connection.sendall, args=(puts(peer, values, length),), daemon=True)
            for peer, connection in enumerate(opened)
        ]
        for thread in sending:
            thread.start()
        beside.looks_up(lambda: not any(thread.is_alive() for thread in sending))
        assert beside.most_bytes < RESIDENT_BYTES
