"""A broker's table of topics, and what becomes of it."""

from pathlib import Path

import pytest
from msgspec.structs import replace

from mqns.broker.config import BrokerConfig, StaticTopicSettings
from mqns.broker.topics import (
    full_batch,
    increment_batch,
    initial_table,
    split_batches,
    with_broker_permission,
)
from mqns.broker.versions import StoredVersion, read_stored_version, write_stored_version
from rocketmq_remoting.data_version import DataVersion
from rocketmq_remoting.topic_config import TopicConfig
from tests.mqns.broker.scene import TA, TB, broker

STATIC = StaticTopicSettings(topic="TS", total_queues=4, curr_id_map={0: 0})
BARE = broker(starting_topics=False, broker_name="b")


def perms(config: BrokerConfig) -> dict[str, int]:
    return {name: topic.perm for name, topic in initial_table(config, None, 0).topics.items()}


def test_options_take_topics_or_their_permissions_from_a_broker() -> None:
    usual = perms(broker())
    assert (usual["TBW102"], usual["DefaultCluster"], usual["broker-a"]) == (7, 7, 7)
    less = perms(
        broker(auto_create_topic_enable=False, cluster_topic_enable=False, broker_topic_enable=False)
    )
    assert "TBW102" not in less
    assert (less["DefaultCluster"], less["broker-a"]) == (1, 1)
    assert perms(broker(trace_topic_enable=True))["RMQ_SYS_TRACE_TOPIC"] == 6
    assert perms(BARE) == {"TA": 6, "TB": 6}


def test_configured_topics_come_before_a_broker_s_own() -> None:
    own = replace(TA, topic_name="SELF_TEST_TOPIC", perm=4)
    assert perms(broker(topics=(own,)))["SELF_TEST_TOPIC"] == 4


def test_each_change_has_the_next_version() -> None:
    table = initial_table(BARE, None, 1000)
    assert table.version == DataVersion(0, 1000, 0)
    added = table.with_topics([TopicConfig("TC")], 2000)
    assert (added.version, set(added.topics)) == (DataVersion(0, 2000, 1), {"TA", "TB", "TC"})
    replaced = added.with_topics([TopicConfig("TC", perm=4)], 2000)
    assert (replaced.version.counter, replaced.topics["TC"].perm) == (2, 4)
    removed = replaced.without_topic("TC", 1500)
    assert (removed.version, set(removed.topics)) == (DataVersion(0, 1500, 3), {"TA", "TB"})
    assert removed.without_topic("TC", 9) is removed


def test_order_topics_are_those_listed_and_no_others() -> None:
    table = initial_table(BARE, None, 1000)
    ordered = table.with_order({"TA", "elsewhere"}, 2000)
    assert ({t.topic_name for t in ordered.topics.values() if t.order}, ordered.version.counter) == (
        {"TA"},
        1,
    )
    assert ordered.with_order({"TA"}, 3000) is ordered
    assert not any(topic.order for topic in ordered.with_order((), 3000).topics.values())


@pytest.mark.parametrize(
    ("version", "own", "perm", "announced"),
    [
        ("4.9.7", 6, 7, 7),
        ("4.9.7", 4, 7, 4),
        ("4.9.7", 2, 4, 2),
        ("5.5.0", 6, 7, 7),
        ("5.5.0", 4, 7, 4),
        ("5.5.0", 2, 4, 0),
        ("5.5.0", 4, 1, 0),
    ],
)
def test_a_restricted_broker_restricts_its_topics(version: str, own: int, perm: int, announced: int) -> None:
    config = broker(version=version, broker_permission=own, topics=(replace(TA, perm=perm),))
    assert with_broker_permission(TopicConfig("TA", perm=perm), config).perm == announced
    assert full_batch(initial_table(config, None, 0), config).topics["TA"].perm == announced


def test_a_table_is_split_into_batches_and_a_rest() -> None:
    names = [f"T{number}" for number in range(7)]
    topics = tuple(replace(TA, topic_name=name) for name in names)
    config = replace(BARE, topics=topics, static_topics=(STATIC,), split_registration_size=3)
    pieces = split_batches(initial_table(config, None, 0), config)
    assert [len(piece.topics) for piece in pieces] == [3, 3, 1]
    assert sorted(name for piece in pieces for name in piece.topics) == names
    assert [list(piece.mappings) for piece in pieces] == [[], [], ["TS"]]
    even = replace(config, topics=topics[:6])
    assert [len(piece.topics) for piece in split_batches(initial_table(even, None, 0), even)] == [3, 3, 0]


def test_an_increment_carries_the_mapping_of_its_topic() -> None:
    config = replace(BARE, topics=(TA, replace(TB, topic_name="TS")), static_topics=(STATIC,))
    table = initial_table(config, None, 0)
    assert set(increment_batch(table, config, ["TA"]).mappings) == set()
    assert set(increment_batch(table, config, ["TS"]).mappings) == {"TS"}
    assert not table.without_topic("TS", 0).mappings


def test_a_kept_version_is_that_of_the_same_table_only() -> None:
    before = initial_table(BARE, None, 1000).with_topics([TopicConfig("TC")], 2000)
    same = replace(BARE, topics=(TA, TB, TopicConfig("TC")))
    assert initial_table(same, before.stored(), 9000).version == before.version
    assert initial_table(BARE, before.stored(), 9000).version == DataVersion(0, 9000, 2)


def test_a_saved_version_is_loaded_again(tmp_path: Path) -> None:
    path = tmp_path / "new" / "version.json"
    assert read_stored_version(path) is None
    stored = StoredVersion(DataVersion(0, 1000, 7), "digest")
    write_stored_version(path, stored)
    write_stored_version(path, stored)
    assert read_stored_version(path) == stored
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.parametrize("content", [b"", b"{", b"\xff", b"{}", b'{"dataVersion":{},"tableDigest":1}'])
def test_an_unreadable_file_is_ignored(
    tmp_path: Path, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "version.json"
    path.write_bytes(content)
    assert read_stored_version(path) is None
    assert "a new data version is made" in caplog.text
