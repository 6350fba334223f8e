"""Tests random instances of random messages, and random bytes.

Valid instances round-trip. An instance with an arbitrary object in a field is either encoded or
refused. Random bytes either decode to a message or raise DecodeError.
"""

from __future__ import annotations

import math

import hypothesis.strategies as st
from hypothesis import given, settings

from kproto.messages.base import Message
from kproto.schema.explain import explain_encode
from kproto.testing.strategies import any_message
from kproto.wire.errors import DecodeError, EncodeError
from tests.support.examples import examples

from .catalogue import NAMES, class_of, places, shape_of

#: Values that a careless caller may assign to a field.
ANYTHING = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=3),
    st.characters(categories=["Cs"]),
    st.binary(max_size=18),
    st.lists(st.none() | st.integers() | st.text(max_size=2), max_size=3),
    st.dictionaries(st.text(max_size=2), st.none(), max_size=2),
    st.builds(object),
)


@given(any_message())
@settings(max_examples=examples(60))
def test_encoded_messages_round_trip(drawn: tuple[Message, int]) -> None:
    message, version = drawn
    data = message.encode(version)
    again = type(message).decode(data, version)
    assert again == message
    assert again.encode(version) == data
    node = message.to_json(version)
    if not holds_infinity(message, version):  # Kafka writes infinity as text that it cannot read
        assert type(message).from_json(node, version).to_json(version) == node


def holds_infinity(message: Message, version: int) -> bool:
    shape = shape_of(message._definition().name, version)
    return any(
        place.field.type.kind == "float64" and math.isinf(place.value)
        for place in places(shape, message)
    )


@given(any_message(), st.data())
@settings(max_examples=examples(60))
def test_any_object_in_any_field_is_encoded_or_refused(
    drawn: tuple[Message, int], data: st.DataObject
) -> None:
    message, version = drawn
    found = list(places(shape_of(type(message).__name__, version), message))
    if not found:
        return
    place = data.draw(st.sampled_from(found))
    setattr(place.owner, place.field.attribute, data.draw(ANYTHING))
    spec = message._definition()
    try:
        written = message.encode(version)
    except EncodeError as error:
        assert (error.field or "").startswith(place.path)  # noqa: PT017 - either is right
    else:
        assert explain_encode(spec, version, message) is None
        type(message).decode(written, version)


@given(st.sampled_from(NAMES), st.binary(max_size=60), st.data())
@settings(max_examples=examples(100))
def test_any_bytes_are_a_message_or_a_decode_error(
    name: str, raw: bytes, data: st.DataObject
) -> None:
    cls = class_of(name)
    version = data.draw(st.sampled_from(cls.VALID_VERSIONS))
    try:
        message, end = cls.decode_from(raw, 0, version)
    except DecodeError:
        return
    assert end <= len(raw)
    message.encode(version)
