"""broker.toml: what it means, and what is said of one that means nothing."""

import socket
from pathlib import Path

import pytest

from mqns.broker.config import BrokerConfig, TopicSettings, read_config
from mqns.errors import ConfigError
from rocketmq_remoting.remoting_command import SerializeType
from rocketmq_remoting.topic_queue_mapping import TopicQueueMappingInfo


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "broker.toml"


def test_an_empty_file_is_a_broker_of_java_s_defaults(path: Path) -> None:
    path.write_text("")
    config = read_config(path, {})
    assert config == BrokerConfig()
    assert config.broker_name == socket.gethostname()
    assert (config.broker_cluster_name, config.broker_id) == ("DefaultCluster", 0)
    assert (config.period_s, config.force_register, config.broker_permission) == (30, True, 6)
    assert config.name_servers == ()
    own = config.checked().broker_ip1
    assert config.checked().broker_addr == f"{own}:10911"
    assert own.count(".") == 3


def test_every_kind_of_field_is_read(path: Path) -> None:
    path.write_text(
        """
        brokerName = "broker-a"
        brokerIP1 = "10.0.0.1"
        brokerIP2 = "10.0.1.1"
        listenPort = 11911
        namesrvAddr = "10.0.0.9:9876;[::1]:9876"
        version = "4.9.7"
        serializeType = "ROCKETMQ"

        [[topics]]
        topicName = "TopicTest"

        [[topics]]
        topicName = "Orders"
        readQueueNums = 4
        writeQueueNums = 2
        perm = 4
        order = true

        [[staticTopics]]
        topic = "Static"
        totalQueues = 4
        epoch = 7
        currIdMap = { 0 = 0, 2 = 1 }
        """
    )
    config = read_config(path)
    assert (config.broker_addr, config.ha_server_addr) == ("10.0.0.1:11911", "10.0.1.1:11912")
    assert config.name_servers == ("10.0.0.9:9876", "[::1]:9876")
    assert (config.is_5x, config.ordinal, config.round_timeout_s) == (False, 407, 6)
    assert config.header_type is SerializeType.ROCKETMQ
    assert config.topics == (
        TopicSettings(topic_name="TopicTest", read_queue_nums=8, write_queue_nums=8),
        TopicSettings(topic_name="Orders", read_queue_nums=4, write_queue_nums=2, perm=4, order=True),
    )
    (static,) = config.static_topics
    assert static.mapping("broker-a") == TopicQueueMappingInfo("Static", "broker-a", 4, {0: 0, 2: 1}, epoch=7)


def test_the_environment_says_what_the_file_does_not(path: Path) -> None:
    environ = {"NAMESRV_ADDR": "10.0.0.1:9876", "ROCKETMQ_ZONE": "z1", "ROCKETMQ_ZONE_MODE": "true"}
    path.write_text("")
    config = read_config(path, environ)
    assert (config.name_servers, config.zone_name, config.zone_mode) == (("10.0.0.1:9876",), "z1", True)
    path.write_text('namesrvAddr = "10.0.0.2:9876"\nzoneName = "z2"')
    config = read_config(path, environ)
    assert (config.name_servers, config.zone_name, config.zone_mode) == (("10.0.0.2:9876",), "z2", False)


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        ("listenPort = 70000", "listenPort: expected int <= 65535"),
        ("listenPort = '10911'", "listenPort: expected int, got str"),
        ("brokerName = 'a b'", "brokerName: expected str without blanks, not empty"),
        ("brokerIP1 = ' '", "brokerIP1: expected str without blanks"),
        *(
            (
                f"{field} = '{host}'",
                f"{field}: '{host}' is no host; expected a name, an IPv4 address or [IPv6]",
            )
            for field in ("brokerIP1", "brokerIP2")
            for host in ("http://x", "::1", "x:1", "a/b")
        ),
        ("brokerIP1 = '[::1]'\nlistenPort = 0", "listenPort: expected int >= 1"),
        ("brokerPermission = 16", "brokerPermission: expected int <= 15"),
        ("version = '3.2.6'", "version: expected str like 4.9.7 or 5.5.0"),
        ("serializeType = 'XML'", "serializeType: expected str JSON or ROCKETMQ"),
        (
            "namesrvAddr = 'a:9876;b:'",
            "namesrvAddr: no port from 1 to 65535 in the address 'b:'; expected host:port;host:port",
        ),
        ("lisenPort = 1", "lisenPort: no such field; there are brokerName, brokerClusterName, brokerId"),
        ("[[topics]]\nperm = 6", "topics[0].topicName: is missing"),
        (
            "[[topics]]\ntopicName = 'a'\nprem = 6",
            "topics[0].prem: no such field; there are order, topicName",
        ),
        ("[[topics]]\ntopicName = 'a'\nperm = 'rw'", "topics[0].perm: expected int, got str"),
        (
            "[[topics]]\ntopicName = 'a'\ntopicFilterType = 'ANY'",
            "topics[0].topicFilterType: expected str SINGLE_TAG or MULTI_TAG",
        ),
        ("[[topics]]\ntopicName = 'a'\n[[topics]]\ntopicName = 'a'", "topics: 'a' is there twice"),
        ("[[staticTopics]]\ntopic = 'a'\ntotalQueues = 4", "staticTopics[0].currIdMap: is missing"),
        ("brokerName = ", "Invalid value (at end of document)"),
    ],
)
def test_an_error_names_the_field_and_what_is_allowed(path: Path, text: str, reported: str) -> None:
    path.write_text(text)
    with pytest.raises(ConfigError) as error:
        read_config(path)
    assert str(error.value).startswith(f"{path}: {reported}")


def test_a_file_that_cannot_be_read(path: Path) -> None:
    with pytest.raises(ConfigError, match=f"{path}: No such file or directory"):
        read_config(path)
    path.write_bytes(b"\xff")
    with pytest.raises(ConfigError, match="utf-8"):
        read_config(path)


def test_a_broker_made_in_code_is_checked_too() -> None:
    with pytest.raises(ConfigError, match="BrokerConfig: listenPort: expected int >= 1"):
        BrokerConfig(listen_port=0).checked()


@pytest.mark.parametrize(
    ("given_ms", "version", "round_timeout_s"),
    [(None, "4.8.0", 6), (None, "5.0.0", 24), (1500, "5.5.0", 1.5)],
)
def test_the_timeout_of_a_round(given_ms: int | None, version: str, round_timeout_s: float) -> None:
    assert (
        BrokerConfig(register_broker_timeout_mills=given_ms, version=version).round_timeout_s
        == round_timeout_s
    )
