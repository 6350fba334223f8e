"""Tests the profile of Azure Event Grid, whose events may have the dataschema "#"."""

from __future__ import annotations

import copy
import json
import pickle
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    EVENT_GRID,
    LENIENT,
    CloudEvent,
    CloudEventError,
    KafkaRecord,
    LazyEvent,
    Profile,
    from_json,
    from_json_batch,
    from_kafka,
    lazy_from_kafka,
    to_json,
    to_json_batch,
    to_kafka,
)
from kproto_cloudevents.avro_format import to_avro

from ..samples import event_of, record_with

#: The attributes of the sample event in the documentation of Azure Event Grid.
SAMPLE = {
    "specversion": "1.0",
    "type": "Microsoft.Storage.BlobCreated",
    "source": "/subscriptions/s/providers/Microsoft.Storage/storageAccounts/a",
    "id": "9aeb0fdf-c01e-0131-0922-9eb54906e209",
    "time": "2019-11-18T15:13:39.4589254Z",
    "subject": "blobServices/default/containers/c/blobs/b",
    "dataschema": "#",
    "datacontenttype": "application/json",
    "data": {"api": "PutBlockList", "contentLength": 30699},
}
DOCUMENT = json.dumps(SAMPLE).encode()
STRUCTURED = KafkaRecord(None, DOCUMENT, (("content-type", b"application/cloudevents+json"),))
BINARY = record_with(("ce_dataschema", b"#"), ("content-type", b"application/json"), value=b"{}")
EVENTS = [STRUCTURED, BINARY]


@pytest.mark.parametrize("record", EVENTS)
@pytest.mark.parametrize("profile", [Profile(), LENIENT])
def test_other_profiles_refuse_the_dataschema(record: KafkaRecord, profile: Profile) -> None:
    with pytest.raises(CloudEventError, match="dataschema"):
        from_kafka(*record, profile=profile)


@pytest.mark.parametrize("record", EVENTS)
def test_the_profile_reads_the_event_and_writes_it_again(record: KafkaRecord) -> None:
    event = event_of(record, profile=EVENT_GRID)
    assert event.dataschema == "#"
    assert event.specversion == "1.0"
    assert to_kafka(event) == record
    # The other readers still refuse it: the profile has changed no cache.
    with pytest.raises(CloudEventError, match="dataschema"):
        from_kafka(*record)


@pytest.mark.parametrize("record", EVENTS)
@pytest.mark.parametrize("mode", ["binary", "structured"])
def test_a_copy_keeps_the_dataschema(record: KafkaRecord, mode: Any) -> None:
    event = event_of(record, profile=EVENT_GRID)
    for copied in (
        event.replace(subject="other"),
        event.replace(data=[1]),
        copy.copy(event).replace(),
        pickle.loads(pickle.dumps(event)).replace(subject="other"),
    ):
        assert copied.dataschema == "#"
        assert list(copied)[: len(event)] == list(event)
        again = event_of(to_kafka(copied, mode), profile=EVENT_GRID)
        assert again == copied
        with pytest.raises(CloudEventError, match="dataschema"):
            from_kafka(*to_kafka(copied, mode))


def test_a_changed_dataschema_is_checked_again() -> None:
    event = event_of(STRUCTURED, profile=EVENT_GRID)
    assert event.replace(dataschema=None).dataschema is None
    assert event.replace(dataschema="urn:x") == CloudEvent(
        {**dict(event), "dataschema": "urn:x"}, data=event.data
    )
    with pytest.raises(CloudEventError, match="dataschema"):
        event.replace(dataschema="#x")
    with pytest.raises(CloudEventError, match="dataschema"):
        event.replace(dataschema="urn:x").replace(dataschema="#")
    with pytest.raises(CloudEventError, match="dataschema"):
        event.to_version("1.0")
    assert event.to_version("1.0", drop=["dataschema"]).dataschema is None


def test_events_compare_as_usual() -> None:
    event = event_of(STRUCTURED, profile=EVENT_GRID)
    other_time = event.replace(time="2019-11-18T16:13:39.4589254+01:00")
    assert other_time == event
    assert event.replace(dataschema=None) != event


@pytest.mark.parametrize("dataschema", ["", "#x", "x", "/schema", "urn:x#y"])
def test_the_profile_accepts_no_other_reference(dataschema: str) -> None:
    document = json.dumps({**SAMPLE, "dataschema": dataschema}).encode()
    with pytest.raises(CloudEventError, match="dataschema"):
        from_kafka(*STRUCTURED._replace(value=document), profile=EVENT_GRID)
    header = ("ce_dataschema", dataschema.encode())
    with pytest.raises(CloudEventError, match="dataschema"):
        from_kafka(*record_with(header), profile=EVENT_GRID)


def test_a_lazy_event_has_the_dataschema() -> None:
    event = lazy_from_kafka(*BINARY, profile=EVENT_GRID)
    assert isinstance(event, LazyEvent)
    assert event["dataschema"] == "#"
    assert event.event().dataschema == "#"
    with pytest.raises(CloudEventError, match="dataschema"):
        lazy_from_kafka(*BINARY).get("dataschema")  # type: ignore[union-attr]


def test_json_without_a_record() -> None:
    event = from_json(DOCUMENT, event_grid_dataschema=True)
    assert to_json(event) == DOCUMENT
    batch = to_json_batch([event, event])
    assert from_json_batch(batch, event_grid_dataschema=True) == [event, event]
    with pytest.raises(CloudEventError, match="dataschema"):
        from_json_batch(batch)
    assert to_avro(event)


def test_the_profile_combines_with_json_events() -> None:
    record = KafkaRecord(None, DOCUMENT, (("content-type", b"application/json"),))
    profile = EVENT_GRID._replace(json_events=True)
    event = event_of(record, profile=profile)
    assert event.dataschema == "#"
    assert event.datacontenttype == "application/json"
    assert to_kafka(event) == record


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=5), st.text("xyz", min_size=1), max_size=3),
    st.sampled_from(["#", "urn:x"]),
    st.sampled_from(["binary", "structured"]),
)
def test_events_round_trip(extensions: dict[str, str], dataschema: str, mode: Any) -> None:
    document = json.dumps({**SAMPLE, "dataschema": dataschema, **extensions}).encode()
    event = event_of(STRUCTURED._replace(value=document), profile=EVENT_GRID)
    copied = event.replace(id="other")
    record = to_kafka(copied, mode)
    again = event_of(record, profile=EVENT_GRID)
    assert again == copied
    assert to_kafka(again) == record
