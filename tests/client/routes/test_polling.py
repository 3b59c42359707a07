"""Asking for routes: what each answer does, and who is told."""

from collections.abc import Awaitable, Callable

import pytest

from client.errors import AnswerError, ConnectError
from client.routes.book import Known, RouteBook
from client.routes.polling import RoutePolling
from client.wire.remoting_client import AsyncRemotingClient
from remoting.codes import RequestCode
from remoting.route import TopicRouteData
from tests.client.cluster import NS, Cluster
from tests.client.routes.routes import group, queues, route
from tests.harness.virtual_time import now, run

ROUTE = route(queues("a"), queues("b"), group("a", 0), group("b", 0))
SAME = route(queues("b"), queues("a"), group("b", 0), group("a", 0))
OTHER = route(queues("a"), group("a", 0))


class Scene:
    """Polling of T and whatever is watched, with a name server that knows T."""

    def __init__(self) -> None:
        self.cluster = Cluster(T=ROUTE)
        self.book = RouteBook()
        self.remoting = AsyncRemotingClient(name_servers=[NS], connect=self.cluster.network.connect)
        self.topics = {"T"}
        self.polling = RoutePolling(self.remoting, self.book, lambda: self.topics)
        self.told: list[tuple[str, TopicRouteData]] = []

    def tell(self, topic: str, known: Known) -> None:
        self.told.append((topic, known.route))


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
        known = scene.book.known("T")
        assert known
        assert known.route == ROUTE
        assert scene.book.known("U")
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
        pytest.param(17, b"", "no route of topic T", id="no topic"),
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
        before = scene.book.known("T")
        scene.cluster.ns.answer = lambda request: request.reply(code, remark="why", body=body)
        await scene.polling.poll()
        assert before
        assert scene.book.known("T") is before
        assert scene.told == []

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
        assert scene.book.known("T")
        scene.cluster.ns.refuses = False
        scene.cluster.ns.answer = Cluster(T=OTHER).ns.answer
        await scene.polling.poll()
        known = scene.book.known("T")
        assert known
        assert known.route == OTHER

    play(acts)
    assert "the route of topic T stays as it was" in caplog.text


def test_no_route_of_a_retry_topic_is_nothing_to_log(caplog: pytest.LogCaptureFixture) -> None:
    async def acts(scene: Scene) -> None:
        scene.topics = {"%RETRY%g"}
        await scene.polling.poll()

    play(acts)
    assert caplog.text == ""


def test_a_watcher_is_told_the_first_route_and_each_that_is_different() -> None:
    async def acts(scene: Scene) -> None:
        scene.polling.watch("T", scene.tell)
        await scene.polling.poll()
        scene.cluster.routes["T"] = SAME
        await scene.polling.poll()
        assert scene.told == [("T", ROUTE)]
        scene.cluster.routes["T"] = OTHER
        await scene.polling.poll()
        assert scene.told == [("T", ROUTE), ("T", OTHER)]

    play(acts)


def test_one_who_begins_to_watch_later_is_told_what_the_next_poll_finds_unchanged() -> None:
    async def acts(scene: Scene) -> None:
        await scene.polling.poll()
        scene.polling.watch("T", scene.tell)
        assert scene.told == []
        await scene.polling.poll()
        await scene.polling.poll()
        assert scene.told == [("T", ROUTE)]

    play(acts)


def test_what_is_watched_is_polled_until_nobody_watches_it() -> None:
    async def acts(scene: Scene) -> None:
        scene.topics = set()
        ends = [scene.polling.watch("T", scene.tell) for _ in range(2)]
        ends[0]()
        ends[0]()
        assert scene.polling.watched == {"T"}
        await scene.polling.poll()
        assert scene.told == [("T", ROUTE)]
        ends[1]()
        ends[1]()
        assert scene.polling.watched == set()
        scene.cluster.routes["T"] = OTHER
        await scene.polling.poll()
        assert len(scene.cluster.lookups) == 1

    play(acts)


def test_a_watcher_that_fails_keeps_nobody_from_being_told(caplog: pytest.LogCaptureFixture) -> None:
    async def acts(scene: Scene) -> None:
        def fail(topic: str, known: Known) -> None:
            raise ZeroDivisionError(topic)

        scene.polling.watch("T", fail)
        scene.polling.watch("T", scene.tell)
        await scene.polling.poll()
        scene.cluster.routes["T"] = OTHER
        await scene.polling.poll()
        assert [told for _, told in scene.told] == [ROUTE, OTHER]

    play(acts)
    assert caplog.text.count("ZeroDivisionError: T") == 2


def test_a_watcher_may_end_while_it_is_told() -> None:
    async def acts(scene: Scene) -> None:
        def once(topic: str, known: Known) -> None:
            scene.tell(topic, known)
            ends.pop()()

        ends = [scene.polling.watch("T", once)]
        scene.polling.watch("T", scene.tell)
        await scene.polling.poll()
        assert len(scene.told) == 2
        assert ends == []

    play(acts)


def test_one_route_can_be_asked_for_and_says_what_is_wrong() -> None:
    async def acts(scene: Scene) -> None:
        assert await scene.polling.fetch("T")
        assert not await scene.polling.fetch("unknown")
        scene.cluster.ns.answer = lambda request: request.reply(2, remark="busy")
        with pytest.raises(AnswerError, match=f"{NS} answered code 2: busy"):
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
        known = scene.book.known("New")
        assert known
        assert [(data.read_queue_nums, data.write_queue_nums) for data in known.route.queue_datas] == [
            (3, 3),
            (2, 2),
        ]
        assert scene.book.known("TBW102") is None

    play(acts)
