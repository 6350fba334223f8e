"""Tests CloudEvents 0.2 of November 2018, and its draft.

The draft has the rules of 0.2, but its specversion is still "0.1".
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    CloudEvent,
    CloudEventError,
    JsonMap,
    KafkaRecord,
    from_json,
    from_kafka,
    kafka_record,
    to_json,
    to_kafka,
)

from ..samples import event_of

LABELS = ["0.2", "0.1"]

#: The example in the specification, with our own payload.
EXAMPLE = """{
    "specversion" : "LABEL",
    "type" : "com.github.pull.create",
    "source" : "https://github.com/cloudevents/spec/pull/123",
    "id" : "A234-1234-1234",
    "time" : "2018-04-05T17:31:00Z",
    "comexampleextension1" : "value",
    "comexampleextension2" : {
        "othervalue": 5
    },
    "contenttype" : "text/xml",
    "data" : "<much wow=\\"xml\\"/>"
}"""


def example(label: str) -> bytes:
    return EXAMPLE.replace("LABEL", label).encode()


def event(label: str = "0.2", data: Any = None, **more: Any) -> CloudEvent:
    return CloudEvent(specversion=label, id="1", source="/s", type="t", data=data, **more)


@pytest.mark.parametrize("label", LABELS)
def test_the_example_in_json(label: str) -> None:
    read = from_json(example(label))
    assert (read.specversion, read.id, read.type) == (
        label,
        "A234-1234-1234",
        "com.github.pull.create",
    )
    assert read.datacontenttype == "text/xml"
    assert read.extensions == {
        "comexampleextension1": "value",
        "comexampleextension2": '{"othervalue":5}',
    }
    assert isinstance(read["comexampleextension2"], JsonMap)
    assert read.data == '<much wow="xml"/>'
    assert to_json(read) == example(label)
    assert from_json(to_json(read.replace(id="2"))) == read.replace(id="2")


@pytest.mark.parametrize("label", LABELS)
def test_both_modes(label: str) -> None:
    read = from_json(example(label))
    for mode in ("binary", "structured"):
        record = to_kafka(read, mode, key=b"k")
        assert to_kafka(event_of(record)) == record
        assert kafka_record(event_of(record)) == record
    binary = to_kafka(read, "binary")
    assert dict(binary.headers)["content-type"] == b"text/xml"
    assert dict(binary.headers)["ce_comexampleextension2"] == b'{"othervalue":5}'
    assert event_of(binary) == read


def test_ce_contenttype_is_read() -> None:
    # The Kafka binding of 0.2 writes this header.
    headers = (
        ("ce_specversion", b"0.2"),
        ("ce_type", b"t"),
        ("ce_source", b"/s"),
        ("ce_id", b"1"),
        ("ce_contenttype", b"application/avro"),
    )
    record = KafkaRecord(None, b"\x02", headers)
    assert event_of(record).datacontenttype == "application/avro"
    assert to_kafka(event_of(record)) == record


@pytest.mark.parametrize(
    ("attributes", "message"),
    [
        ({"9x": "1"}, 'starts with a letter.*CloudEvents 0.2 "Attribute Naming Convention"'),
        ({"Zone": "x"}, 'starts with a letter.*CloudEvents 0.2 "Attribute Naming Convention"'),
        ({"zone": True}, 'zone: Boolean is no type of this version.*CloudEvents 0.2 "Type System"'),
        ({"contenttype": "xml"}, '"xml" is no media type.*CloudEvents 0.2 "contenttype"'),
        ({"schemaurl": "a b"}, 'schemaurl: "a b" is not a URI-reference'),
        ({"type": None}, 'type: the required attribute.*CloudEvents 0.2 "Context Attributes"'),
    ],
)
def test_rules_of_its_own(attributes: Mapping[str, Any], message: str) -> None:
    for label in LABELS:
        with pytest.raises(CloudEventError, match=message):
            event(label).replace(attributes)


def test_a_name_must_begin_with_a_letter_in_headers_too() -> None:
    record = to_kafka(event())
    with pytest.raises(CloudEventError, match=r"ce_1x: an attribute name starts with a letter"):
        from_kafka(None, None, (*record.headers, ("ce_1x", b"x")))


# --- data that may be text or Base64 -------------------------------------------------------------


def test_a_string_of_a_type_that_is_no_text_is_kept_and_not_guessed_at() -> None:
    document = to_json(event(contenttype="application/avro", data=b"\x00\x01"))
    assert document.endswith(b'"data":"AAE="}')
    read = from_json(document)
    assert read.data == "AAE="
    assert "text or Base64" in repr(read)
    assert to_json(read) == document
    assert to_json(read.replace(id="2")).endswith(b'"data":"AAE="}')
    for refused in (
        lambda: to_kafka(read, "binary"),
        lambda: read.data_bytes(),
        lambda: read.json(),
        lambda: read.to_version("1.0"),
    ):
        with pytest.raises(
            CloudEventError, match="the string is either text or the Base64 of bytes"
        ):
            refused()
    assert to_kafka(read.replace(data=b"\x00\x01"), "binary").value == b"\x00\x01"
    assert to_kafka(read.replace(data=read.data), "binary").value == b"AAE="
    # Changing specversion instead of converting does not help either.
    moved = read.replace(specversion="1.0", contenttype=None, datacontenttype="a/b")
    with pytest.raises(CloudEventError, match="the string is either text or the Base64 of bytes"):
        to_json(moved)
    # 0.1 does not mark Base64 either, so the string is kept.
    assert read.to_version("0.1").data == "AAE="


@pytest.mark.parametrize(
    ("content_type", "data", "member"),
    [
        ("text/plain", "grün".encode(), '"grün"'),
        ("application/xml", b"<a/>", '"<a/>"'),
        ("image/svg+xml", b"<a/>", '"<a/>"'),
        ("application/x; charset=latin-1", b"\xfc", '"ü"'),
        ("application/json", b'{"a": 1.0}', '{"a": 1.0}'),
        ("application/x+json", b"[1]", "[1]"),
        ("application/octet-stream", b"abc", '"YWJj"'),
        (None, {"a": 1}, '{"a":1}'),
        ("text/plain", "t", '"t"'),
    ],
)
def test_the_member_that_data_becomes(content_type: str | None, data: Any, member: str) -> None:
    written = to_json(event(contenttype=content_type, data=data))
    assert written.decode().endswith(f',"data":{member}}}')


@pytest.mark.parametrize(
    ("content_type", "data"),
    [
        (None, b"\x00"),
        ("application/json", b"{"),
        ("text/plain", b"\xff"),
        ("text/plain; charset=x", b"a"),
        ("application/json; charset=utf-8", b"\xfc"),
        ("application/json; charset=latin-1", b"\xfc"),
        ("application/x+json; charset=x", b"1"),
        ("application/json; charset=utf-16", "{}".encode("utf-16-le")),
        ("application/json; charset=utf-16", b"\xfe\xff" + "{}".encode("utf-16-be")),
        ("text/plain; charset=utf-16", "ab".encode("utf-16-le")),
        ("text/plain; charset=utf-16", b"\xfe\xff" + "ab".encode("utf-16-be")),
        ("text/plain; charset=utf-8-sig", b"ab"),
        ("text/plain; charset=utf-7", b"+AGE-b"),
        ("application/json", b"\xef\xbb\xbf1"),
        ("application/json", b"{}\n"),
        ("application/json; charset=utf-7", b'"+2AA-"'),
    ],
)
def test_bytes_that_would_be_read_as_something_else(content_type: str | None, data: bytes) -> None:
    with pytest.raises(CloudEventError, match=r"cannot mark Base64.*CloudEvents 0\.2"):
        to_json(event(contenttype=content_type, data=data))
    assert to_kafka(event(contenttype=content_type, data=data), "binary").value == data


BYTES = st.one_of(
    st.binary(max_size=8),
    st.tuples(
        st.text(max_size=4) | st.sampled_from(['{"a": 1.0}', "[ ]", ' "é"', "1\n", '"\\ud800"']),
        st.sampled_from(["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-7", "latin-1"]),
    ).map(lambda pair: pair[0].encode(pair[1], "backslashreplace")),
)


@given(
    BYTES,
    st.sampled_from(["text/plain", "application/json", "image/svg+xml", "x/y+json", "a/b"]),
    st.sampled_from(
        ["", "utf-8", "ascii", "UTF-16", "utf-16be", "utf-7", "utf-8-sig", "x", "rot13"]
    ),
    st.sampled_from(["0.2", "0.1", "specversion 0.1"]),
)
def test_bytes_never_change_in_structured_mode(
    data: bytes, content_type: str, charset: str, label: str
) -> None:
    declared = f"{content_type}; charset={charset}" if charset else content_type
    if label == "0.1":
        written = CloudEvent(
            cloudEventsVersion="0.1",
            eventID="1",
            source="/s",
            eventType="t",
            contentType=declared,
            data=data,
        )
    else:
        written = event(label[-3:]).replace(contenttype=declared, data=data)
    try:
        record = to_kafka(written, "structured")
    except CloudEventError:
        return
    read = event_of(record)
    try:
        assert read.data_bytes() == data
    except CloudEventError:
        # The content type is neither text nor JSON, and nothing marks the string as Base64.
        assert declared == "a/b"
        assert base64.b64decode(read.data) == data


def test_a_json_value_of_a_type_that_is_not_json() -> None:
    # `data` may have any type: a Map is an object for any content type.
    document = (
        b'{"specversion":"0.2","id":"1","source":"","type":"t","contenttype":"a/b","data":[1]}'
    )
    read = from_json(document)
    assert read.data == [1]
    assert to_json(read) == document
    with pytest.raises(
        CloudEventError, match='the data is a JSON value, and its type "a/b" is not'
    ):
        to_kafka(read, "binary")
    with pytest.raises(CloudEventError, match="cannot be data of"):
        read.replace(source="/s").to_version("1.0")


# --- maps ---------------------------------------------------------------------------------------


def test_maps_keep_their_numbers_and_never_hide_data() -> None:
    document = (
        b'{"specversion":"0.2","id":"1","source":"/s","type":"t",'
        b'"m": {"data" : 1.10, "x":"\\u0001\x7f\xc2\x85 "}, "data" :\n {"data":2.50}}'
    )
    read = from_json(document)
    assert read.data == {"data": 2.5}
    assert read.data_bytes() == b'{"data":2.50}'
    assert read["m"] == '{"data":1.10,"x":"\\u0001\\u007f\\u0085 "}'
    assert to_json(read) == document
    assert event_of(to_kafka(read, "binary"))["m"] == read["m"]


def test_a_map_made_by_hand() -> None:
    made = event(m=JsonMap.of({"a": [1, None]}))
    assert made["m"] == '{"a":[1,null]}'
    assert JsonMap(made["m"]).value() == {"a": [1, None]}
    assert event(m=JsonMap('{\n "a": 1.0\n}'))["m"] == '{"a":1.0}'
    for wrong in ("[1]", "{", '{"a":NaN}'):
        with pytest.raises(CloudEventError, match="is no JSON object"):
            event(m=JsonMap(wrong))
    with pytest.raises(CloudEventError, match="is no JSON object"):
        JsonMap("[1]").value()
    with pytest.raises(CloudEventError, match="cannot be written as JSON"):
        JsonMap.of({"a": {1, 2}})


@pytest.mark.parametrize("text", ['{"a":1,"a":2}', '{"m": {"a":1, "\\u0061":1}}'])
@pytest.mark.parametrize("named", ['"specversion":"0.2"', '"specversion":"0.3"'])
def test_no_name_is_there_twice_in_a_map(text: str, named: str) -> None:
    document = f'{{{named},"id":"1","source":"/s","type":"t","m":{text}}}'
    with pytest.raises(CloudEventError, match=r"m: .* has a name twice \(JSON format 2\.2"):
        from_json(document)
    assert isinstance(from_json(document.replace('"a"', '"b"', 1))["m"], JsonMap)


def test_no_name_is_there_twice_in_a_map_beside_that_of_0_1() -> None:
    base = '"cloudEventsVersion":"0.1","eventID":"1","source":"/s","eventType":"t"'
    with pytest.raises(CloudEventError, match=r"m: .* has a name twice"):
        from_json(f'{{{base},"m":{{"a":1,"a":2}}}}')
