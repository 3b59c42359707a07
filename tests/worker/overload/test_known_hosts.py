"""Which peers brokers are known to have registered from."""

from collections.abc import Set as AbstractSet

from msgspec import Struct

from worker.overload.known_hosts import KnownHosts
from worker.peer import NONE_REGISTERED, host_of


class Connected(Struct):
    address: str
    registered: AbstractSet[str] = NONE_REGISTERED

    @property
    def host(self) -> str:
        return host_of(self.address)


def test_by_connection_and_by_host() -> None:
    hosts = KnownHosts()
    broker = Connected("10.0.0.1:5000")
    assert not hosts.knows(broker)  # type: ignore[arg-type]
    hosts.add(broker)  # type: ignore[arg-type]
    assert hosts.knows(Connected("10.0.0.1:6000"))  # type: ignore[arg-type]
    assert not hosts.knows(Connected("10.0.0.10:6000"))  # type: ignore[arg-type]
    assert not hosts.knows(Connected("[::1]:6000"))  # type: ignore[arg-type]
    assert hosts.knows(Connected("10.0.0.2:6000", frozenset({"c1@10.0.0.2:10911"})))  # type: ignore[arg-type]


def test_the_last_are_kept() -> None:
    hosts = KnownHosts(2)
    for host in ("a", "b", "a", "c"):
        hosts.add(Connected(f"{host}:1"))  # type: ignore[arg-type]
    assert [hosts.knows(Connected(f"{host}:2")) for host in "abc"] == [True, False, True]  # type: ignore[arg-type]
