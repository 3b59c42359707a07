"""Asking for routes: what each answer does, and which watchers are called."""

from collections.abc import Awaitable, Callable

import pytest

from mqns.errors import ConnectError, ResponseError
from mqns.remoting.remoting_client import AsyncRemotingClient
from mqns.routes.poller import RoutePoller
from mqns.routes.table import CachedRoute, TopicRouteTable
from rocketmq_remoting.codes import RequestCode
from rocketmq_remoting.route import TopicRouteData
from testbed.virtual_time import now, run
from tests.logged import logged
from tests.mqns.cluster import NS, Cluster
from tests.mqns.routes.routes import group, queues, route

ROUTE = route(queues("a"), queues("b"), group("a", 0), group("b", 0))
SAME = route(queues("b"), queues("a"), group("b", 0), group("a", 0))
OTHER = route(queues("a"), group("a", 0))


class Scene:
    """Polling of T and whatever is watched, with a name server that knows T."""

    def __init__(self) -> None:
        self.cluster = Cluster(T=ROUTE)
        self.book = TopicRouteTable()
        self.remoting = AsyncRemotingClient(name_servers=[NS], connect=self.cluster.network.connect)
        self.topics = {"T"}
        self.polling = RoutePoller(self.remoting, self.book, lambda: self.topics)
        self.reported: list[tuple[str, TopicRouteData]] = []

    def tell(self, topic: str, cached_route: CachedRoute) -> None:
        self.reported.append((topic, cached_route.route))


def play(acts: Callable[[Scene], Awaitable[None]]) -> None:
    """Have a scene played on a virtual clock."""

    async def whole() -> None:
        scene = Scene()
        async with scene.remoting:
            await acts(scene)

    run(whole())


def test_a_poll_asks_for_all_topics_and_stores_their_routes() -> None:
    async def acts(scene: Scene) -> None:
        scene.topics = {"T", "U", "%RETRY%g"}
        scene.cluster.routes["U"] = OTHER
        await scene.polling.poll()
        assert sorted(topic for _, topic in scene.cluster.lookups) == ["%RETRY%g", "T", "U"]
        assert {frame.command.code for frame in scene.cluster.ns.frames} == {
            RequestCode.GET_ROUTEINFO_BY_TOPIC
        }
        cached_route = scene.book.cached_route("T")
        assert cached_route
        assert cached_route.route == ROUTE
        assert scene.book.cached_route("U")
        assert scene.book.addresses == {"a": {0: "a-0:10911"}, "b": {0: "b-0:10911"}}

    play(acts)


def test_many_topics_are_asked_for_side_by_side() -> None:
    async def acts(scene: Scene) -> None:
        scene.topics = {f"T{number}" for number in range(16)}
        scene.cluster.ns.answer = lambda _: None
        await scene.polling.poll()
        assert now() == 3

    play(acts)


@pytest.mark.parametrize(
    ("code", "body", "says"),
    [
        pytest.param(17, b"", "topic T has no route", id="no topic"),
        pytest.param(1, b"", "code 1: why", id="an error"),
        pytest.param(2, b"", "code 2: why", id="busy"),
        pytest.param(0, b"", "unreadable", id="no body"),
        pytest.param(0, b"[", "unreadable", id="garbage"),
        pytest.param(0, b'{"queueDatas":[{"perm":"x"}]}', "unreadable", id="a wrong member"),
    ],
)
def test_whatever_is_no_route_leaves_the_old_one(
    code: int, body: bytes, says: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def acts(scene: Scene) -> None:
        await scene.polling.poll()
        scene.polling.watch("T", scene.tell)
        before = scene.book.cached_route("T")
        scene.cluster.ns.answer = lambda request: request.reply(code, remark="why", body=body)
        await scene.polling.poll()
        assert before
        assert scene.book.cached_route("T") is before
        assert scene.reported == []

    play(acts)
    assert says in caplog.text


@pytest.mark.parametrize("how", ["refuses", "silent", "garbles"])
def test_a_name_server_that_fails_leaves_the_old_routes(how: str, caplog: pytest.LogCaptureFixture) -> None:
    async def acts(scene: Scene) -> None:
        await scene.polling.poll()
        if how == "refuses":
            scene.cluster.ns.vanish()
        scene.cluster.ns.answer = lambda _: b"GET / HTTP/1.1\r\n\r\n" if how == "garbles" else None
        await scene.polling.poll()
        assert scene.book.cached_route("T")
        scene.cluster.ns.refuses = False
        scene.cluster.ns.answer = Cluster(T=OTHER).ns.answer
        await scene.polling.poll()
        cached_route = scene.book.cached_route("T")
        assert cached_route
        assert cached_route.route == OTHER

    play(acts)
    assert "the route of topic T is not refreshed" in caplog.text


def test_no_route_of_a_retry_topic_is_nothing_to_log(caplog: pytest.LogCaptureFixture) -> None:
    async def acts(scene: Scene) -> None:
        scene.topics = {"%RETRY%g"}
        await scene.polling.poll()

    play(acts)
    assert not logged(caplog)


def test_a_watcher_gets_the_first_route_and_each_that_is_different() -> None:
    async def acts(scene: Scene) -> None:
        scene.polling.watch("T", scene.tell)
        await scene.polling.poll()
        scene.cluster.routes["T"] = SAME
        await scene.polling.poll()
        assert scene.reported == [("T", ROUTE)]
        scene.cluster.routes["T"] = OTHER
        await scene.polling.poll()
        assert scene.reported == [("T", ROUTE), ("T", OTHER)]

    play(acts)


def test_a_later_watcher_gets_what_the_next_poll_finds_unchanged() -> None:
    async def acts(scene: Scene) -> None:
        await scene.polling.poll()
        scene.polling.watch("T", scene.tell)
        assert scene.reported == []
        await scene.polling.poll()
        await scene.polling.poll()
        assert scene.reported == [("T", ROUTE)]

    play(acts)


def test_what_is_watched_is_polled_until_its_last_watcher_ends() -> None:
    async def acts(scene: Scene) -> None:
        scene.topics = set()
        ends = [scene.polling.watch("T", scene.tell) for _ in range(2)]
        ends[0]()
        ends[0]()
        assert scene.polling.watched == {"T"}
        await scene.polling.poll()
        assert scene.reported == [("T", ROUTE)]
        ends[1]()
        ends[1]()
        assert scene.polling.watched == set()
        scene.cluster.routes["T"] = OTHER
        await scene.polling.poll()
        assert len(scene.cluster.lookups) == 1

    play(acts)


def test_a_watcher_that_fails_does_not_stop_the_others(caplog: pytest.LogCaptureFixture) -> None:
    async def acts(scene: Scene) -> None:
        def fail(topic: str, cached_route: CachedRoute) -> None:
            raise ZeroDivisionError(topic)

        scene.polling.watch("T", fail)
        scene.polling.watch("T", scene.tell)
        await scene.polling.poll()
        scene.cluster.routes["T"] = OTHER
        await scene.polling.poll()
        assert [reported for _, reported in scene.reported] == [ROUTE, OTHER]

    play(acts)
    assert caplog.text.count("ZeroDivisionError: T") == 2


def test_a_watcher_may_end_while_it_is_called() -> None:
    async def acts(scene: Scene) -> None:
        def once(topic: str, cached_route: CachedRoute) -> None:
            scene.tell(topic, cached_route)
            ends.pop()()

        ends = [scene.polling.watch("T", once)]
        scene.polling.watch("T", scene.tell)
        await scene.polling.poll()
        assert len(scene.reported) == 2
        assert ends == []

    play(acts)


def test_one_route_can_be_asked_for_and_says_what_is_wrong() -> None:
    async def acts(scene: Scene) -> None:
        assert await scene.polling.fetch("T")
        assert not await scene.polling.fetch("unknown")
        scene.cluster.ns.answer = lambda request: request.reply(2, remark="busy")
        with pytest.raises(ResponseError, match=f"{NS} answered code 2: busy"):
            await scene.polling.fetch("T")
        scene.cluster.ns.vanish()
        with pytest.raises(ConnectError):
            await scene.polling.fetch("T")

    play(acts)


def test_a_topic_that_is_not_there_gets_the_route_of_the_default_topic() -> None:
    async def acts(scene: Scene) -> None:
        assert not await scene.polling.fetch_default("New")
        scene.cluster.routes["TBW102"] = route(
            queues("a", 8, 8), queues("b", 2, 8), group("a", 0), group("b", 0)
        )
        assert await scene.polling.fetch_default("New", queues=3)
        cached_route = scene.book.cached_route("New")
        assert cached_route
        assert [(data.read_queue_nums, data.write_queue_nums) for data in cached_route.route.queue_datas] == [
            (3, 3),
            (2, 2),
        ]
        assert scene.book.cached_route("TBW102") is None

    play(acts)
