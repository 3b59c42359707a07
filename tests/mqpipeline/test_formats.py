"""Which Spark session and which tables the options give."""

import sys

import pytest
from pyspark.sql import SparkSession

from mqpipeline import delta, formats
from mqpipeline.options import OptionError, Options, load
from tests.mqpipeline.runs import need_delta

HERE = {"MQNS_PIPELINE_WAREHOUSE": "/data"}


class Asked(Exception):
    """What a session was asked for."""


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    """The settings of sessions that were asked for; there is none."""
    found: dict[str, str] = {}

    def spark_session(_: str, settings: dict[str, str] | None = None, *, own: dict[str, str]) -> SparkSession:
        found.update({**own, **(settings or {})})
        raise Asked

    monkeypatch.setattr(formats, "spark_session", spark_session)
    return found


@pytest.mark.parametrize(
    ("reported", "settings"),
    [
        pytest.param({}, {}, id="Parquet"),
        pytest.param({"FORMAT": "delta"}, {**delta.SETTINGS, **delta.packages()}, id="Delta, from Maven"),
        pytest.param(
            {"FORMAT": "delta", "JARS": "/a.jar,/b.jar"},
            {**delta.SETTINGS, "spark.jars": "/a.jar,/b.jar"},
            id="Delta, from files",
        ),
    ],
)
def test_settings_of_the_spark_session(
    asked: dict[str, str], reported: dict[str, str], settings: dict[str, str]
) -> None:
    options = load({**HERE, **{f"MQNS_PIPELINE_{name}": value for name, value in reported.items()}})
    with pytest.raises(Asked):
        formats.session("test", options)
    assert asked == {"spark.master": "local[*]", "spark.driver.memory": "2g", **settings}


def test_what_the_options_say_wins_over_a_size(asked: dict[str, str]) -> None:
    with pytest.raises(Asked):
        formats.session("test", load(HERE), {"spark.master": "local[1]", "spark.sql.shuffle.partitions": "1"})
    assert asked == {
        "spark.master": "local[*]",
        "spark.driver.memory": "2g",
        "spark.sql.shuffle.partitions": "1",
    }


def test_the_jar_is_of_the_versions_that_are_installed() -> None:
    assert delta.packages()["spark.jars.packages"] == "io.delta:delta-spark_4.2_2.13:4.4.0"


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "delta", None)
    monkeypatch.delitem(sys.modules, "mqpipeline.delta")
    monkeypatch.delattr("mqpipeline.delta")
    with pytest.raises(OptionError, match=r"FORMAT=delta: .* mqpipeline\[delta\]"):
        formats.session("test", Options(warehouse="/data", format="delta"))


def test_without_the_jar(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> None:
    need_delta(spark)
    monkeypatch.setattr(formats, "spark_session", lambda *_, **__: spark)
    monkeypatch.setattr(spark, "stop", lambda: None)
    assert formats.session("test", Options(warehouse="/data", format="delta")) is spark
    monkeypatch.setattr(delta, "EXTENSION", "io.delta.Missing")
    with pytest.raises(OptionError, match="Spark lacks Delta's jars: MQNS_PIPELINE_JARS"):
        formats.session("test", Options(warehouse="/data", format="delta"))
