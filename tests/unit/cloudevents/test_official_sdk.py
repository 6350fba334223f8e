"""Tests the package and the official SDK in one process: each reads what the other wrote."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path

import pytest

pytestmark = pytest.mark.peers

ROOT = Path(__file__).resolve().parents[3]

BOTH = """
import cloudevents.core.bindings.kafka as sdk
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent as SdkEvent
import datetime, json, kproto_cloudevents as ours

ATTRIBUTES = {
    "specversion": "1.0", "id": "1", "source": "/s", "type": "t", "subject": "s",
    "partitionkey": "k", "datacontenttype": "application/json",
}
TIME = "2018-04-05T03:56:24.123456Z"
DATA = {"a": [1, 2.5, None], "b": "ü"}
"""

WE_WRITE = (
    BOTH
    + """
event = ours.CloudEvent(ATTRIBUTES, time=TIME, data=DATA)
for mode in ("binary", "structured"):
    record = ours.to_kafka(event, mode, key_mapper=ours.partition_key)
    message = sdk.KafkaMessage(dict(record.headers), record.key, record.value)
    read = sdk.from_kafka(message, JSONFormat())
    attributes = read.get_attributes()
    assert attributes.pop("time") == event.time.datetime, attributes
    assert attributes == ATTRIBUTES, attributes
    assert read.get_data() == DATA
    print(mode)
"""
)

THEY_WRITE = (
    BOTH
    + """
moment = ours.Timestamp(TIME).datetime
written = SdkEvent({**ATTRIBUTES, "time": moment}, DATA)
for name, write in (("binary", sdk.to_binary), ("structured", sdk.to_structured)):
    message = write(written, JSONFormat())
    headers = tuple(message.headers.items())
    event = ours.from_kafka(None, message.value, headers)
    attributes = dict(event.attributes)
    assert ours.Timestamp(attributes.pop("time")).datetime == moment
    assert attributes == ATTRIBUTES, attributes
    assert event.json() == DATA
    assert ours.to_kafka(event) == (None, message.value, headers)
    print(name)
"""
)

WHERE = """
import json, cloudevents, cloudevents.core, kproto_cloudevents
print(json.dumps([cloudevents.core.__file__, kproto_cloudevents.__file__]))
"""


def run(python: Path, code: str, folder: Path = ROOT) -> str:
    done = subprocess.run(
        [python, "-c", code],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "cloudevents")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("code", [WE_WRITE, THEY_WRITE], ids=["we write", "they write"])
def test_each_reads_what_the_other_writes(peers_python: Path, code: str) -> None:
    assert run(peers_python, code).split() == ["binary", "structured"]


@pytest.mark.parametrize("folder", [ROOT, ROOT / "cloudevents", ROOT / "tests"])
def test_neither_hides_the_other(peers_python: Path, folder: Path) -> None:
    theirs, ours = map(Path, json.loads(run(peers_python, WHERE, folder)))
    assert "site-packages" in theirs.parts
    assert ours.is_relative_to(ROOT / "cloudevents")
