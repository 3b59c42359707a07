"""What mypy makes of the faces: the assertions are its own, this only runs them."""

from collections.abc import Callable, Coroutine
from typing import Any, assert_type

from client.name_server import calls
from client.name_server.client import AsyncNameServer, NameServer
from client.wire.call import Call
from remoting.cluster import ClusterInfo
from remoting.route import TopicRouteData
from tests.harness.network import Network
from tests.harness.virtual_time import run


def test_a_call_knows_what_it_results_in() -> None:
    assert_type(calls.get_route("TA"), Call[TopicRouteData | None])
    assert_type(calls.get_cluster_info(), Call[ClusterInfo])


def test_blocking_methods_return_it() -> None:
    def never_run(ns: NameServer) -> None:
        assert_type(ns.get_route("TA"), TopicRouteData | None)
        assert_type(ns.get_route(topic="TA"), TopicRouteData | None)
        assert_type(ns.wipe_write_perm("broker-a"), int)
        assert_type(ns.ask(calls.get_cluster_info()), ClusterInfo)
        assert_type(ns.ask_all(calls.get_config()), dict[str, dict[str, str]])
        ns.get_route()  # type: ignore[call-arg]
        ns.get_route(1)  # type: ignore[arg-type]
        ns.delete_topic("TA", claster="c1")  # type: ignore[call-arg]

    assert callable(never_run)


def test_asynchronous_methods_are_awaited_for_it() -> None:
    async def ask(ns: AsyncNameServer) -> None:
        assert_type(ns.get_cluster_info, Callable[[], Coroutine[Any, Any, ClusterInfo]])
        assert_type(await ns.get_kv_config("ns", key="k"), str | None)
        assert_type(await ns.ask(calls.get_route("TA")), TopicRouteData | None)

    async def play() -> None:
        network = Network()
        network.serve("127.0.0.1:9876", lambda request: request.reply(22 if request.code == 101 else 17))
        async with AsyncNameServer("127.0.0.1:9876", connect=network.connect) as ns:
            await ask(ns)

    run(play())


def test_a_method_is_documented_as_its_function_is() -> None:
    assert NameServer.get_route.__doc__ == calls.get_route.__doc__
    assert AsyncNameServer.get_route is NameServer.get_route
