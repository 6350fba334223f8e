"""Tests the oldest supported PySpark on the oldest Python, and the newest on the newest Python.

`make spark-ends` runs only this module.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from kproto.client import ProducerRecord
from tests.spark.conftest import Topics
from tests.support.spark_programs import spark_programs
from tools.spark.environments import NEWEST_PYSPARK, OLDEST_PYSPARK, python_with_pyspark
from tools.spark.pythons import ends_of_pythons

pytestmark = [pytest.mark.spark, pytest.mark.kafka, pytest.mark.slow, pytest.mark.exhaustive]

HEADERS = [
    ("ce_specversion", b"1.0"),
    ("ce_id", b"one"),
    ("ce_source", b"/here"),
    ("ce_type", b"made"),
]
MILLISECONDS = 1_700_000_000_000
STEPS = ["batch", "stream", "sink", "stream_sink"]
FOUND = {"batch": [300, 3 * 4_950, 3], "stream": 300, "sink": 100, "stream_sink": 300}


@pytest.mark.parametrize("end", ["oldest", pytest.param("newest", marks=pytest.mark.thorough)])
def test_oldest_and_newest_pyspark(
    spark_environment: None, topics: Topics, topic_name: str, tmp_path: Path, end: str
) -> None:
    oldest, newest = ends_of_pythons()
    if end == "oldest":
        version, python = OLDEST_PYSPARK, python_with_pyspark(OLDEST_PYSPARK, base=oldest)
    else:
        version = NEWEST_PYSPARK
        python = python_with_pyspark(NEWEST_PYSPARK, base=newest, connect=True)
    numbered = [ProducerRecord(b"%d" % n, b"k", partition=n % 3) for n in range(300)]
    topics.fill(topic_name, numbered, partitions=3)
    for written in ("sink", "stream-sink"):
        topics.fill(f"{topic_name}-{written}", [], partitions=3)
    topics.fill(
        f"{topic_name}-events", [ProducerRecord(b"{}", b"k", HEADERS, timestamp=MILLISECONDS)]
    )
    task: dict[str, Any] = {
        "topic": topic_name,
        "events": f"{topic_name}-events",
        "steps": STEPS,
        "options": {"kafka.bootstrap.servers": topics.bootstrap},
        "folder": str(tmp_path),
        "register": True,
    }
    with spark_programs(python, {}) as programs:
        found = programs.run("ends", task)
    assert found.pop("releases")[0] == version
    assert found.pop("headers") == [[[key, value.decode()] for key, value in HEADERS]]
    assert found.pop("events") == [["one", "/here", "made"]]
    assert found.pop("chosen") == [[0, 2023]]
    assert found == FOUND
