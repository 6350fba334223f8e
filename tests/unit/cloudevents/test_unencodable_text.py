"""Tests text that cannot be encoded, in each part of an event that may have text.

If the package must write such text as bytes, it raises CloudEventError. The JSON format may write
an escape instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    JsonMap,
    Timestamp,
    Uri,
    UriReference,
    from_json,
    from_kafka,
    partition_key,
    to_json,
    to_json_batch,
    to_kafka,
)
from kproto_cloudevents.avro_format import AVRO_FORMAT
from kproto_cloudevents.protobuf_format import PROTOBUF_FORMAT
from kproto_cloudevents.pulsar import PulsarMessage, from_pulsar, to_pulsar

LONE = "\ud800"

V1_0 = CloudEvent(id="1", source="/s", type="t")
EVENTS = [V1_0, *(V1_0.to_version(label) for label in ("0.3", "0.2", "0.1"))]

#: Attribute values that contain a lone surrogate, directly or as an escape in JSON.
VALUES = [
    LONE,
    f'a/b; x="{LONE}"',
    f'a/b; charset="{LONE}"',
    f"https://x/{LONE}",
    Uri(LONE),
    UriReference(LONE),
    Timestamp(LONE),
    JsonMap(f'{{"a":"{LONE}"}}'),
    JsonMap(f'{{"{LONE}":1}}'),
    JsonMap('{"a":"\\ud800","partitionkey":"\\ud800"}'),
    JsonMap('{"\\ud800":1}'),
]
#: Content types of data; some charsets lack characters that JSON needs.
TYPES = [
    None,
    "a/b",
    "application/json",
    "text/plain",
    *(
        f"{kind}; charset={charset}"
        for kind in ("application/json", "text/plain")
        for charset in ("latin-1", "utf-16", "utf-7", "cp037", "cp864", "idna", "undefined")
    ),
]
DATA: list[Any] = [
    LONE,
    [LONE],
    {LONE: 1},
    "%",
    ["€", "%"],
    "x" * 70,
    b"\xed\xa0\x80",
    b'"\\ud800"',
]


def utf8_properties(message: PulsarMessage) -> list[bytes]:
    return [text.encode() for pair in message.properties.items() for text in pair]


USES: dict[str, Callable[[CloudEvent], object]] = {
    "binary": lambda event: to_kafka(event, "binary"),
    "read again": lambda event: from_kafka(*to_kafka(event, "binary")),
    "structured": lambda event: to_kafka(event, "structured", repeat_attributes=True),
    "avro": lambda event: to_kafka(event, "structured", event_format=AVRO_FORMAT),
    "protobuf": lambda event: to_kafka(event, "structured", event_format=PROTOBUF_FORMAT),
    "a key": lambda event: to_kafka(event, key_mapper=partition_key),
    "Pulsar": lambda event: utf8_properties(to_pulsar(event, "binary")),
    "Pulsar, structured": lambda event: to_pulsar(event, "structured"),
    "a batch": lambda event: to_json_batch([event]),
    "JSON data": lambda event: event.json(),
    "equality": lambda event: event == from_json(to_json(event)),
    "another version": lambda event: event.to_version("0.1").to_version("1.0"),
    "repr": repr,
}


def made() -> Iterator[CloudEvent]:
    """Yields valid events of several versions, each with one attribute of `VALUES`, or `DATA`."""
    for event in EVENTS:
        names = {*V1_0, *event, "ext", "subject", "time", "datacontenttype", "dataschema"}
        for name in sorted(names | {"contentType", "contenttype", "extensions", "schemaurl"}):
            for value in VALUES:
                try:
                    yield event.replace({name: value})
                except CloudEventError:
                    continue
        for content_type in TYPES:
            for data in DATA:
                try:
                    yield event.replace({event._version.content_type: content_type}, data=data)
                except CloudEventError:
                    continue


@pytest.mark.parametrize("use", USES)
def test_text_without_bytes_wherever_it_stands(use: str) -> None:
    refused = passed = 0
    for event in made():
        try:
            USES[use](event)
        except CloudEventError:
            refused += 1
        else:
            passed += 1
    assert passed
    assert refused or use == "repr"


@pytest.mark.parametrize("event_format", [AVRO_FORMAT, PROTOBUF_FORMAT])
def test_the_error_says_where(event_format: Any) -> None:
    text = V1_0.replace(datacontenttype="text/plain", data=LONE)
    with pytest.raises(CloudEventError, match=r"^data: the text has an unpaired surrogate \("):
        to_kafka(text, "structured", event_format=event_format)
    with pytest.raises(CloudEventError, match="charset utf-8 cannot encode"):
        to_kafka(text)
    # JSON writes a lone surrogate as an escape.
    assert from_kafka(*to_kafka(text, "structured")) == text


def test_json_that_a_charset_has_no_letters_for() -> None:
    event = V1_0.replace(datacontenttype="application/json; charset=cp864", data="%")
    with pytest.raises(CloudEventError, match="characters that the charset cp864 cannot encode"):
        to_kafka(event)


def test_maps_with_text_without_bytes() -> None:
    for text in (f'{{"a":"{LONE}"}}', f'{{"{LONE}":1}}'):
        with pytest.raises(CloudEventError, match=r"m: .* has an unpaired surrogate"):
            EVENTS[1].replace(m=JsonMap(text))
    message = {**to_pulsar(EVENTS[1]).properties, "CE-X-M": f'{{"a":"{LONE}"}}'}
    event = from_pulsar(message, None)
    assert isinstance(event, CloudEvent)
    assert event["m"] == '{"a":"\\ud800"}'
    keyed = EVENTS[3].replace(extensions=JsonMap('{"partitionkey":"\\ud800"}'))
    with pytest.raises(CloudEventError, match="partitionkey: the text has an unpaired surrogate"):
        to_kafka(keyed, key_mapper=partition_key)
