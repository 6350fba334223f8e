"""Tests the JSON of a topic for approval tests."""

from __future__ import annotations

import json

from kproto.broker import Broker
from kproto.broker.topic_snapshot import topic_snapshot
from kproto.records import Record

EXPECTED = """\
{
  "topic": "orders",
  "partitions": [
    [
      {
        "key": "ä",
        "value": {
          "json": {
            "amount": 3
          }
        },
        "headers": [
          [
            "trace",
            null
          ]
        ]
      }
    ],
    []
  ]
}
"""


async def test_snapshot_has_keys_values_and_headers_without_offsets_and_times() -> None:
    async with Broker() as broker:
        broker.create_topic("orders", partitions=2)
        broker.produce(
            "orders", b'{"amount": 3}', key="ä".encode(), headers=[("trace", None)], timestamp=7
        )
        assert broker.snapshot("orders") == EXPECTED


def test_values_are_json_text_or_base64() -> None:
    values = [b"[1]", b"{broken", b"7", b"text", b"\xff", b"", None]
    records = [Record(value=value, partition=0) for value in values]
    (shown,) = json.loads(topic_snapshot("t", 1, records))["partitions"]
    assert [it["value"] for it in shown] == [
        {"json": [1]},
        "{broken",
        "7",
        "text",
        {"base64": "/w=="},
        "",
        None,
    ]
    assert all(it["key"] is None and "headers" not in it for it in shown)
