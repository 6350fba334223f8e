"""Returns the rows of a topic as JSON data, as the JVM connector reads them."""

from __future__ import annotations

from typing import Any


def run(spark: Any, task: dict[str, Any]) -> list[Any]:
    """Returns key, value, headers, partition and offset of each row, in partition and offset order.

    Keys and values are in Base64, header values in hex; each may be None.
    """
    frame = spark.read.format("kafka").options(**task["options"]).load()
    rows = frame.selectExpr("*", "base64(key) as k", "base64(value) as v").orderBy(
        "partition", "offset"
    )
    return [
        [
            row["k"],
            row["v"],
            [
                [each["key"], None if each["value"] is None else each["value"].hex()]
                for each in row["headers"] or ()
            ],
            row["partition"],
            row["offset"],
        ]
        for row in rows.collect()
    ]
