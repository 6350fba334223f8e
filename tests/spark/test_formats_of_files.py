"""Tests output formats other than Parquet: the job finds the events of earlier increments."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kproto_pipeline.job import JobCounts, run
from kproto_pipeline.job.output_reader import file_options, output_reader
from kproto_pipeline.job.settings import DeadLetterSettings, OutputSettings

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics
from tests.spark.test_increments import send, settings
from tests.spark.test_job import BROKEN, event

pytestmark = pytest.mark.spark

#: Columns that a text format can have, in another order than the job's own.
COLUMNS = ("type", "id", "time", "timestamp", "source", "status", "offset")

#: Ids that a format of text may change: Spark's defaults trim blanks at both ends. No id has a
#: newline, because an event with a control character is invalid.
IDS = (
    *("a", " a", "a ", " a ", " ", "  ", "\u00a0", "\u3000a", "\u2028", "\ufeffa", "\U0001f600"),
    *('"', '""', "''", '"a"', 'a"b', "\\", "a\\", '\\"', '"\\', 'a,b\\"', '"a,b"', "\\n"),
    *(",", "a,b", "#a", "null", "NULL", "\\N", "NaN", "true", "1", "01", "1.0", "{}"),
    *("<a>", "&amp;", "]]>", "</ROW>", "a=b", "a/b", "%41"),
)


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


def event_with_id(text: str) -> ProducerRecord:
    attributes = {"specversion": "1.0", "id": text, "source": "/test", "type": "a"}
    headers = [(f"ce_{name}", value.encode()) for name, value in attributes.items()]
    return ProducerRecord(b"data", None, headers)


@pytest.mark.parametrize(
    ("kind", "options", "partition_by"),
    [
        ("csv", {}, ("status", "type")),
        pytest.param("csv", {"header": "true", "escape": '"'}, (), marks=OTHERS),
        pytest.param("csv", {"sep": "\t"}, ("status", "id"), marks=OTHERS),
        ("xml", {}, ("status", "type")),
        pytest.param("json", {}, ("status", "type"), marks=OTHERS),
        pytest.param("orc", {}, ("status", "type"), marks=OTHERS),
        pytest.param("parquet", {}, ("status", "type"), marks=OTHERS),
    ],
)
def test_every_id_is_kept_once(
    spark: Any,
    embedded_topics: Topics,
    topic_name: str,
    tmp_path: Path,
    kind: str,
    options: dict[str, str],
    partition_by: tuple[str, ...],
) -> None:
    """The second increment has each id of the first one again, before new ones."""
    first, events = IDS[::2], [event_with_id(text) for text in IDS]
    embedded_topics.fill(topic_name, events[::2])
    output = OutputSettings(
        str(tmp_path / "lake"), kind, partition_by, columns=COLUMNS, options=options
    )
    wanted = replace(settings(embedded_topics, topic_name, tmp_path), output=output)
    assert run(spark, wanted).counts.valid == len(first)
    send(embedded_topics, topic_name, *events)
    added = len(IDS) - len(first)
    assert run(spark, wanted).counts == JobCounts(len(IDS), added, 0, len(first), added)
    found = output_reader(spark, output, "id", "status").load(str(output.path))
    assert sorted(row["id"] for row in found.collect()) == sorted(IDS)


@pytest.mark.parametrize(
    "kind", ["orc", *(pytest.param(each, marks=OTHERS) for each in ("json", "parquet"))]
)
def test_increment_of_invalid_records_is_published(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path, kind: str
) -> None:
    """No row has a type, so the value of the partition folder `type` is null in all rows."""
    embedded_topics.fill(topic_name, [BROKEN[0]])
    wanted = settings(embedded_topics, topic_name, tmp_path)
    wanted = replace(wanted, output=replace(wanted.output, format=kind))
    assert run(spark, wanted).counts == JobCounts(1, 0, 1, 0, 1)
    send(embedded_topics, topic_name, event(1), BROKEN[0])
    assert run(spark, wanted).counts == JobCounts(2, 1, 1, 0, 2)
    send(embedded_topics, topic_name, event(1), event(2))
    assert run(spark, wanted).counts == JobCounts(2, 1, 0, 1, 1)


@pytest.mark.parametrize("kind", ["xml", pytest.param("orc", marks=OTHERS)])
def test_dead_letters_of_other_formats(
    spark: Any, embedded_topics: Topics, topic_name: str, tmp_path: Path, kind: str
) -> None:
    embedded_topics.fill(topic_name, [event(1), *BROKEN])
    wanted = replace(
        settings(embedded_topics, topic_name, tmp_path),
        dead_letters=DeadLetterSettings(str(tmp_path / "dead"), kind),
    )
    assert run(spark, wanted).counts == JobCounts(4, 1, 3, 0, 4)
    reader = spark.read.format(kind).schema("key binary, value binary, offset long")
    found = reader.options(**file_options(kind, {})).load(str(tmp_path / "dead")).collect()
    letters = [(row["key"], row["value"]) for row in sorted(found, key=lambda row: row["offset"])]
    assert letters == [(each.key, each.value) for each in BROKEN]
