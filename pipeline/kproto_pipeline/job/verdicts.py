"""What a job does with events, as native column expressions on DataFrames.

Owns the verdict on each record: valid, invalid or a duplicate. Knows no topic and no file. No
expression here runs Python code for a row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pyspark.sql import Window
from pyspark.sql import functions as sf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

__all__ = ["DUPLICATE", "INVALID", "STATUSES", "VALID", "status_count", "with_status"]

VALID: Final = "valid"
INVALID: Final = "invalid"
DUPLICATE: Final = "duplicate"
STATUSES: Final = (VALID, INVALID, DUPLICATE)


def with_status(events: DataFrame) -> DataFrame:
    """Events as the data source gives them, with a column `status`.

    A record with an `error` is invalid. Of events with the same source and id (CloudEvents 1.0:
    together they identify an event) the first by topic, partition and offset is valid and the
    others are duplicates, so the verdict does not depend on the order of reading.
    """
    place = sf.struct("topic", "partition", "offset")
    # Invalid records have no identity; by their place they do not all end up in one task.
    identity = [sf.col("source"), sf.col("id"), sf.when(sf.col("error").isNotNull(), place)]
    order = Window.partitionBy(*identity).orderBy("topic", "partition", "offset")
    status = (
        sf.when(sf.col("error").isNotNull(), INVALID)
        .when(sf.row_number().over(order) == 1, VALID)
        .otherwise(DUPLICATE)
    )
    return events.withColumn("status", status)


def status_count(status: str) -> Column:
    """How many rows have a status; an aggregate."""
    return sf.count(sf.when(sf.col("status") == status, 1))
