"""Tests that reading JSON events by learned shapes has the same results as without shapes.

A shape is a regular expression for the text that repeats from event to event. It is learned from a
valid event.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from re import _constants, _parser  # type: ignore[attr-defined]  # the parts of a parsed pattern
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kproto_cloudevents import CloudEvent, CloudEventError, from_json, from_kafka, to_json
from kproto_cloudevents.event.data import JsonText
from kproto_cloudevents.formats import json_shapes
from kproto_cloudevents.formats.json_shapes import MAX_LENGTH, MAX_SHAPES, PATIENCE
from kproto_cloudevents.versions.check_plans import MAX_NAMES
from kproto_cloudevents.versions.version_tables import ALL_VERSIONS

pytestmark = pytest.mark.filterwarnings("ignore::kproto_cloudevents.CloudEventWarning")

BASE = {"specversion": "1.0", "id": "1", "source": "/s", "type": "t"}
OLD = {"cloudEventsVersion": "0.1", "eventID": "1", "source": "/s", "eventType": "t"}
#: More attributes, each valid in some versions.
MORE: dict[str, list[Any]] = {
    "time": ["2020-01-01T00:00:00Z", "2020-02-29T00:00:00Z"],
    "datacontenttype": ["application/json", "text/plain", "a/b", "text/plain; charset=latin-1"],
    "contenttype": ["text/plain"],
    "contentType": ["application/json"],
    "dataschema": ["https://a/b"],
    "datacontentencoding": ["base64"],
    "subject": ["data", "data_base64", "\xa0", "é", "😀"],
    "zone": ["", ":", "{", ",", " ", "x" * 300, 5, True],
}
WRONG: list[Any] = [
    None,
    "",
    "%",
    "\x7f",
    "tomorrow",
    "9.9",
    "0.3",
    "0.2",
    '"',
    "\\",
    2**40,
    [],
    {},
]
DATA: list[Any] = [
    *({}, {"data": 1}, {"a": {"data": [1, {"id": "2"}]}}, [], [[1.5, -0.0]], None, True),
    *("x", "", "eA==", '"', "\\", 12345678901234567890, 1e400, "}", '{"data":'),
]
#: The separators between items and after keys.
SEPARATORS = [(",", ":"), (", ", ": "), (",\n", ":"), (" , ", " : ")]


@st.composite
def documents(draw: st.DrawFn) -> dict[str, Any]:
    """Draws an event as a JSON object.

    Usually the event has all required members, and at most one invalid value.
    """
    base = draw(st.sampled_from([BASE, BASE, {**BASE, "specversion": "0.3"}, OLD]))
    names = draw(st.permutations([*base, *draw(st.lists(st.sampled_from([*MORE]), max_size=3))]))
    known: dict[str, list[Any]] = {**MORE, **{name: [value] for name, value in base.items()}}
    made = {name: draw(st.sampled_from(known[name])) for name in names}
    match draw(st.integers(0, 9)):
        case 0:
            del made[draw(st.sampled_from([*made]))]
        case 1 | 2:
            made[draw(st.sampled_from([*made]))] = draw(st.sampled_from(WRONG))
        case 3:
            made["data_base64"] = draw(st.sampled_from(["", "eA==", "!", 1]))
        case _:
            pass
    if draw(st.booleans()):
        made["data"] = draw(st.sampled_from(DATA))
    if draw(st.integers(0, 5)) == 0:
        made = dict(draw(st.permutations([*made.items()])))
    return made


def forget() -> None:
    """Removes all learned shapes, and the plans of each version, from which shapes are made."""
    json_shapes._SHAPES.clear()
    json_shapes._latest[0] = None
    json_shapes._missed[0] = 0
    for version in ALL_VERSIONS:
        version.plans.clear()


@pytest.fixture(autouse=True)
def _without_shapes() -> Iterator[None]:
    forget()
    yield
    forget()


def shapes() -> list[json_shapes._Shape]:
    """Returns all learned shapes."""
    return [shape for each in json_shapes._SHAPES.values() for shape in each]


def outcome(document: bytes | str) -> object:
    """Returns all visible results of reading an event, or the error with its exact text."""
    try:
        event = from_json(document)
    except CloudEventError as error:
        return type(error), str(error), error.reason, error.where, error.clauses
    held = event._data
    text = held.text if isinstance(held, JsonText) else None
    shown = [(name, type(value), value) for name, value in event.items()]
    # The repr of the data, because 1, True and 1.0 are equal.
    data = type(held), text, type(event.data), repr(event.data)
    return event.specversion, shown, data, to_json(event)


def alike(documents: list[bytes]) -> None:
    """Checks that earlier reads do not change the result of reading a document.

    Reads each document without learned shapes, and then again, before and after the other
    documents.
    """
    expected = []
    for each in documents:
        forget()
        expected.append(outcome(each))
    forget()
    for _ in range(2):
        for each, wanted in zip(documents, expected, strict=True):
            assert outcome(each) == wanted
    for each, wanted in zip(documents[::-1], expected[::-1], strict=True):
        assert outcome(each) == wanted


@given(documents(), documents(), st.sampled_from(SEPARATORS), st.booleans())
def test_a_document_is_read_alike_with_and_without_a_shape(
    one: dict[str, Any], other: dict[str, Any], separators: tuple[str, str], ascii_only: bool
) -> None:
    # `mixed` has the shape of `one`, with values from which the shape was not learned.
    mixed = {name: other.get(name, value) for name, value in one.items()}
    texts = [
        json.dumps(each, separators=separators, ensure_ascii=ascii_only)
        for each in (one, mixed, other)
    ]
    alike([text.encode() for text in texts])


#: Bytes with a meaning in JSON, and some without.
BYTES = st.sampled_from(b'"\\{}[]:, \n\t\x00\x1f\x7f1-e.ntd\xef\xbb\xbf\xc3\xff')


@st.composite
def nearly(draw: st.DrawFn, document: bytes) -> bytes:
    """Draws the document with some bytes changed, removed, repeated or inserted, or cut off."""
    at = draw(st.integers(0, len(document) - 1))
    to = draw(st.integers(at, min(at + 12, len(document))))
    match draw(st.integers(0, 4)):
        case 0:
            return document[:at] + bytes([draw(BYTES)]) + document[at + 1 :]
        case 1:
            return document[:at] + document[to:]
        case 2:
            return document[:to] + document[at:]
        case 3:
            return document[:at] + bytes([draw(BYTES)]) + document[at:]
        case _:
            return document[:at]


TYPED = {**BASE, "subject": "data", "datacontenttype": "application/json"}
WRITTEN = [
    json.dumps({**BASE, "data": {"id": [1, "x"]}}).encode(),
    json.dumps({**BASE, "zone": "é", "data": "}"}, ensure_ascii=False).encode(),
    json.dumps({**TYPED, "data": None}, separators=(",", ":")).encode(),
    json.dumps({**BASE, "datacontenttype": "text/plain", "data": "x"}, indent=1).encode(),
    json.dumps(BASE).encode() + b"\n",
    json.dumps(BASE).encode(),
    json.dumps({**OLD, "contentType": "a/b", "data": "x"}).encode(),
]


@given(st.sampled_from(WRITTEN).flatmap(lambda each: st.tuples(st.just(each), nearly(each))))
@example((WRITTEN[0], WRITTEN[0].replace(b'"1", ', b'"1\\u0022", ')))
@example((WRITTEN[0], WRITTEN[0].replace(b'"data"', b'"d\\u0061ta"')))
@example((WRITTEN[0], WRITTEN[0][:-1] + b', "id": "2"}'))
@example((WRITTEN[0], WRITTEN[0][:-1] + b', "data": 2}'))
@example((WRITTEN[0], WRITTEN[0].replace(b"[1,", b"[NaN,")))
@example((WRITTEN[0], WRITTEN[0].replace(b"[1,", b"[" + b"1" * 5000 + b",")))
@example((WRITTEN[0], WRITTEN[0].replace(b"[1,", b"[" * 100_000)))
@example((WRITTEN[0], WRITTEN[0] + b" \n"))
@example((WRITTEN[0], WRITTEN[0] + b"\x0b"))
@example((WRITTEN[0], b"\xef\xbb\xbf" + WRITTEN[0]))
@example((WRITTEN[2], WRITTEN[2].replace(b'"1"', b'"\n"')))
@example((WRITTEN[5], WRITTEN[5] + b"}"))
@example((WRITTEN[5], WRITTEN[5] + b"\n"))
@example((WRITTEN[4], WRITTEN[4].replace(b"}", b'}{"id":"2"}')))
def test_a_document_close_to_a_known_shape_is_read_alike(pair: tuple[bytes, bytes]) -> None:
    known, broken = pair
    forget()
    wanted = outcome(broken)
    forget()
    for _ in range(2):
        outcome(known)
        assert shapes()
        assert outcome(broken) == wanted


@pytest.mark.parametrize("document", WRITTEN)
def test_a_shape_serves_every_later_document(document: bytes) -> None:
    first = outcome(document)
    (shape,) = shapes()
    other = document.replace(b'"/s"', b'"https://a/b?c"')
    for each in (document, other, other):
        assert json_shapes.shaped_members(each.decode(), lambda *_: None) is not None
    assert outcome(document) == first
    event = from_json(other)
    assert (event.source, to_json(event)) == ("https://a/b?c", other)
    assert shapes() == [shape]


def test_a_value_that_fails_the_quick_check_is_fully_validated() -> None:
    right, wrong = ({**BASE, "dataschema": f"{each}://a"} for each in ("https", "%"))
    from_json(json.dumps({**BASE, "dataschema": "x:a"}))
    assert from_json(json.dumps(right))["dataschema"] == "https://a"
    with pytest.raises(CloudEventError, match=r"dataschema.*is not an absolute URI"):
        from_json(json.dumps(wrong))


@pytest.mark.parametrize("kind", ["text/xml", "a/b", "application/json", "", None])
@pytest.mark.parametrize("version", ["1.0", "0.3", "0.2"])
def test_data_is_refused_alike_by_its_type(version: str, kind: str | None) -> None:
    name = "contenttype" if version == "0.2" else "datacontenttype"
    known = {**BASE, "specversion": version, name: "text/xml", "data": "x"}
    if kind is None:
        del known[name]
    for encoded in ({}, {"datacontentencoding": "base64"}):
        others = [{**known, **encoded, "data": each} for each in DATA]
        alike([json.dumps(each).encode() for each in (known, *others)])
        if kind is not None:
            typed = [{**each, name: kind} for each in (known, *others)]
            alike([json.dumps(each).encode() for each in typed])
            # Data that the type allows first, then data that it refuses.
            alike([json.dumps(each).encode() for each in (*typed, *others)])


def test_data_of_a_known_document_keeps_its_text() -> None:
    for number in ("1", "1.0", "1e0", "1E+0", "[1 ,2]"):
        document = f'{{"specversion":"1.0","id":"1","source":"/s","type":"t","data": {number} \n}}'
        event = from_json(document)
        assert event.data_bytes() == number.encode()
        assert event.json() == json.loads(number)
    assert len(shapes()) == 1


def test_data_is_a_new_object_each_time() -> None:
    for _ in range(2):
        event = from_json(WRITTEN[0])
        event.data["id"].append(2)
        assert event.data == {"id": [1, "x"]}


@pytest.mark.parametrize(
    "document",
    [
        '{"specversion":"1.0","id":"1","source":"/s","type":"t","x":5}',
        '{"specversion":"1.0","id":"1","source":"/s","type":"t","subject":null}',
        '{"specversion":"1.0","id":"1","source":"/s","type":"t","x":null,"y":null}',
        '{"specversion":"1.0","id":"1","source":"/s","type":"t","x":5,"y":null}',
        '{"specversion":"1.0","id":"1\\t","source":"/s","type":"t"}'.replace("\\t", "\\u00e9"),
        '{"specversion":"1.0","i\\u0064":"1","source":"/s","type":"t"}',
        '{"specversion":"1.0","id":"1","source":"/s","type":"t","data" :1}',
        '{"specversion":"1.0","id":"1","source":"/s","data":1,"type":"t"}',
        '{"specversion":"1.0","id":"1","source":"/s","type":"t","data_base64":"eA=="}',
        '{"specversion":"0.3","id":"1","source":"/s","type":"t","m":{"a":"b"}}',
    ],
)
def test_other_documents_teach_no_shape(document: str) -> None:
    for _ in range(2):
        from_json(document)
    assert not shapes()


def test_each_version_has_its_own_shape() -> None:
    for _ in range(2):
        for label in ("1.0", "0.3", "0.2"):
            assert from_json(json.dumps({**BASE, "specversion": label})).specversion == label
    assert len(shapes()) == 3


def test_few_documents_are_examined_after_many_without_a_shape() -> None:
    others = [json.dumps({**BASE, "x": number}) for number in range(PATIENCE)]
    for document in others * 3:
        from_json(document)
    known = json.dumps(BASE)
    for count in range(PATIENCE):
        from_json(known)
        assert len(shapes()) <= 1, count
    (shape,) = shapes()
    from_json(known)
    # From here on the shape of every document is compared again.
    for document in (*others, known):
        from_json(document)
    assert json_shapes._missed == [0]
    assert json_shapes._latest == [shape]


def test_shapes_are_limited_in_number_and_length() -> None:
    for index in range(MAX_SHAPES + 2):
        from_json(json.dumps({**BASE, f"x{index}": ""}))
        from_json(json.dumps({**BASE, "y": "", f"x{index}": ""}))
    assert len(shapes()) == 2 * MAX_SHAPES
    forget()
    from_json(json.dumps({**BASE, **{f"z{index}": "" for index in range(MAX_NAMES)}}))
    from_json(json.dumps(BASE, separators=("," + " " * MAX_LENGTH, ":")))
    assert not shapes()
    # Long values are allowed.
    from_json(json.dumps({**BASE, "id": "x" * MAX_LENGTH}))
    assert len(shapes()) == 1


def test_shape_patterns_match_in_linear_time() -> None:
    for separators in SEPARATORS:
        for each in (BASE, OLD, {**BASE, "a0": ".*", "data": 1}):
            from_json(json.dumps(each, separators=separators))
    patterns = [shape.match.__self__.pattern for shape in shapes()]  # type: ignore[attr-defined]
    assert len(patterns) >= len(SEPARATORS)
    quote = ord('"')
    for pattern in patterns:
        for operator, argument in _parser.parse(pattern):
            if operator is _constants.SUBPATTERN:
                *_, inside = argument
                match list(inside):
                    case [(_constants.POSSESSIVE_REPEAT, (0, _constants.MAXREPEAT, repeated))]:
                        # The repetition cannot pass the quote that follows it.
                        assert list(repeated) == [(_constants.NOT_LITERAL, quote)]
                    case literals:  # the version
                        assert all(kind is _constants.LITERAL for kind, _ in literals)
            elif operator is _constants.AT:
                assert argument is _constants.AT_END_STRING
            else:
                assert operator is _constants.LITERAL


def test_a_record_with_a_known_document_is_written_as_it_was_read() -> None:
    headers = (("content-type", b"application/cloudevents+json"), ("trace", b"1"))
    for index in range(3):
        value = json.dumps({**BASE, "id": str(index), "data": {"n": index}}).encode()
        event = from_kafka(b"k", value, headers)
        assert isinstance(event, CloudEvent)
        assert event.mode == "structured"
        assert event.to_kafka_record() == (b"k", value, headers)
        assert event.data == {"n": index}
