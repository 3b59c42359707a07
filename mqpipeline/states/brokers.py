"""A broker's states, of its slots: whether any of its members serves, and whether it can be written to."""

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from mqpipeline.states.combined import ABSENT, DRAINED, combined, within

BROKER = ("namespace", "cluster", "broker")
NAME = ("namespace", "broker")
"""What a topic is held by: the name, whatever cluster it is in."""


def broker_states(slots: DataFrame) -> DataFrame:
    """The states of each broker, of its slots' (`slot_states`)."""
    return slots.transform(combined, BROKER)


def writable_states(slots: DataFrame, broker_versions: DataFrame, as_of: int) -> DataFrame:
    """The states of each broker name as one that producers write to, without a break from 0 to `as_of`.

    It is PLANNED while drained, else what its master's slot is."""
    masters = slots.where("broker_id = 0").select(*NAME, "state", "from_ms", "to_ms")
    names = slots.select(*NAME).distinct()
    always = names.select(
        *NAME, F.lit(ABSENT).alias("state"), F.lit(0).alias("from_ms"), F.lit(as_of).alias("to_ms")
    )
    return masters.unionByName(_drains(broker_versions, as_of)).unionByName(always).transform(combined, NAME)


def _drains(broker_versions: DataFrame, as_of: int) -> DataFrame:
    """A drain that has an end is over then, whether or not that is recorded yet."""
    drained = broker_versions.where("drain is not null").select(
        *NAME, F.lit(DRAINED).alias("state"), "from_ms", F.least("to_ms", "drain.until_ms").alias("to_ms")
    )
    return within(drained, 0, as_of)
