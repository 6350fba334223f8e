"""Tests the JSON event format: reading, writing, the three forms of data, and batches."""

from __future__ import annotations

import base64
import contextlib
import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kproto_cloudevents import (
    JSON_NULL,
    CloudEvent,
    CloudEventError,
    UnknownVersionError,
    from_json,
    from_json_batch,
    to_json,
    to_json_batch,
)

#: The required attributes, as JSON members.
BASE = '"specversion":"1.0","id":"1","source":"/s","type":"t"'
ATTRIBUTES = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}


def document(rest: str = "") -> bytes:
    return f"{{{BASE}{',' if rest else ''}{rest}}}".encode()


# The four examples in section 3.2 of the JSON format, with another payload.

EXAMPLE_BINARY = """{
    "specversion" : "1.0",
    "type" : "com.example.someevent",
    "source" : "/mycontext",
    "id" : "A234-1234-1234",
    "time" : "2018-04-05T17:31:00Z",
    "comexampleext1" : "value",
    "comexampleothervalue" : 5,
    "datacontenttype" : "application/vnd.apache.thrift.binary",
    "data_base64" : "AAEC"
}"""


def test_binary_data_is_base64() -> None:
    event = from_json(EXAMPLE_BINARY)
    assert event.data == b"\x00\x01\x02"
    assert event["comexampleothervalue"] == 5
    assert event.time == "2018-04-05T17:31:00Z"
    assert event.extensions == {"comexampleext1": "value", "comexampleothervalue": 5}


def test_text_data_of_other_types_is_a_string() -> None:
    event = from_json(
        document('"unset":null,"datacontenttype":"application/xml","data":"<much wow=\\"xml\\"/>"')
    )
    assert event.data == '<much wow="xml"/>'
    assert event.data_bytes() == b'<much wow="xml"/>'
    assert "unset" not in event


def test_json_data_is_a_json_value() -> None:
    event = from_json(document('"subject":null,"data":{"a":"abc","b":123,"c":true}'))
    assert event.data == {"a": "abc", "b": 123, "c": True}
    assert event.subject is None
    assert event.datacontenttype is None


def test_a_json_string_is_decoded_once() -> None:
    event = from_json(document('"data":"{\\"a\\":1}"'))
    assert event.data == '{"a":1}'
    assert event.data_bytes() == b'"{\\"a\\":1}"'


@pytest.mark.parametrize("content_type", ["text/xml", "application/octet-stream", "x/jsonp"])
def test_null_is_data_only_of_a_json_type(content_type: str) -> None:
    """With a JSON content type, a `data` member of null is JSON's null (JSON format, 3.1.1).

    With another content type, `data` must be a string (3.1.2), so the reader refuses null.
    """
    with pytest.raises(CloudEventError) as refused:
        from_json(document(f'"datacontenttype":"{content_type}","data":null'))
    assert str(refused.value) == (
        f'data: null where the datacontenttype "{content_type}" requires a string; an event '
        'without data has no such member (JSON format 3.1.2 "Payload Deserialization")'
    )


@pytest.mark.parametrize(
    ("rest", "data", "has_data"),
    [
        ("", None, False),
        ('"data":null', JSON_NULL, True),
        ('"data_base64":null', None, False),
        ('"data_base64":""', b"", True),
        ('"data":""', "", True),
        ('"datacontenttype":"text/plain","data":""', "", True),
        ('"datacontenttype":"application/problem+json;charset=utf-8","data":[1]', [1], True),
        ('"datacontenttype":null,"data":[1]', [1], True),
        ('"data":{"data":{"id":1}}', {"data": {"id": 1}}, True),
        ('"subject":"data","data":1', 1, True),
        ('"subject":"\\"data\\":2","data":1', 1, True),
        ('"d\\u0061t\\u0061" : 1', 1, True),
    ],
)
def test_forms_of_data(rest: str, data: Any, has_data: bool) -> None:
    event = from_json(document(rest))
    assert event.data == data
    assert event.has_data is has_data


def test_numbers_of_data_keep_their_text() -> None:
    spelled = '{"a":1.10,"b":1e400,"c":0.1000000000000000055511151231257827,"d":-0}'
    event = from_json(document(f'"data": {spelled} '))
    assert event.data_bytes() == spelled.encode()
    assert to_json(event.replace(id="2")) == document(f'"data":{spelled}').replace(b'"1",', b'"2",')


def test_integers_beyond_pythons_limit_are_kept() -> None:
    digits = "9" * 5000
    event = from_json(document(f'"data":[{digits}]'))
    assert event.data_bytes() == f"[{digits}]".encode()
    assert len(event.data) == 1


def test_any_json_form_of_the_text() -> None:
    spaced = EXAMPLE_BINARY.encode()
    assert from_json(spaced) == from_json(json.dumps(json.loads(spaced)))
    assert from_json(b"\xef\xbb\xbf" + spaced) == from_json(spaced)
    assert from_json(b" \r\n" + spaced + b"\t ") == from_json(spaced)
    escaped = document().replace(b'"id"', b'"\\u0069d"')
    assert from_json(escaped).id == "1"


@pytest.mark.parametrize(
    "text", [EXAMPLE_BINARY.encode(), b"\xef\xbb\xbf" + document(' "data" :1')]
)
def test_reading_then_writing_gives_the_same_bytes(text: bytes) -> None:
    assert to_json(from_json(text)) == text


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "an event is a JSON object (JSON format 3)"),
        (b"[]", "an event is a JSON object (JSON format 3)"),
        (b"\xff", "the document is not UTF-8 at byte 0 (RFC 8259, 8.1)"),
        (
            b"{",
            "not JSON: Expecting property name enclosed in double quotes at character 1 (RFC 8259)",
        ),
        (document() + b"x", "more follows the event at character 55 (JSON format 3)"),
        (
            b'{"id":"1"}',
            (
                "specversion: the required attribute is missing "
                '(JSON format 3, CloudEvents 1.0 "REQUIRED Attributes")'
            ),
        ),
        (
            b'{"specversion":"1.0","id":null}',
            (
                "id: the required attribute is missing "
                '(JSON format 3, CloudEvents 1.0 "REQUIRED Attributes")'
            ),
        ),
        (
            b'{"specversion":1.0}',
            "specversion: a number that is not whole where a string belongs (JSON format 2.2)",
        ),
        (
            document('"id":"2"'),
            'id: the member appears twice (JSON format 3, CloudEvents 1.0 "Context Attributes")',
        ),
        (
            document('"data":1,"data_base64":"AA=="'),
            "data_base64: data and data_base64 exclude each other (JSON format 3.1)",
        ),
        (document('"data_base64":"A"'), "data_base64: the value is not Base64 (JSON format 3.1)"),
        (
            document('"data_base64":"AAAA="'),
            "data_base64: the value is not Base64 (JSON format 3.1)",
        ),
        (document('"data_base64":1'), "data_base64: the value is not Base64 (JSON format 3.1)"),
        (
            document('"datacontenttype":"text/xml","data":{}'),
            (
                'data: an object where the datacontenttype "text/xml" requires a string '
                '(JSON format 3.1.2 "Payload Deserialization")'
            ),
        ),
        (
            document('"time":"tomorrow"'),
            'time: "tomorrow" is not RFC 3339 (JSON format 2.2, CloudEvents 1.0 "Timestamp")',
        ),
        (document('"time":5'), "time: a number where a string belongs (JSON format 2.2)"),
        (document('"subject":true'), "subject: a boolean where a string belongs (JSON format 2.2)"),
        (
            document('"n":1.0'),
            (
                "n: a number that is not whole where a string, boolean or whole number belongs "
                "(JSON format 2.2)"
            ),
        ),
        (
            document('"n":[1]'),
            "n: an array where a string, boolean or whole number belongs (JSON format 2.2)",
        ),
        (
            document('"n":{"a":[]}'),
            "n: an object where a string, boolean or whole number belongs (JSON format 2.2)",
        ),
        (
            document('"n":2147483648'),
            (
                "n: the integer is beyond 32 bits: send it as a String "
                '(JSON format 2.2, CloudEvents 1.0 "Integer")'
            ),
        ),
        (
            document(f'"n":{"9" * 5000}'),
            (
                "n: the integer is beyond 32 bits: send it as a String "
                '(JSON format 2.2, CloudEvents 1.0 "Integer")'
            ),
        ),
        (
            document(f'"subject":{"9" * 5000}'),
            "subject: a number where a string belongs (JSON format 2.2)",
        ),
        (
            document('"N":"x"'),
            (
                "N: an attribute name has only lower-case letters a to z and digits "
                '(JSON format 2.2, CloudEvents 1.0 "Naming Conventions")'
            ),
        ),
        (
            document('"x":"\\ud800"'),
            (
                'x: "\\ud800" has U+D800, which is not allowed in a String '
                '(JSON format 2.2, CloudEvents 1.0 "String")'
            ),
        ),
        (document('"data":NaN'), "not JSON: NaN is no JSON value (RFC 8259)"),
    ],
)
def test_broken_documents(text: bytes, message: str) -> None:
    with pytest.raises(CloudEventError) as caught:
        from_json(text)
    assert str(caught.value) == message


def test_other_broken_documents() -> None:
    for text in (
        b'{"a":1,}',
        b'{"a" 1}',
        b'{"a":1 "b":2}',
        b"{1:2}",
        document('"data":[1,]'),
        document('"data":"\t"'),
        b'{"a":' * 100_000,
        document('"data":' + "[" * 100_000),
        "{\ud800}",
    ):
        with pytest.raises(CloudEventError):
            from_json(text)
    number: Any = 5
    with pytest.raises(CloudEventError, match="bytes or str, not int"):
        from_json(number)


def test_data_never_shows_in_an_error() -> None:
    with pytest.raises(CloudEventError) as caught:
        from_json(document('"data":{"password":"s3cr3t"'))
    assert "s3cr3t" not in str(caught.value)
    with pytest.raises(CloudEventError) as caught:
        from_json(document('"datacontenttype":"text/plain","data":{"password":"s3cr3t"}'))
    assert "s3cr3t" not in str(caught.value)


def test_unknown_version() -> None:
    with pytest.raises(UnknownVersionError, match=r'specversion: "9\.9" is no version known here'):
        from_json(document().replace(b"1.0", b"9.9"))


# --- writing ------------------------------------------------------------------------------------


def test_writing() -> None:
    event = CloudEvent(ATTRIBUTES, n=5, ok=True, raw=b"\x00", note='ü"', data={"a": [1, "ü"]})
    assert to_json(event).decode() == (
        '{"specversion":"1.0","id":"1","source":"/s","type":"t","n":5,"ok":true,'
        '"raw":"AA==","note":"ü\\"","data":{"a":[1,"ü"]}}'
    )


@pytest.mark.parametrize(
    ("content_type", "data", "member"),
    [
        (None, b"\x00", '"data_base64":"AA=="'),
        (None, b"{}", '"data_base64":"e30="'),
        ("application/json", b' {"a": 1.10}\n', '"data":{"a": 1.10}'),
        ("application/json", b"{", '"data_base64":"ew=="'),
        ("application/json", b"\xff", '"data_base64":"/w=="'),
        ("application/json", b"NaN", '"data_base64":"TmFO"'),
        ("application/json;charset=latin-1", b'"\xfc"', '"data":"ü"'),
        ("text/plain", b"a", '"data_base64":"YQ=="'),
        ("text/plain", 'a"', '"data":"a\\""'),
        ("application/json", JSON_NULL, '"data":null'),
    ],
)
def test_the_member_that_data_becomes(content_type: str | None, data: Any, member: str) -> None:
    event = CloudEvent(ATTRIBUTES, datacontenttype=content_type, data=data)
    written = to_json(event)
    assert written.decode().endswith(f",{member}}}")
    assert from_json(written) == event


ATTRIBUTE_VALUES = st.one_of(
    st.text(st.characters(codec="utf-8", exclude_categories=["Cc", "Cn"]), max_size=20),
    st.booleans(),
    st.integers(-(2**31), 2**31 - 1),
)
JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.from_regex("[a-z][a-z0-9]{0,9}", fullmatch=True), ATTRIBUTE_VALUES),
    JSON_VALUES,
)
@pytest.mark.slow
def test_writing_then_reading_gives_the_same_event(
    extensions: dict[str, str | bool | int], value: Any
) -> None:
    extensions = {
        name: held
        for name, held in extensions.items()
        if name not in ("data", "time", "subject", "dataschema", "datacontenttype")
    }
    event = CloudEvent({**extensions, **ATTRIBUTES}, data=JSON_NULL if value is None else value)
    back = from_json(to_json(event))
    assert back == event
    assert dict(back.attributes) == dict(event.attributes)
    assert back.json() == value


@given(st.binary())
def test_binary_data_survives(data: bytes) -> None:
    event = CloudEvent(ATTRIBUTES, data=data)
    written = to_json(event)
    assert json.loads(written)["data_base64"] == base64.b64encode(data).decode()
    assert from_json(written).data == data


@given(
    JSON_VALUES | st.dictionaries(st.sampled_from([*ATTRIBUTES, "data", "time", "x"]), JSON_VALUES)
)
def test_any_json_is_an_event_or_a_cloud_event_error(value: Any) -> None:
    text = json.dumps(value)
    with contextlib.suppress(CloudEventError):
        assert to_json(from_json(text)) == text.encode()


# --- batches ------------------------------------------------------------------------------------


def test_batches() -> None:
    events = [CloudEvent(ATTRIBUTES, data=b"\x00"), CloudEvent(ATTRIBUTES, id="2", data={"a": 1})]
    written = to_json_batch(events)
    assert written == b"[" + to_json(events[0]) + b"," + to_json(events[1]) + b"]"
    assert from_json_batch(written) == events
    assert from_json_batch(b" [ ] ") == []
    assert to_json_batch([]) == b"[]"
    spaced = b" [ " + document('"data": {"id" : 1.0}') + b" , " + document() + b" ] "
    first, second = from_json_batch(spaced)
    assert to_json(first) == document('"data": {"id" : 1.0}')
    assert first.data_bytes() == b'{"id" : 1.0}'
    assert to_json(second) == document()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{}", "a batch is a JSON array"),
        (b"[1]", "an event is a JSON object"),
        (b"[" + document(), "the array is broken"),
        (b"[" + document() + b" " + document() + b"]", "the array is broken"),
        (b"[" + document() + b"]x", "more follows the batch"),
        (b"[]]", "more follows the batch"),
        (b"[" + document() + b",]", "an event is a JSON object"),
        (b"[" + document() + b"," + document('"time":"x"') + b"]", 'event 1, time: "x" is not'),
        (b"[" + document('"a":1,"a":2') + b"]", "event 0, a: the member appears twice"),
    ],
)
def test_broken_batches(text: bytes, message: str) -> None:
    with pytest.raises(CloudEventError, match=message):
        from_json_batch(text)


@pytest.mark.parametrize("label", ["1.0", "0.3"])
def test_json_with_an_unpaired_surrogate_in_its_charset_is_base64(label: str) -> None:
    content_type = "application/json; charset=utf-7"
    event = CloudEvent(
        ATTRIBUTES | {"specversion": label}, datacontenttype=content_type, data=b'"+2AA-"'
    )
    assert from_json(to_json(event)).data == b'"+2AA-"'


@pytest.mark.parametrize("version", ["1.0", "0.3"])
@pytest.mark.parametrize(
    ("content_type", "data", "back"),
    [
        ("application/json", b" \n[1.10, 2]\t", b"[1.10, 2]"),
        ("application/json", b"\xef\xbb\xbf[1]", b"[1]"),
        ("a/b+json; charset=utf-8-sig", b"[1]", b"\xef\xbb\xbf[1]"),
        ("a/b+json; charset=utf-16", "\ufeff[1]".encode("utf-16-be"), "[1]".encode("utf-16")),
    ],
)
def test_json_bytes_are_encoded_again_in_a_document(
    version: str, content_type: str, data: bytes, back: bytes
) -> None:
    event = CloudEvent(id="1", source="/s", type="t", datacontenttype=content_type, data=data)
    event = event.to_version(version)
    read = from_json(to_json(event))
    assert read == event
    assert read.data_bytes() == back
