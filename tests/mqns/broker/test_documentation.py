"""docs/agent.md: its examples run, and its tables name what there is."""

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import mqns.broker
from mqns.broker import BrokerConfig, read_config
from mqns.broker.config import StaticTopicSettings, TopicSettings
from mqns.broker.events import BrokerEvent
from testbed.nameserver import ONE_WORKER, NameServer

PAGE = Path(__file__).parents[3] / "docs" / "agent.md"
TEXT = PAGE.read_text()
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_ADDRESS = "127.0.0.1:9876"
PRINTED = re.compile(
    r"Registered\(address='\S+', master_addr=None, ha_server_addr=None, order_topics=None\)\n"
    r"0 \['BenchmarkTest', 'DefaultCluster'\]\n"
    r"Unregistered\(address='\S+'\)\n"
)


def blocks(language: str) -> list[str]:
    return [text for kind, text in BLOCK.findall(TEXT) if kind == language]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    server = NameServer(tmp_path_factory.mktemp("server"), ONE_WORKER).start()
    yield f"127.0.0.1:{server.port}"
    server.stop()


def test_the_examples_run(address: str, capsys: pytest.CaptureFixture[str]) -> None:
    examples = blocks("python")
    assert len(examples) == 2
    for example in examples:
        exec(compile(example.replace(SHOWN_ADDRESS, address), str(PAGE), "exec"), {"__name__": "__main__"})
    assert PRINTED.fullmatch(capsys.readouterr().out)


def test_the_file_is_read(tmp_path: Path) -> None:
    (text,) = blocks("toml")
    path = tmp_path / "broker.toml"
    path.write_text(text)
    config = read_config(path, {})
    assert (config.name_servers, [topic.topic_name for topic in config.topics]) == (
        (SHOWN_ADDRESS,),
        ["TopicTest", "Orders"],
    )
    assert tomllib.loads(text)["topics"][1]["perm"] == config.topics[1].perm


@pytest.mark.parametrize("table", [BrokerConfig, TopicSettings, StaticTopicSettings])
def test_every_field_is_described(table: type[msgspec.Struct]) -> None:
    settings = TEXT[TEXT.index("## Settings") :]
    names = {field.encode_name for field in msgspec.structs.fields(table)}
    assert {name for name in names if f"`{name}`" not in settings} == set()
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", settings, re.MULTILINE)
    assert {name for row in rows for name in re.findall(r"\w+", row)} <= {
        field.encode_name for field in msgspec.structs.fields(BrokerConfig)
    }


def test_every_event_is_described() -> None:
    kinds = {kind.__name__ for kind in BrokerEvent.__args__}
    assert {kind for kind in kinds if f"| `{kind}(" not in TEXT} == set()
    assert kinds <= set(mqns.broker.__all__)
