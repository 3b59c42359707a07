"""The round trip that `helm test` makes: succeeds on a running server, and tells what is wrong with a broken one."""

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from mqnamesrv.store import EmbeddedStore
from mqns.roundtrip import RoundTrip, RoundTripFailed, resolved
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.command import encode
from rocketmq_remoting.frame import FrameReader
from testbed.nameserver import NameServer
from tests.access.files import access_file, write
from tests.mqns.remoting.servers import Serve, deaf, served

SOON_S = 0.5
TESTER = """
[principals.tester]
roles = ["broker"]

[[principals.tester.keys]]
accessKey = "tester"
secrets = [{ file = "test.key" }]
"""
Start = Callable[..., NameServer]


@pytest.fixture(scope="module")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    store = EmbeddedStore(tmp_path_factory.mktemp("store"), keep=False)
    store.start()
    yield store.url
    store.stop()


@pytest.fixture(scope="module")
def start(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Start]:
    """A running server with these options in that namespace."""
    running = []

    def make(namespace: str = "default", **options: str) -> NameServer:
        server = NameServer(tmp_path_factory.mktemp("server"), options, url=url, namespace=namespace)
        running.append(server)
        return server.start()

    yield make
    for server in running:
        server.begin_stop()
    for server in running:
        server.stop()


@pytest.fixture(scope="module")
def server(start: Start) -> NameServer:
    return start()


def of(*servers: NameServer) -> tuple[str, ...]:
    return tuple(f"127.0.0.1:{server.port}" for server in servers)


def command(*words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "mqns.roundtrip", *words],
        env=os.environ | variables,
        capture_output=True,
        text=True,
        timeout=50,
    )


def test_a_broker_comes_and_goes(server: NameServer) -> None:
    done = command("--connections=3", *of(server))
    assert (done.returncode, done.stderr) == (0, "")
    name = done.stdout.split()[1]
    where = f"at 127.0.0.1:{server.port} (3 connections each)"
    assert done.stdout.splitlines() == [
        f"registered {name} at 127.0.0.1:{server.port}",
        f"its route is known {where}",
        f"unregistered {name}",
        f"its route is gone {where}",
    ]
    with server.store() as store:
        assert not store.sismember(server.keys.brokers, name)
        entries = [fields for _, fields in store.xrange(server.keys.events)]
    kinds = [fields["kind"] for fields in entries if fields.get("broker") == name]
    assert (kinds[0], kinds[-1]) == ("broker_registered", "broker_removed")


def test_two_servers_that_share_their_store_are_one(server: NameServer, start: Start) -> None:
    said: list[str] = []
    RoundTrip(addresses=of(server, start())).run(said.append)
    assert len(said) == 4


def test_over_tls(start: Start, tmp_path: Path) -> None:
    enforcing = start("tls", **{"tls.server.mode": "enforcing"})
    assert command("--tls", *of(enforcing)).returncode == 0
    plain = command("--within=0.5", *of(enforcing))
    assert (plain.returncode, plain.stdout) == (1, "")
    assert "the registration was not taken" in plain.stderr


def test_it_signs_where_a_rule_asks_for_that(start: Start, tmp_path: Path) -> None:
    principals = access_file(tmp_path, TESTER)
    write(tmp_path / "test.key", "12345678abcdefgh")
    rules = {"accessBroker": "signed", "accessRead": "signed", "accessFile": str(principals)}
    signed = start("signed", **rules)
    key = {"MQNS_ACCESS_KEY": "tester", "MQNS_SECRET_KEY": "12345678abcdefgh"}
    assert command("--connections=1", *of(signed), **key).returncode == 0
    refused = command("--within=0.5", *of(signed))
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "access denied: broker needs signed" in refused.stderr
    without = command(*of(signed), MQNS_ACCESS_KEY="tester")
    assert (without.returncode, without.stderr) == (
        1,
        "FAILED: MQNS_ACCESS_KEY needs the variable MQNS_SECRET_KEY\n",
    )


def test_no_server_listens() -> None:
    done = command("127.0.0.1:1")
    assert (done.returncode, done.stdout) == (1, "")
    assert (
        done.stderr == "FAILED: 127.0.0.1:1: the registration was not taken: "
        "127.0.0.1:1: not connected: Connection refused\n"
    )


def test_an_unknown_host_name() -> None:
    done = command("no-such-host.invalid:9876")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("FAILED: no-such-host.invalid:9876: ")


def test_what_is_no_address() -> None:
    done = command("no-port")
    assert (done.returncode, done.stderr) == (1, "FAILED: no port in the address 'no-port'\n")


def test_servers_that_do_not_share_their_routes(server: NameServer, start: Start) -> None:
    other = start("another")
    with pytest.raises(RoundTripFailed, match=f"^127.0.0.1:{other.port}: no route of topic .*, after 0.5 s$"):
        RoundTrip(addresses=of(server, other), within_s=SOON_S).run()
    with server.store() as store:
        assert not [name for name in store.smembers(server.keys.brokers) if name.startswith("roundtrip")]


def test_one_that_hangs_behind_one_that_answers(server: NameServer) -> None:
    with served(deaf) as address, pytest.raises(RoundTripFailed, match=f"^{address}: .*, after 0.5 s$"):
        RoundTrip(addresses=(*of(server), address), within_s=SOON_S).run()


def keeping(server: NameServer) -> Serve:
    """Passes requests on to the server, but answers itself that a broker is taken out, which it keeps."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        from_server, to_server = await asyncio.open_connection("127.0.0.1", server.port)
        answers = asyncio.create_task(_pass_on(from_server, writer))
        frames = FrameReader()
        while data := await reader.read(1 << 16):
            frames.feed(data)
            while (request := frames.next_command()) is not None:
                if request.code == RequestCode.UNREGISTER_BROKER:
                    writer.write(encode(request.reply(0)))
                else:
                    to_server.write(encode(request))
        await asyncio.sleep(
            3 * SOON_S
        )  # or the server would find its broker's connection lost, and the broker dead
        answers.cancel()
        to_server.close()

    return serve


async def _pass_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)


def test_a_broker_that_stays(server: NameServer) -> None:
    with (
        served(keeping(server)) as address,
        pytest.raises(RoundTripFailed, match=f"^{address}: there still is a route of topic .*, after 0.5 s$"),
    ):
        RoundTrip(addresses=(address,), within_s=SOON_S, connections=1).run()


def test_each_address_of_a_host_is_asked_once() -> None:
    assert resolved(["127.0.0.1:9876", "127.0.0.1:9876", "[::1]:9877"]) == ("127.0.0.1:9876", "[::1]:9877")
