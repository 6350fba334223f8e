"""Tests which events are duplicates of each other, or of events that were written earlier."""

from __future__ import annotations

from typing import Any

import pytest
from kproto_pipeline.job.event_status import with_status

pytestmark = pytest.mark.spark

EVENT = (
    "source string, id string, error string, topic string, partition int, offset bigint, "
    "timestamp timestamp"
)
DAY = 86_400.0


def verdicts(
    spark: Any, events: list[tuple[str, str, int | None]], before: list[tuple[str, str, int | None]]
) -> list[str]:
    """Returns the status of each event, in order.

    `before` has the events that were written earlier. An event is (source, id, timestamp in s); its
    index in `events` is its offset.
    """
    rows = [(s, i, None, "t", 0, n, at) for n, (s, i, at) in enumerate(events)]
    seconds = EVENT.replace("timestamp timestamp", "timestamp bigint")
    frame = spark.createDataFrame(rows, seconds)
    frame = frame.withColumn("timestamp", frame["timestamp"].cast("timestamp"))
    earlier = spark.createDataFrame(before, "source string, id string, timestamp bigint")
    earlier = earlier.withColumn("timestamp", earlier["timestamp"].cast("timestamp"))
    judged = with_status(frame, earlier, DAY).orderBy("offset").collect()
    return [row["status"] for row in judged]


@pytest.mark.exhaustive
def test_event_written_within_the_window_is_a_duplicate(spark: Any) -> None:
    day = int(DAY)
    before = [("a", "1", 10 * day), ("a", "1", 12 * day), ("a", "2", None), ("b", "1", 0)]
    events: list[tuple[tuple[str, str, int | None], str]] = [
        (("a", "1", 11 * day), "duplicate"),  # a duplicate of both earlier rows, in a single row
        (("a", "3", 10 * day), "valid"),
        (("c", "1", 10 * day), "valid"),
        (("a", "2", 10 * day), "duplicate"),  # the earlier row has no timestamp
        (("b", "1", None), "duplicate"),
    ]
    assert verdicts(spark, [e for e, _ in events], before) == [v for _, v in events]
    for at, expected in ((9, "duplicate"), (13, "duplicate"), (14, "valid"), (8, "valid")):
        assert verdicts(spark, [("a", "1", at * day)], before) == [expected], at


def test_events_with_equal_ends_of_their_ids_differ(spark: Any) -> None:
    ends = ("", "1", "größer12", "0-größer12", "1-größer12", "größer13", "\U0001f600" * 9)
    events = [(source, id_, "t", at, 0) for at, source in enumerate("ab") for id_ in ends]
    rows = [(*event[:2], None, *event[2:4], n) for n, event in enumerate([*events, *events])]
    columns = EVENT.removesuffix(", timestamp timestamp")
    frame = spark.createDataFrame(rows[::-1], columns).repartition(3)
    judged = with_status(frame).orderBy("partition", "offset").collect()
    assert len({(row["source"], row["id"]) for row in judged}) == len(events)
    valid = [row["offset"] for row in judged if row["status"] == "valid"]
    assert sorted(valid) == list(range(len(events)))
    assert {row["status"] for row in judged} == {"valid", "duplicate"}
