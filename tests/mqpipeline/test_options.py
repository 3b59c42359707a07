import re

import pytest

from mqpipeline.options import OptionError, Options, load, without_effect

HERE = {"MQNS_PIPELINE_WAREHOUSE": "/data"}


def test_defaults() -> None:
    assert load(HERE) == Options(warehouse="/data")
    assert load(HERE).slo_of("c1") == 0.999


def test_the_environment_says() -> None:
    reported = load(
        {
            **HERE,
            "REDIS_URL": "redis://store",
            "MQNS_PIPELINE_NAMESPACES": "a, b",
            "MQNS_PIPELINE_SLO": "c1=0.9995, 0.99",
            "MQNS_PIPELINE_HEARTBEAT": "10000",
            "MQNS_PIPELINE_SERVE": "false",
        }
    )
    assert (reported.url, reported.namespaces, reported.heartbeat, reported.serve) == (
        "redis://store",
        ("a", "b"),
        10_000,
        False,
    )
    assert (reported.slo_of("c1"), reported.slo_of("c2")) == (0.9995, 0.99)


def test_the_command_line_wins() -> None:
    assert (
        load({**HERE, "MQNS_PIPELINE_URL": "redis://a"}, {"url": "redis://b", "consumer": None}).url
        == "redis://b"
    )
    assert load({**HERE, "REDIS_URL": "redis://a", "MQNS_PIPELINE_URL": "redis://b"}).url == "redis://b"


@pytest.mark.parametrize(
    ("name", "text", "why"),
    [
        ("SLO", "c1=1.5", "between 0 and 1"),
        ("SLO", "c1", "could not convert"),
        ("HEARTBEAT", "30s", "a number of ms, above 0"),
        ("SERVE", "perhaps", "neither true nor false"),
        ("MEMORY", "lots", "such as 2g"),
        ("MEMORY", "2048", "such as 2g"),
        ("MASTER", "locall", "spark://host:7077"),
        ("RETIRE_AFTER", "-1", "a number of ms, above 0"),
    ],
)
def test_what_cannot_be_used_is_named(name: str, text: str, why: str) -> None:
    with pytest.raises(OptionError, match=f"MQNS_PIPELINE_{name}={text}: .*{why}"):
        load({**HERE, f"MQNS_PIPELINE_{name}": text})


def test_there_must_be_a_warehouse() -> None:
    with pytest.raises(OptionError, match="MQNS_PIPELINE_WAREHOUSE"):
        load({})


def test_variables_that_are_no_option() -> None:
    given = {
        "MQNS_PIPELINE_SLOO": "1",
        "MQNS_PIPELINE_SLO": "*=0.9",
        "MQNS_PIPELINE_EVERY_MILLIS": "1",
        "PATH": "",
    }
    assert without_effect(given) == [
        "MQNS_PIPELINE_SLOO is no option and has no effect; did you mean MQNS_PIPELINE_SLO?"
    ]


@pytest.mark.parametrize(("given", "named"), [("a b{", "'a b{'"), ("", "empty")])
def test_a_namespace_that_can_be_none(given: str, named: str) -> None:
    with pytest.raises(OptionError, match=re.escape(named)):
        load({"MQNS_PIPELINE_WAREHOUSE": "/w"}, {"namespaces": given})
