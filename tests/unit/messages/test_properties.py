"""Drawn instances of drawn messages: what can be written is read back, and the rest is refused."""

from __future__ import annotations

import sys
from typing import Any

import hypothesis.strategies as st
from hypothesis import given, settings

from kproto.messages.base import Message
from kproto.schema.explain import explain_encode
from kproto.schema.layout import StructLayout, WireType
from kproto.wire.errors import DecodeError, EncodeError
from kproto.wire.tags import RawTaggedField
from kproto.wire.uuid import Uuid

from .catalogue import NAMES, class_of, places, shape_of

PRIMITIVES: dict[str, st.SearchStrategy[Any]] = {
    "bool": st.booleans(),
    "int8": st.integers(-(2**7), 2**7 - 1),
    "int16": st.integers(-(2**15), 2**15 - 1),
    "uint16": st.integers(0, 2**16 - 1),
    "int32": st.integers(-(2**31), 2**31 - 1),
    "uint32": st.integers(0, 2**32 - 1),
    "int64": st.integers(-(2**63), 2**63 - 1),
    "float64": st.floats(allow_nan=False),
    "string": st.text(max_size=20),
    "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
    "bytes": st.binary(max_size=20),
    "records": st.binary(max_size=20),
}

#: Anything that a careless caller may put into a field.
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


def values(kind: WireType, classes: dict[str, Any]) -> st.SearchStrategy[Any]:
    """What a type can hold."""
    if kind.kind == "array":
        assert kind.element is not None
        made: st.SearchStrategy[Any] = st.lists(values(kind.element, classes), max_size=3)
    elif kind.struct is not None:
        made = structs(kind.struct, classes)
    else:
        made = PRIMITIVES[kind.kind]
    return st.none() | made if kind.nullable else made


@st.composite
def structs(draw: st.DrawFn, shape: StructLayout, classes: dict[str, Any]) -> Any:
    fields = {f.attribute: draw(values(f.type, classes)) for f in shape.all_fields()}
    made = classes[shape.class_name](**fields)
    if shape.flexible:
        known = {field.tag for field in shape.tagged}
        tags = st.integers(0, 2**32 - 1).filter(lambda tag: tag not in known)
        drawn = draw(st.dictionaries(tags, st.binary(max_size=9), max_size=2))
        made.unknown_tagged_fields = [RawTaggedField(tag, drawn[tag]) for tag in sorted(drawn)]
    return made


@st.composite
def messages(draw: st.DrawFn) -> tuple[Any, int]:
    """A message and the version for which it was drawn."""
    cls = class_of(draw(st.sampled_from(NAMES)))
    version = draw(st.sampled_from(cls.VALID_VERSIONS))
    classes = vars(sys.modules[cls.__module__])
    return draw(structs(shape_of(cls.__name__, version), classes)), version


@given(messages())
@settings(max_examples=60)
def test_what_is_written_is_read_back(drawn: tuple[Message, int]) -> None:
    message, version = drawn
    data = message.encode(version)
    again = type(message).decode(data, version)
    assert again == message
    assert again.encode(version) == data
    node = message.to_json(version)
    assert type(message).from_json(node, version).to_json(version) == node


@given(messages(), st.data())
@settings(max_examples=60)
def test_any_object_in_any_field_is_written_or_refused(
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
@settings(max_examples=100)
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
