"""Tests reading the structured records that v1 of the official SDK writes."""

from __future__ import annotations

import base64
import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from kproto_cloudevents import (
    JSON_NULL,
    CloudEvent,
    KafkaRecord,
    NotAnEvent,
    Profile,
    from_kafka,
    to_kafka,
)

pytestmark = pytest.mark.peers

SCRIPT = Path(__file__).parent / "peer_scripts" / "records_with_sdk_v1.py"
TIMEOUT_S = 60

#: The content type and the data for the SDK, and the data of the event that kproto reads.
SENT: list[tuple[str | None, Any, Any]] = [
    (None, {"total": 12}, {"total": 12}),
    (None, "text", "text"),
    (None, b"\x00\xff", b"\x00\xff"),
    # For missing data v1 writes null. kproto reads it as JSON's null if the content type is missing
    # or JSON, and otherwise as no data.
    (None, None, JSON_NULL),
    ("application/json", None, JSON_NULL),
    ("text/plain", None, None),
    ("application/json", {"total": 12}, {"total": 12}),
    ("application/json", b'{"total": 1.10}', b'{"total": 1.10}'),
    ("application/json; charset=latin-1", "grün", "grün"),
    ("application/vnd.x+json", [1, 2.5, None], [1, 2.5, None]),
    ("text/plain", "grün", "grün"),
    ("text/plain; charset=utf-16", "grün", "grün"),
    ("application/octet-stream", b"\x00\xff", b"\x00\xff"),
    ("application/octet-stream", b"", b""),
]
ATTRIBUTES = {
    "specversion": "1.0",
    "id": "1",
    "source": "/s",
    "type": "t",
    "time": "2018-04-05T03:56:24.10+02:00",
    "subject": "ü",
    "partitionkey": "AA",
}


def attributes_of(content_type: str | None) -> dict[str, str]:
    return ATTRIBUTES if content_type is None else {**ATTRIBUTES, "datacontenttype": content_type}


def as_json(content_type: str | None, data: Any) -> dict[str, Any]:
    attributes = attributes_of(content_type)
    if isinstance(data, bytes):
        return {"attributes": attributes, "data_base64": base64.b64encode(data).decode()}
    return {"attributes": attributes, "data": data}


def decoded(part: str | None) -> bytes | None:
    return None if part is None else base64.b64decode(part)


@pytest.fixture(scope="module")
def records(peers_python: Path) -> list[KafkaRecord]:
    done = subprocess.run(
        [peers_python, SCRIPT],
        input=json.dumps([as_json(content_type, data) for content_type, data, _ in SENT]),
        capture_output=True,
        text=True,
        timeout=TIMEOUT_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return [
        KafkaRecord(
            decoded(each["key"]),
            decoded(each["value"]),
            tuple((name, decoded(raw)) for name, raw in each["headers"]),
        )
        for each in json.loads(done.stdout)
    ]


def test_events_that_v1_of_the_sdk_writes_in_structured_mode(records: list[KafkaRecord]) -> None:
    assert len(records) == len(SENT)
    for record, (content_type, _, ours) in zip(records, SENT, strict=True):
        # The content-type header has the data's type instead of the structured mode.
        assert [raw.decode() for _, raw in record.headers if raw] == (
            [] if content_type is None else [content_type]
        )
        assert isinstance(from_kafka(*record), NotAnEvent)
        event = from_kafka(*record, profile=Profile(json_events=True))
        assert event == CloudEvent(attributes_of(content_type), data=ours), content_type
        assert to_kafka(event) == record
