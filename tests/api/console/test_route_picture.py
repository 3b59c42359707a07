"""Where a route's picture has its boxes and lines."""

import re
from itertools import pairwise

import pytest

from api.console.route_picture import (
    BROKERS_MOST,
    MEMBERS_MOST,
    NAME_CELLS,
    Box,
    Picture,
    picture_of,
    shortened,
)
from api.console.topic_route import BrokerRow, topic_route

ROUTE = {
    "brokerDatas": [
        {"brokerName": "b", "cluster": "c2", "brokerAddrs": {"0": "h:1"}, "zoneName": "z"},
        {"brokerName": "a", "cluster": "c1", "brokerAddrs": {"10": "h:3", "2": "h:2"}},
        {"brokerName": "unlisted", "cluster": "c1", "brokerAddrs": {"0": "h:4"}},
    ],
    "queueDatas": [
        {"brokerName": "a", "readQueueNums": 8, "writeQueueNums": 4, "perm": 6, "topicSysFlag": 1},
        {"brokerName": "b", "readQueueNums": 2, "writeQueueNums": 3, "perm": 6, "topicSysFlag": 0},
    ],
    "topicQueueMappingByBroker": {"b": {}},
}


def a_row(
    name: str = "broker-a", cluster: str = "c1", members: int = 2, perm: int = 6, *, drained: bool = False
) -> BrokerRow:
    addresses = tuple((number, f"10.0.0.{number}:10911") for number in range(members))
    return BrokerRow(name, cluster, None, addresses, 8, 4, perm, 0, drained, mapped=False)


def boxes(picture: Picture) -> list[Box]:
    """Return the boxes that must not overlap: of the topic, brokers and members."""
    brokers = [broker for cluster in picture.clusters for broker in cluster.brokers]
    members = [member.box for broker in brokers for member in broker.members]
    return [picture.topic, *(broker.box for broker in brokers), *members]


def inside(inner: Box, outer: Box) -> bool:
    return (
        outer.x <= inner.x
        and outer.y <= inner.y
        and inner.right <= outer.right
        and inner.bottom <= outer.bottom
    )


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([], id="no broker"),
        pytest.param([a_row()], id="one"),
        pytest.param([a_row(members=0)], id="without a member"),
        pytest.param([a_row(members=9), a_row("b")], id="of many members"),
        pytest.param(
            [a_row(str(number), f"c{number % 3}", number % 7) for number in range(40)], id="many brokers"
        ),
    ],
)
def test_no_box_lies_on_another(rows: list[BrokerRow]) -> None:
    picture = picture_of("TopicA", rows)
    drawn = boxes(picture)
    whole = Box(0, 0, picture.width, picture.height)
    assert all(inside(box, whole) for box in drawn)
    for place, one in enumerate(drawn):
        for other in drawn[place + 1 :]:
            apart = (
                one.right <= other.x or other.right <= one.x or one.bottom <= other.y or other.bottom <= one.y
            )
            assert apart, (one, other)
    for cluster in picture.clusters:
        assert inside(cluster.box, whole)
        assert all(inside(broker.box, cluster.box) for broker in cluster.brokers)
        assert all(inside(member.box, cluster.box) for broker in cluster.brokers for member in broker.members)
    for upper, lower in pairwise(picture.clusters):
        assert upper.box.bottom < lower.box.y


def test_lines_lead_from_the_topic_to_brokers_and_from_these_to_members() -> None:
    picture = picture_of("TopicA", [a_row(str(number), f"c{number % 3}", number % 4) for number in range(20)])
    for broker in (broker for cluster in picture.clusters for broker in cluster.brokers):
        assert ends(broker.line) == (
            (picture.topic.right, picture.topic.middle),
            (broker.box.x, broker.box.middle),
        )
        for member in broker.members:
            assert ends(member.line) == (
                (broker.box.right, broker.box.middle),
                (member.box.x, member.box.middle),
            )


def ends(path: str) -> tuple[tuple[int, int], tuple[int, int]]:
    """Return where a path begins and ends, following its commands M, H, V, q and C."""
    at = begin = (0, 0)
    for command, text in re.findall("([MHVqC])([-0-9 ]+)", path):
        values = [int(number) for number in text.split()]
        match command:
            case "M":
                begin = at = (values[0], values[1])
            case "H":
                at = (values[0], at[1])
            case "V":
                at = (at[0], values[0])
            case "q":
                at = (at[0] + values[2], at[1] + values[3])
            case _:
                at = (values[4], values[5])
    return begin, at


def test_what_is_too_much_is_counted() -> None:
    rows = [a_row(f"broker-{number:02}", members=MEMBERS_MOST + 3) for number in range(BROKERS_MOST + 5)]
    picture = picture_of("TopicA", rows)
    brokers = [broker for cluster in picture.clusters for broker in cluster.brokers]
    assert (len(brokers), picture.left_out) == (BROKERS_MOST, 5)
    assert [broker.name for broker in brokers] == [row.name for row in rows[:BROKERS_MOST]]
    assert len(brokers[0].members) == MEMBERS_MOST + 1
    assert brokers[0].members[-1].role == "and 3 more"
    assert "35 brokers of 1 cluster" in picture.description


@pytest.mark.parametrize(
    ("row", "state", "words"),
    [
        pytest.param(a_row(), "open", "read and write", id="open"),
        pytest.param(a_row(perm=4), "limited", "read only", id="read only"),
        pytest.param(a_row(perm=2), "open", "write only", id="write only"),
        pytest.param(a_row(perm=8), "limited", "neither read nor write", id="neither"),
        pytest.param(a_row(perm=4, drained=True), "drained", "drained, read only", id="drained"),
        pytest.param(a_row(members=0), "limited", "read and write, no master", id="no master"),
    ],
)
def test_the_state_of_a_broker_is_drawn_and_said(row: BrokerRow, state: str, words: str) -> None:
    broker = picture_of("TopicA", [row]).clusters[0].brokers[0]
    assert (broker.state, broker.words, broker.queues) == (state, words, "8 to read, 4 to write")


def test_members_are_masters_and_slaves_by_id() -> None:
    members = picture_of("TopicA", [a_row(members=2)]).clusters[0].brokers[0].members
    assert [(member.role, member.address) for member in members] == [
        ("master", "10.0.0.0:10911"),
        ("slave 1", "10.0.0.1:10911"),
    ]


@pytest.mark.parametrize(
    ("text", "cells", "shown"),
    [
        pytest.param("broker-a", 8, "broker-a", id="that fits"),
        pytest.param("broker-ab", 8, "brok…-ab", id="without its middle"),
        pytest.param("名前名前名前", 8, "名前…前", id="wide characters"),
        pytest.param("", 8, "", id="empty"),
    ],
)
def test_a_long_name_keeps_its_ends(text: str, cells: int, shown: str) -> None:
    assert shortened(text, cells) == shown


def test_long_names_are_whole_beside_the_picture() -> None:
    name = "x" * 200
    broker = picture_of(name, [a_row(name)]).clusters[0].brokers[0]
    assert (len(broker.text), broker.name) == (NAME_CELLS, name)


def test_rows_of_a_route() -> None:
    route = topic_route(ROUTE, [{"brokerName": "b"}, {"brokerName": "other"}])
    first, second = route.rows
    assert (first.name, first.addresses, first.zone, first.flag, first.drained, first.mapped) == (
        *("a", ((2, "h:2"), (10, "h:3")), None),
        *(1, False, False),
    )
    assert (second.name, second.has_master, second.zone, second.drained, second.mapped) == (
        "b",
        True,
        "z",
        True,
        True,
    )
    assert route.clusters == ("c1", "c2")
    assert (route.writable, route.write_queues, route.read_queues, route.mapped) == (1, 3, 10, 1)
    assert (route.row("a"), route.row("c")) == (first, None)
    assert topic_route({}, ()).rows == ()
