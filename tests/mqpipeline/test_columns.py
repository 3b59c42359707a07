"""Every column has a meaning, and the page of them is as the schemas are."""

from pyspark.sql import SparkSession

from mqpipeline.columns import HERE, MEANINGS, columns
from mqpipeline.schemas import EVENTS, HEARTBEATS
from mqpipeline.warehouse import DERIVED
from tools.columns_page import PAGE, page

TABLES = (EVENTS, HEARTBEATS, *DERIVED)


def test_the_page_is_made_of_the_schemas() -> None:
    assert PAGE.read_text() == page(), "run: make generate"


def test_no_column_is_left_out(spark: SparkSession) -> None:
    for table in TABLES:
        shown = [name for name, _ in columns(table)]
        assert sorted(shown) == sorted(table.stored_schema.names), table.name


def test_no_meaning_is_of_nothing() -> None:
    named = {(table.name, name) for table in TABLES for name, _ in columns(table)}
    assert HERE.keys() <= named
    assert MEANINGS.keys() <= {name for _, name in named - HERE.keys()}
