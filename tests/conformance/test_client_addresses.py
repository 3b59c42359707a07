"""Lists of name servers and their HTTP endpoint (docs/conformance.md, CL-27 to CL-30)."""

import asyncio

import httpx
import pytest

from mqns.addresses.endpoint import AddressEndpoint, endpoint_url
from mqns.addresses.syntax import parse_addresses
from mqns.remoting.remoting_client import AsyncRemotingClient
from testbed.virtual_time import run

LIST = "a:9876;b:9876"


def answered(status: int, body: bytes, *, after_s: float = 0) -> tuple[str, ...] | None:
    """What a fetch gives when the endpoint answers so."""

    async def answer(_: httpx.Request) -> httpx.Response:
        await asyncio.sleep(after_s)
        return httpx.Response(status, stream=httpx.ByteStream(body))

    return run(AddressEndpoint(endpoint_url(), transport=httpx.MockTransport(answer)).fetch())


@pytest.mark.conformance("CL-27")
def test_a_list_is_shuffled() -> None:
    addresses = parse_addresses(LIST)
    assert addresses == ("a:9876", "b:9876")

    async def orders() -> set[tuple[str, ...]]:
        seen = set()
        for _ in range(200):
            async with AsyncRemotingClient() as client:
                client.set_name_servers(addresses)
                seen.add(client.name_servers)
        return seen

    assert run(orders()) == {("a:9876", "b:9876"), ("b:9876", "a:9876")}


@pytest.mark.conformance("CL-28")
def test_of_the_answer_the_first_line_counts() -> None:
    assert answered(200, b"a:9876;b:9876\r\nrest") == ("a:9876", "b:9876")


@pytest.mark.conformance("CL-29")
@pytest.mark.parametrize(("status", "after_s"), [(404, 0), (200, 3.5)])
def test_without_an_answer_the_old_list_is_kept(status: int, after_s: float) -> None:
    assert answered(200, LIST.encode()) is not None
    assert answered(status, LIST.encode(), after_s=after_s) is None


@pytest.mark.conformance("CL-30")
def test_the_url_for_a_unit() -> None:
    assert endpoint_url(unit="u") == "http://jmenv.tbsite.net:8080/rocketmq/nsaddr-u?nofix=1"
