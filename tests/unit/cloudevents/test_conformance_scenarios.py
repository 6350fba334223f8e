"""Tests the scenarios of the CloudEvents conformance repository: Kafka, HTTP and JSON.

https://github.com/cloudevents/conformance has the scenarios in
`features/kafka-protocol-binding.feature`, `features/http-protocol-binding.feature` and
`format/json/`. The attributes, the payloads, and the identifiers in comments and test ids are
copied from these files; the tables of test parameters are kproto's own.
"""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest
from kproto_cloudevents import (
    LENIENT,
    CloudEvent,
    CloudEventError,
    KafkaRecord,
    from_json,
    from_json_batch,
    to_json,
    to_json_batch,
    to_kafka,
)
from kproto_cloudevents.extensions import Extension, ExtensionAttribute
from kproto_cloudevents.values import types

from .samples import event_of

# --- Kafka and HTTP -------------------------------------------------------------------------------

CONTEXT = {
    "specversion": "1.0",
    "id": "1234-1234-1234",
    "type": "com.example.someevent",
    "source": "/mycontext/subcontext",
    "time": "2018-04-05T03:56:24Z",
}
MESSAGE = {"message": "Hello World!"}
PAYLOAD = json.dumps(MESSAGE).encode()
JSON_TYPES = ["application/json", "application/json; charset=utf-8"]
EVENT_TYPES = ["application/cloudevents+json", "application/cloudevents+json; charset=utf-8"]


def binary(prefix: str, content_type: tuple[str, str]) -> KafkaRecord:
    headers = [(prefix + name, value.encode()) for name, value in CONTEXT.items()]
    return KafkaRecord(None, PAYLOAD, (*headers, (content_type[0], content_type[1].encode())))


@pytest.mark.parametrize("content_type", JSON_TYPES)
def test_kafka_binary_content_mode(content_type: str) -> None:
    record = binary("ce_", ("content-type", content_type))
    event = event_of(record)
    assert dict(event.attributes) == {**CONTEXT, "datacontenttype": content_type}
    assert event.json() == MESSAGE
    assert to_kafka(event) == record


@pytest.mark.parametrize("content_type", EVENT_TYPES)
def test_kafka_structured_content_mode(content_type: str) -> None:
    value = json.dumps(
        {**CONTEXT, "datacontenttype": "application/json", "data": MESSAGE}, indent=4
    )
    record = KafkaRecord(None, value.encode(), (("content-type", content_type.encode()),))
    event = event_of(record)
    assert dict(event.attributes) == {**CONTEXT, "datacontenttype": "application/json"}
    assert event.json() == MESSAGE
    assert to_kafka(event) == record


@pytest.mark.parametrize("content_type", JSON_TYPES)
def test_http_headers_that_a_bridge_wrote_into_kafka(content_type: str) -> None:
    """An HTTP bridge has written headers with Kafka's prefix `ce_`, but in another case."""
    record = binary("Ce_", ("Content-Type", content_type))
    event = event_of(record, profile=LENIENT)
    assert dict(event.attributes) == {**CONTEXT, "datacontenttype": content_type}
    assert event.json() == MESSAGE


@pytest.mark.parametrize("content_type", EVENT_TYPES)
def test_http_structured_content_mode(content_type: str) -> None:
    value = json.dumps({**CONTEXT, "datacontenttype": "application/json", "data": MESSAGE})
    headers = (("Content-Type", content_type.encode()),)
    event = event_of((None, value.encode(), headers), profile=LENIENT)
    assert dict(event.attributes) == {**CONTEXT, "datacontenttype": "application/json"}
    assert event.json() == MESSAGE


# --- JSON events ----------------------------------------------------------------------------------

#: The sample event that the other samples extend.
MINIMAL: dict[str, Any] = {
    "specversion": "1.0",
    "id": "minimal",
    "type": "io.cloudevents.test",
    "source": "https://cloudevents.io",
}
ALL_CORE = {
    **MINIMAL,
    "id": "allCore",
    "datacontenttype": "text/plain",
    "dataschema": "https://cloudevents.io/dataschema",
    "subject": "tests",
    "time": "2018-04-05T17:31:00Z",
}
#: The sample extension, and the values of its attributes.
ALL_TYPES = Extension(
    "all types",
    ExtensionAttribute("extinteger", types.INTEGER),
    ExtensionAttribute("extboolean", types.BOOLEAN),
    ExtensionAttribute("extstring", types.STRING),
    ExtensionAttribute("exturi", types.URI),
    ExtensionAttribute("exturiref", types.URI_REFERENCE),
    ExtensionAttribute("exttimestamp", types.TIMESTAMP),
    ExtensionAttribute("extbinary", types.BINARY),
)
ALL_EXTENSION_TYPES = {
    **MINIMAL,
    "id": "allExtensionTypes",
    "extinteger": 10,
    "extboolean": True,
    "extstring": "text",
    "exturi": "https://cloudevents.io",
    "exturiref": "//authority/path",
    "exttimestamp": "2023-03-31T15:12:00Z",
    "extbinary": "TWE=",
}
MOMENT = datetime(2018, 4, 5, 17, 31, tzinfo=UTC)


def read(members: dict[str, Any]) -> CloudEvent:
    document = json.dumps(members).encode()
    event = from_json(document)
    assert to_json(event) == document
    return event


def test_valid_minimal() -> None:
    assert read(MINIMAL) == CloudEvent(MINIMAL)


def test_valid_minimal_with_null_for_every_optional_attribute() -> None:
    unset = dict.fromkeys(("datacontenttype", "dataschema", "subject", "time"))
    assert read({**MINIMAL, **unset}) == CloudEvent(MINIMAL)


def test_valid_all_core_attributes() -> None:
    assert read(ALL_CORE) == CloudEvent(ALL_CORE)


@pytest.mark.parametrize(
    "text",
    [
        "2018-04-05T17:31:00Z",
        "2018-04-05T17:31:00.000000000Z",
        "2018-04-05T18:31:00+01:00",
        "2018-04-05T16:31:00-01:00",
    ],
)
def test_valid_times_are_the_same_moment(text: str) -> None:
    time = read({**MINIMAL, "id": "minimalWithTime", "time": text}).time
    assert time == text
    assert time is not None
    assert time.datetime == MOMENT


def test_valid_relative_source() -> None:
    assert read({**MINIMAL, "source": "#fragment"}).source == "#fragment"


def test_valid_simple_text_data() -> None:
    members = {**MINIMAL, "datacontenttype": "text/plain", "data": "Simple text"}
    assert read(members).data == "Simple text"


def test_valid_extensions_of_all_types() -> None:
    assert ALL_TYPES.read(read(ALL_EXTENSION_TYPES)) == {
        "extinteger": 10,
        "extboolean": True,
        "extstring": "text",
        "exturi": "https://cloudevents.io",
        "exturiref": "//authority/path",
        "exttimestamp": "2023-03-31T15:12:00Z",
        "extbinary": b"Ma",
    }


ABSENT = object()


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        pytest.param({"specversion": ABSENT}, "specversion", id="invalidNoSpecVersion"),
        pytest.param({"id": ABSENT}, "id", id="invalidNoId"),
        pytest.param({"type": ABSENT}, "type", id="invalidNoType"),
        pytest.param({"source": ABSENT}, "source", id="invalidNoSource"),
        pytest.param({"time": "lunchtime"}, "time", id="invalidTimeGarbage"),
        pytest.param({"time": "2018-04-05T18:31Z"}, "time", id="invalidTimeToMinute"),
        pytest.param({"time": "2018-04-05T18:31:00X"}, "time", id="invalidTimeOffsetX"),
        pytest.param(
            {"time": "2018-04-05T18:31:00+25:00"}, "time", id="invalidTimeOffsetOutOfRange"
        ),
        pytest.param(
            {"time": "2018-04-05T18:31:00+xx:00"}, "time", id="invalidTimeOffsetNonInteger"
        ),
        pytest.param({"time": "2018-04-05T18:31:00+05"}, "time", id="invalidTimeOffsetHourOnly"),
        pytest.param({"id": ""}, "id", id="invalidEmptyId"),
        pytest.param({"type": ""}, "type", id="invalidEmptyType"),
        pytest.param({"source": ""}, "source", id="invalidEmptySource"),
        pytest.param({"specversion": ""}, "specversion", id="invalidEmptySpecVersion"),
        pytest.param({"specversion": "0.9"}, "specversion", id="invalidUnknownSpecVersion"),
        pytest.param(
            {"datacontenttype": "xyz"}, "datacontenttype", id="invalidNonRfc2046DataContentType"
        ),
        pytest.param({"datacontenttype": ""}, "datacontenttype", id="invalidEmptyDataContentType"),
        pytest.param({"dataschema": ""}, "dataschema", id="invalidEmptyDataSchema"),
        pytest.param({"subject": ""}, "subject", id="invalidEmptySubject"),
        pytest.param({"id": 25}, "id", id="invalidNumericId"),
        pytest.param({"id": {"xyz": "abc"}}, "id", id="invalidObjectId"),
        pytest.param({"MyExtension": "bad"}, "MyExtension", id="invalidCapitalizedExtension"),
        pytest.param({"my.extension": "bad"}, '"my.extension"', id="invalidPunctuatedExtension"),
        pytest.param({"myextension": 1.5}, "myextension", id="invalidNonIntegerExtensionValue"),
        pytest.param(
            {"data": "text", "data_base64": "eyAieHl6IjogMTIzIH0="},
            "data_base64",
            id="invalidBothDataAndDataBase64",
        ),
    ],
)
def test_invalid_events(changes: dict[str, Any], place: str) -> None:
    members = {
        name: value
        for name, value in {**MINIMAL, "id": "invalid", **changes}.items()
        if value is not ABSENT
    }
    with pytest.raises(CloudEventError) as caught:
        from_json(json.dumps(members))
    assert caught.value.where == place.strip('"')


# --- JSON batches ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "members",
    [
        pytest.param([], id="validBatchEmpty"),
        pytest.param([MINIMAL], id="validBatchMinimal"),
        pytest.param([MINIMAL, MINIMAL], id="validBatchMinimal2"),
        pytest.param([MINIMAL, ALL_CORE], id="validBatchMinimalAndAllCore"),
        pytest.param([MINIMAL, ALL_EXTENSION_TYPES], id="validBatchMinimalAndAllExtensionTypes"),
    ],
)
def test_valid_batches(members: list[dict[str, Any]]) -> None:
    events = from_json_batch(json.dumps(members))
    assert events == [CloudEvent(each) for each in members]
    assert from_json_batch(to_json_batch(events)) == events


@pytest.mark.parametrize(
    ("members", "message"),
    [
        pytest.param(
            [MINIMAL, {**MINIMAL, "specversion": "0.9"}],
            'event 1, specversion: "0.9" is no version known here',
            id="invalidBatchMixedSpecVersions",
        ),
        pytest.param(
            [{name: value for name, value in MINIMAL.items() if name != "id"}],
            "event 0, id: the required attribute is missing",
            id="invalidBatchContainingInvalidCloudEvent",
        ),
        pytest.param(
            ["not an object", MINIMAL],
            "an event is a JSON object",
            id="invalidBatchContainingNonObject",
        ),
        pytest.param(
            [MINIMAL, {**MINIMAL, "specversion": "0.3"}],
            "the events of one batch have one specversion",
            id="two versions that are known",
        ),
    ],
)
def test_invalid_batches(members: list[Any], message: str) -> None:
    with pytest.raises(CloudEventError, match=message):
        from_json_batch(json.dumps(members))


def test_a_batch_is_not_written_of_two_versions() -> None:
    events = [CloudEvent(MINIMAL), CloudEvent({**MINIMAL, "specversion": "0.3"})]
    with pytest.raises(CloudEventError, match="the events of one batch have one specversion"):
        to_json_batch(events)
