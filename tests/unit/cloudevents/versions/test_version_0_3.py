"""Tests CloudEvents 0.3: its names, its maps, and its attribute for Base64 data."""

from __future__ import annotations

from collections.abc import Mapping

import pytest
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    JsonMap,
    UnknownVersionError,
    from_json,
    from_kafka,
    to_json,
    to_kafka,
)

OLD = CloudEvent(
    specversion="0.3",
    id="1",
    source="/s",
    type="t",
    schemaurl="/schema",
    datacontenttype="application/json",
    time="2019-06-21T17:31:00Z",
    zone="x",
    data={"a": 1.50},
)
BASE = '"specversion":"0.3","id":"1","source":"/s","type":"t"'


def test_views_of_an_old_event() -> None:
    assert OLD.specversion == "0.3"
    assert OLD.dataschema == "/schema"
    assert OLD.extensions == {"zone": "x"}


def test_an_event_round_trips_in_both_kafka_modes() -> None:
    for mode in ("binary", "structured"):
        record = to_kafka(OLD, mode)
        back = from_kafka(*record)
        assert back == OLD
        assert to_kafka(back) == record


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"zone": True}, 'zone: Boolean is no type of this version.*CloudEvents 0.3 "Type System"'),
        ({"9x": "1"}, 'starts with a letter.*CloudEvents 0.3 "Attribute Naming Convention"'),
        ({"datacontentencoding": "gzip"}, '"gzip" is not base64, the only one defined'),
        ({"schemaurl": "a b"}, 'schemaurl: "a b" is not a URI-reference'),
        ({"id": None}, "id: the required attribute is missing"),
    ],
)
def test_rules_of_0_3_are_checked(
    attributes: Mapping[str, str | bool | None], message: str
) -> None:
    with pytest.raises(CloudEventError, match=message):
        OLD.replace(attributes)


def test_an_empty_source_was_allowed() -> None:
    assert OLD.replace(source="").source == ""
    with pytest.raises(CloudEventError, match="source"):
        OLD.replace(source="").to_version("1.0")


# --- binary data, marked by an attribute in 0.3 -------------------------------------------------


def test_base64_data_in_json() -> None:
    text = f'{{{BASE},"datacontentencoding":"BASE64","data":"AAE="}}'.encode()
    event = from_json(text)
    assert event.data == b"\x00\x01"
    assert to_json(event) == text
    with pytest.raises(CloudEventError, match="data: the value is not Base64"):
        from_json(text.replace(b"AAE=", b"AAE"))
    with pytest.raises(CloudEventError, match="data: the value is not Base64"):
        from_json(text.replace(b'"AAE="', b"5"))


def test_data_base64_is_refused_in_0_3() -> None:
    with pytest.raises(CloudEventError, match="data_base64: an attribute name starts with a lett"):
        from_json(f'{{{BASE},"data_base64":"AAE="}}')


def test_binary_data_is_marked_when_written() -> None:
    event = OLD.replace(datacontenttype="image/png", data=b"\x00\x01")
    written = to_json(event)
    assert written.endswith(b'"datacontentencoding":"base64","data":"AAE="}')
    assert from_json(written).data == b"\x00\x01"


def test_the_encoding_of_the_data_does_not_affect_equality() -> None:
    event = OLD.replace(datacontenttype="image/png", data=b"\x00\x01")
    read = from_json(to_json(event))
    assert read["datacontentencoding"] == "base64"
    assert read == event
    assert event == read
    assert hash(read) == hash(event)
    assert from_kafka(*to_kafka(event, "structured")) == from_kafka(*to_kafka(event)) == event
    assert read != event.replace(data=b"\x00")
    assert read != event.replace(data=None)
    assert read != event.replace(subject="s")
    # Without data, datacontentencoding is an ordinary attribute.
    assert event.replace(data=None, datacontentencoding="base64") != event.replace(data=None)


def test_a_record_stores_data_without_base64() -> None:
    event = from_json(f'{{{BASE},"datacontentencoding":"base64","data":"AAE="}}')
    record = to_kafka(event, "binary")
    assert record.value == b"\x00\x01"
    assert "ce_datacontentencoding" not in dict(record.headers)
    # If a record has the header nevertheless, reading ignores it, and writing keeps it.
    odd = record._replace(headers=(*record.headers, ("ce_datacontentencoding", b"base64")))
    read = from_kafka(*odd)
    assert isinstance(read, CloudEvent)
    assert read.data == b"\x00\x01"
    assert to_kafka(read) == odd
    assert from_json(to_json(read)).data == b"\x00\x01"


def test_base64_text_given_to_an_event_is_decoded() -> None:
    event = OLD.replace(datacontenttype=None, datacontentencoding="base64", data="AAE=")
    assert event.data == b"\x00\x01"


def test_data_must_agree_with_its_encoding_attribute() -> None:
    base = OLD.replace(datacontenttype=None, data=None)
    encoded = base.replace(datacontentencoding="base64", data=bytearray(b"ab"))
    assert encoded.data == b"ab"
    assert to_json(encoded).endswith(b'"datacontentencoding":"base64","data":"YWI="}')
    with pytest.raises(
        CloudEventError, match="declares Base64: pass bytes, or unset the attribute"
    ):
        encoded.replace(data={"a": 1})
    without_data = encoded.replace(data=None)
    assert from_json(to_json(without_data)) == without_data
    assert dict(to_kafka(without_data).headers)["ce_datacontentencoding"] == b"base64"


# --- maps, which 1.0 does not have ---------------------------------------------------------------


def test_maps_are_read_and_written_as_json() -> None:
    event = from_json(f'{{{BASE},"m":{{"a":[{{"b":1}}],"c":"ü"}}}}')
    assert event["m"] == '{"a":[{"b":1}],"c":"ü"}'
    assert isinstance(event["m"], JsonMap)
    assert from_json(to_json(event.replace(id="2")))["m"] == event["m"]
    assert dict(to_kafka(event, "binary").headers)["ce_m"] == '{"a":[{"b":1}],"c":"ü"}'.encode()
    with pytest.raises(CloudEventError, match=r"m \(.*Map is no type of this version"):
        event.to_version("1.0")
    with pytest.raises(CloudEventError, match="is no JSON object"):
        event.replace(m=JsonMap("[1]"))


# --- conversion ---------------------------------------------------------------------------------


def test_an_event_is_converted_to_1_0() -> None:
    new = OLD.replace(schemaurl="http://a/b").to_version("1.0")
    assert new.specversion == "1.0"
    assert new.dataschema == "http://a/b"
    assert "schemaurl" not in new
    assert new["zone"] == "x"
    assert new.data_bytes() == OLD.data_bytes()
    assert new.to_version("1.0") is new
    assert new.to_version("0.3") == OLD.replace(schemaurl="http://a/b")


def test_attributes_that_1_0_cannot_carry_are_named() -> None:
    with pytest.raises(CloudEventError) as caught:
        OLD.to_version("1.0")
    assert 'version 1.0 cannot carry schemaurl (dataschema: "/schema" is not' in str(caught.value)
    assert "dataschema" not in OLD.to_version("1.0", drop=["schemaurl"])
    for name in ("dataschema", "schemaurl"):
        new = CloudEvent(id="1", source="/s", type="t", schemaurl="x", n=True)
        with pytest.raises(CloudEventError, match=r"schemaurl \(it has another.*; n \(n: Boolean"):
            new.to_version("0.3", drop=[] if name == "schemaurl" else [name])


def test_the_encoding_of_data_belongs_to_the_document() -> None:
    event = from_json(f'{{{BASE},"datacontentencoding":"base64","data":"AAE="}}')
    new = event.to_version("1.0")
    assert "datacontentencoding" not in new
    assert new.data == b"\x00\x01"
    assert b'"data_base64":"AAE="' in to_json(new)


def test_conversion_to_an_unknown_version_is_refused() -> None:
    with pytest.raises(UnknownVersionError):
        OLD.to_version("2.0")
