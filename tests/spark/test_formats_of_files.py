"""Tests output formats other than Parquet: the job finds the events of earlier increments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kproto_pipeline.job import JobCounts, run
from kproto_pipeline.job.settings import OutputSettings

from tests.spark.conftest import Topics
from tests.spark.test_increments import send, settings
from tests.spark.test_job import BROKEN, event

pytestmark = pytest.mark.spark

#: Columns that a text format can have, in another order than the job's own.
COLUMNS = ("type", "id", "time", "timestamp", "source", "status", "offset")


OTHERS = pytest.mark.exhaustive


@pytest.mark.parametrize(
    ("kind", "options", "partition_by"),
    [
        ("csv", {}, ("status",)),
        pytest.param("csv", {"header": "true"}, (), marks=OTHERS),
        pytest.param("csv", {}, (), marks=OTHERS),
        pytest.param("json", {}, (), marks=OTHERS),
        pytest.param("xml", {"rowTag": "event"}, (), marks=OTHERS),
        pytest.param("orc", {}, ("status",), marks=OTHERS),
    ],
)
def test_events_of_an_earlier_increment_are_not_repeated(
    spark: Any,
    embedded_topics: Topics,
    topic_name: str,
    tmp_path: Path,
    kind: str,
    options: dict[str, str],
    partition_by: tuple[str, ...],
) -> None:
    embedded_topics.fill(topic_name, [event(1), event(2), BROKEN[0]])
    wanted = replace(
        settings(embedded_topics, topic_name, tmp_path),
        output=OutputSettings(
            str(tmp_path / "lake"), kind, partition_by, columns=COLUMNS, options=options
        ),
    )
    assert run(spark, wanted).counts == JobCounts(3, 2, 1, 0, 3)
    send(embedded_topics, topic_name, event(2), event(3))
    assert run(spark, wanted).counts == JobCounts(2, 1, 0, 1, 1)
