"""Tests that the client's calls for events pass profiles and event formats on."""

from __future__ import annotations

import json
from functools import partial

from kproto_cloudevents import (
    PORTABLE_JSON_FORMAT,
    CloudEvent,
    Profile,
    event_of,
    events,
    to_kafka,
)

from kproto import Client
from kproto.broker import Broker

SDKS = Profile(empty_is_no_data=True, event_grid_dataschema=True)
EVENT = CloudEvent(
    id="1",
    source="/shop",
    type="order.placed",
    datacontenttype="application/vnd.x+json",
    data={"total": 12},
)
#: As Azure Event Grid writes it, without data as the SDK for Python writes it.
EMPTY = (
    b"k",
    b"",
    [
        ("ce_specversion", b"1.0"),
        ("ce_id", b"2"),
        ("ce_source", b"/shop"),
        ("ce_type", b"order.deleted"),
        ("ce_dataschema", b"#"),
    ],
)


async def test_events_of_other_sdks_are_sent_and_read() -> None:
    portable = {"mode": "structured", "event_format": PORTABLE_JSON_FORMAT}
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.create_topic("t", 1)
        async with client.producer() as producer:
            await producer.send_event("t", EVENT, **portable)  # type: ignore[arg-type]
            key, value, headers = EMPTY
            await producer.send("t", value, key=key, headers=headers)
            first, second = [
                received
                async for received in events(client.consumer("t", stop_at_end=True), profile=SDKS)
            ]
            assert "data_base64" in json.loads(first.record.value or b"")
            assert first.outcome == EVENT
            empty = second.outcome
            assert isinstance(empty, CloudEvent)
            assert empty.data is None
            assert empty.dataschema == "#"
            assert partial(event_of, profile=SDKS)(second.record) == empty
            # Neither the event nor its copy becomes a tombstone.
            await producer.send_events("t", [empty, empty.replace(subject="s")])
        records = [record async for record in client.consumer("t", stop_at_end=True)]
    assert [record.value for record in records[2:]] == [b"", b""]
    assert to_kafka(empty).headers == tuple(EMPTY[2])
