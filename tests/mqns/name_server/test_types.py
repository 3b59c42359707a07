"""What mypy makes of the sync and the async client: the assertions are its own, this only runs them."""

from collections.abc import Callable, Coroutine
from typing import Any, assert_type

from mqns.name_server import calls
from mqns.name_server.client import AsyncNameServerClient, NameServerClient
from mqns.remoting.call import Call
from rocketmq_remoting.cluster import ClusterInfo
from rocketmq_remoting.route import TopicRouteData
from testbed.network import Network
from testbed.virtual_time import run


def test_a_call_knows_what_it_results_in() -> None:
    assert_type(calls.get_route("TA"), Call[TopicRouteData | None])
    assert_type(calls.get_cluster_info(), Call[ClusterInfo])


def test_blocking_methods_return_it() -> None:
    def never_run(ns: NameServerClient) -> None:
        assert_type(ns.get_route("TA"), TopicRouteData | None)
        assert_type(ns.get_route(topic="TA"), TopicRouteData | None)
        assert_type(ns.wipe_write_perm("broker-a"), int)
        assert_type(ns.call(calls.get_cluster_info()), ClusterInfo)
        assert_type(ns.call_all(calls.get_config()), dict[str, dict[str, str]])
        ns.get_route()  # type: ignore[call-arg]
        ns.get_route(1)  # type: ignore[arg-type]
        ns.delete_topic("TA", claster="c1")  # type: ignore[call-arg]

    assert callable(never_run)


def test_asynchronous_methods_are_awaited_for_it() -> None:
    async def ask(ns: AsyncNameServerClient) -> None:
        assert_type(ns.get_cluster_info, Callable[[], Coroutine[Any, Any, ClusterInfo]])
        assert_type(await ns.get_kv_config("ns", key="k"), str | None)
        assert_type(await ns.call(calls.get_route("TA")), TopicRouteData | None)

    async def play() -> None:
        network = Network()
        network.serve("127.0.0.1:9876", lambda request: request.reply(22 if request.code == 101 else 17))
        async with AsyncNameServerClient("127.0.0.1:9876", connect=network.connect) as ns:
            await ask(ns)

    run(play())


def test_a_method_is_documented_as_its_function_is() -> None:
    assert NameServerClient.get_route.__doc__ == calls.get_route.__doc__
    assert AsyncNameServerClient.get_route is NameServerClient.get_route
