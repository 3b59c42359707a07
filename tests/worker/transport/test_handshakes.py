"""How many TLS handshakes may be under way at once, and which one has to go."""

from worker.transport.handshakes import Handshakes


class Peer:
    def __init__(self, host: str) -> None:
        self.host = host
        self.aborted = False

    def abort(self, reason: str) -> None:
        assert not self.aborted
        self.aborted = True


def begun(handshakes: Handshakes, *hosts: str) -> list[Peer]:
    peers = [Peer(host) for host in hosts]
    for peer in peers:
        handshakes.begin(peer)
    return peers


def test_beyond_the_most_the_first_of_the_host_that_has_most_is_cut_off() -> None:
    handshakes = Handshakes(3)
    peers = begun(handshakes, "10.0.0.1", "10.0.0.2", "10.0.0.2", "10.0.0.3", "10.0.0.3", "10.0.0.3")
    assert [peer.aborted for peer in peers] == [False, True, False, True, True, False]
    assert len(handshakes) == 3


def test_one_that_is_over_takes_no_place_however_often_that_is_said() -> None:
    handshakes = Handshakes(1)
    (first,) = begun(handshakes, "10.0.0.1")
    handshakes.begin(first)
    handshakes.end(first)
    handshakes.end(first)
    (second,) = begun(handshakes, "10.0.0.1")
    assert (first.aborted, second.aborted, len(handshakes)) == (False, False, 1)


def test_a_host_of_ipv6_is_its_64() -> None:
    handshakes = Handshakes(3)
    peers = begun(handshakes, "10.0.0.1", "[fd00::1]", "[fd00::2]", "10.0.0.2")
    assert [peer.aborted for peer in peers] == [False, True, False, False]
