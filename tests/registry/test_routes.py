"""What a request and the settings make of a stored route (RocketMQ pickupTopicRouteData, ZoneRouteRPCHook)."""

import pytest

from registry.errors import TopicNotFound
from registry.options.catalogue import Options
from registry.routes import SYNC_MEMBER_TOPIC, RouteView, StoredBroker, StoredRoute, must_wait, route_of
from rocketmq_remoting.route import BrokerData, QueueData
from tests.registry.brokers import mapping_info

TOPIC = "T"


def broker(
    name: str = "b1",
    ids: tuple[int, ...] = (0,),
    *,
    perm: int = 6,
    acting: bool = False,
    zone: str | None = None,
    topic: str = TOPIC,
) -> StoredBroker:
    data = BrokerData("c1", name, {number: f"{name}-{number}" for number in ids}, acting, zone)
    filters: dict[str, tuple[str, ...]] = {f"{name}-{number}": ("f:1",) for number in ids}
    return StoredBroker(data, QueueData(name, 8, 8, perm, 0), filters, mapping_info(topic, name))


def stored(*brokers: StoredBroker, topic: str = TOPIC, order: str | None = None) -> StoredRoute:
    return StoredRoute(topic, brokers, frozenset(one.data.broker_name for one in brokers), order)


@pytest.mark.parametrize(
    ("one", "supported", "ids"),
    [
        pytest.param(broker(ids=(1, 2), perm=4, acting=True), True, [0, 2], id="the smallest id as master"),
        pytest.param(broker(ids=(2, 10), perm=0, acting=True), True, [0, 10], id="by number, not text"),
        pytest.param(broker(ids=(1, 2), perm=4, acting=True), False, [1, 2], id="not supported"),
        pytest.param(broker(ids=(1, 2), perm=4), True, [1, 2], id="not enabled by the broker"),
        pytest.param(broker(ids=(1, 2), perm=6, acting=True), True, [1, 2], id="still writable"),
        pytest.param(broker(ids=(0, 1), perm=4, acting=True), True, [0, 1], id="a master is there"),
    ],
)
def test_acting_master(one: StoredBroker, supported: bool, ids: list[int]) -> None:
    route = route_of(stored(one), RouteView(acting_master=supported))
    assert list(route.broker_datas[0].broker_addrs) == ids
    assert one.data.broker_addrs[min(one.data.broker_addrs)] in route.broker_datas[0].broker_addrs.values()


def test_topics_of_member_synchronisation_have_no_acting_master() -> None:
    topic = "rmq_sys_SYNC_BROKER_MEMBER_b1"
    one = broker(ids=(1,), perm=4, acting=True, topic=topic)
    route = route_of(stored(one, topic=topic), RouteView.of(Options(support_acting_master=True), topic, None))
    assert list(route.broker_datas[0].broker_addrs) == [1]


@pytest.mark.parametrize(
    ("view", "names"),
    [
        pytest.param(RouteView(), ["near", "far", "none", "masterless"], id="no zone asked for"),
        pytest.param(
            RouteView(zone="Z1"), ["near", "masterless"], id="ignoring case; groups without master stay"
        ),
        pytest.param(RouteView(zone="z9"), ["masterless"], id="an unknown zone"),
        pytest.param(
            RouteView(zone="z9", acting_master=True), [], id="an acting master is one for the zone too"
        ),
    ],
)
def test_zones(view: RouteView, names: list[str]) -> None:
    route = route_of(
        stored(
            broker("near", zone="z1"),
            broker("far", zone="z2"),
            broker("none"),
            broker("masterless", (1,), perm=4, acting=True, zone="z2"),
        ),
        view,
    )
    assert [data.broker_name for data in route.broker_datas] == names
    assert [queues.broker_name for queues in route.queue_datas] == names
    assert {address.rpartition("-")[0] for address in route.filter_server_table} == set(names)
    assert set(route.topic_queue_mapping_by_broker or ()) == {"near", "far", "none", "masterless"}


@pytest.mark.parametrize(("asked", "found"), [(True, "b1:4"), (False, None)])
def test_order_configuration(asked: bool, found: str | None) -> None:
    assert route_of(stored(broker(), order="b1:4"), RouteView(order=asked)).order_topic_conf == found


def test_a_topic_without_brokers() -> None:
    with pytest.raises(TopicNotFound):
        route_of(stored(), RouteView())


@pytest.mark.parametrize(
    ("options", "topic", "view"),
    [
        pytest.param(Options(), "T", RouteView("z"), id="nothing set"),
        pytest.param(
            Options(support_acting_master=True), "T", RouteView("z", acting_master=True), id="acting"
        ),
        pytest.param(
            Options(support_acting_master=True),
            f"{SYNC_MEMBER_TOPIC}b",
            RouteView("z"),
            id="not for this topic",
        ),
        pytest.param(Options(order_message_enable=True), "T", RouteView("z", order=True), id="order"),
        pytest.param(Options(cluster_test=True), "T", RouteView("z", order=True), id="order in cluster test"),
    ],
)
def test_what_options_make_of_a_route(options: Options, topic: str, view: RouteView) -> None:
    assert RouteView.of(options, topic, "z") == view


@pytest.mark.parametrize(
    ("wanted", "age_s", "waits"),
    [(False, 0.0, False), (False, None, False), (True, None, True), (True, 44.9, True), (True, 45.0, False)],
)
def test_a_young_service_waits_if_it_is_to(wanted: bool, age_s: float | None, waits: bool) -> None:
    assert (
        must_wait(Options(need_wait_for_service=wanted, wait_seconds_for_service=45), lambda: age_s) is waits
    )
