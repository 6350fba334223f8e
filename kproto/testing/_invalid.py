"""Draws messages that cannot be encoded: copies of a valid message with one invalid value.

Import it through `strategies`, which raises a clear error if hypothesis is not installed.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, Generic, NamedTuple, TypeVar

import hypothesis.strategies as st
from hypothesis.strategies import SearchStrategy

from ..messages.base import Message
from ..schema.layout import LayoutField, StructLayout, WireType, layout, struct_of
from ..schema.naming import attribute_name
from ..schema.specs import FieldSpec
from ..wire.limits import MAX_STRING_BYTES, MAX_TAG
from ..wire.tags import RawTaggedField
from .instances import INTEGER_BOUNDS

__all__ = ["InvalidMessage", "break_one_field"]

M = TypeVar("M", bound=Message)


class InvalidMessage(NamedTuple, Generic[M]):
    """A message for which `message.encode(version)` must raise EncodeError.

    `path` is the field that the error names, such as `topics[1].name`. `reason` describes the
    invalid value.
    """

    message: M
    version: int
    path: str
    reason: str


class _InvalidValue(NamedTuple):
    """An invalid value for a field.

    If only an element of the value is invalid, `suffix` is the path of the element in the field,
    such as `[0]`.
    """

    value: Any
    reason: str
    suffix: str = ""


class _FieldSlot(NamedTuple):
    """An attribute of a message, or of a struct inside a message, and invalid values for it.

    `owner` is the message or struct. `path` is the path of the attribute in the message.
    """

    owner: Any
    attribute: str
    path: str
    wrong: SearchStrategy[_InvalidValue]


def break_one_field(message: M, version: int) -> SearchStrategy[InvalidMessage[M]]:
    """Draws copies of `message`, each with one value that cannot be encoded at `version`."""

    def broken(choice: tuple[int, Any]) -> InvalidMessage[M]:
        copied = message.copy()
        slot = list(_field_slots(_shape(copied, version), copied, ""))[choice[0]]
        wrong: _InvalidValue = choice[1]
        setattr(slot.owner, slot.attribute, wrong.value)
        return InvalidMessage(copied, version, slot.path + wrong.suffix, wrong.reason)

    slots = list(_field_slots(_shape(message, version), message, ""))
    return (
        st.integers(0, len(slots) - 1)
        .flatmap(lambda index: st.tuples(st.just(index), slots[index].wrong))
        .map(broken)
    )


def _shape(message: Message, version: int) -> StructLayout:
    return layout(message._definition(), version)


def _field_slots(shape: StructLayout, value: Any, path: str) -> Iterator[_FieldSlot]:
    """Yields the attributes of a message and of the structs inside it, in a fixed order.

    Leaves out ignorable fields that the version lacks, because encoding drops them.
    """
    for field in shape.all_fields():
        field_path = _join(path, field.attribute)
        yield _FieldSlot(value, field.attribute, field_path, _invalid_values(field.type))
        yield from _inner_slots(field, getattr(value, field.attribute), field_path)
    for spec in shape.absent:
        if not spec.ignorable:
            attribute = attribute_name(spec.name, of_message=shape.is_message)
            wrong = st.just(
                _InvalidValue(
                    _not_default(spec), "not the default, and the version lacks the field"
                )
            )
            yield _FieldSlot(value, attribute, _join(path, attribute), wrong)
    field_path = _join(path, "unknown_tagged_fields")
    yield _FieldSlot(value, "unknown_tagged_fields", field_path, _invalid_tags(shape))


def _inner_slots(field: LayoutField, value: Any, path: str) -> Iterator[_FieldSlot]:
    inner = struct_of(field.type)
    if inner is None or value is None:
        return
    if field.type.element is None:
        yield from _field_slots(inner, value, path)
        return
    for index, element in enumerate(value):
        yield from _field_slots(inner, element, f"{path}[{index}]")


def _invalid_values(kind: WireType) -> SearchStrategy[_InvalidValue]:
    choices = [st.just(_InvalidValue(object(), "an object of another kind"))]
    if not kind.nullable:
        choices.append(st.just(_InvalidValue(None, "null")))
    if kind.kind in INTEGER_BOUNDS:
        choices.append(_out_of_range(*INTEGER_BOUNDS[kind.kind]))
    choices.extend(_OF_ANOTHER_TYPE[kind.kind])
    if kind.element is not None:
        choices.append(_invalid_values(kind.element).map(_as_only_element))
    return st.one_of(choices)


def _as_only_element(wrong: _InvalidValue) -> _InvalidValue:
    return _InvalidValue([wrong.value], f"an element: {wrong.reason}", f"[0]{wrong.suffix}")


def _out_of_range(low: int, high: int) -> SearchStrategy[_InvalidValue]:
    outside = st.one_of(
        st.integers(min_value=high + 1, max_value=2**70),
        st.integers(min_value=-(2**70), max_value=low - 1),
    )
    return outside.map(lambda value: _InvalidValue(value, "out of range"))


def _type(*values: object) -> SearchStrategy[_InvalidValue]:
    return st.sampled_from([_InvalidValue(value, "of another type") for value in values])


_TOO_LONG: Final = st.sampled_from(
    ("x" * (MAX_STRING_BYTES + 1), "é" * (MAX_STRING_BYTES // 2 + 1))
)
_NOT_16_BYTES: Final = st.one_of(st.binary(max_size=15), st.binary(min_size=17, max_size=40))

#: Invalid values for each type. None of them equals a default of the type: encoding would omit a
#: tagged field with such a value instead of refusing it.
_OF_ANOTHER_TYPE: Final[dict[str, list[SearchStrategy[_InvalidValue]]]] = {
    **{kind: [_type(0.5, "1", b"\0", [])] for kind in INTEGER_BOUNDS},
    "bool": [_type("true", 0.5, 256, [])],
    "float64": [_type("1.5", b"", []), st.just(_InvalidValue(10**400, "out of range"))],
    "string": [
        _type(b"bytes", 5, ["text"]),
        st.just(_InvalidValue("\ud800", "a lone surrogate")),
        _TOO_LONG.map(lambda text: _InvalidValue(text, "too long")),
    ],
    "bytes": [_type("text", 5, ["text"])],
    "records": [_type("text", 5, ["text"])],
    "uuid": [
        _type("A" * 16, 5, []),
        _NOT_16_BYTES.map(lambda value: _InvalidValue(value, "not of 16 bytes")),
    ],
    "struct": [_type(5, "text", {"name": "text"})],
    "array": [_type(5, iter(()), object)],
}


def _invalid_tags(shape: StructLayout) -> SearchStrategy[_InvalidValue]:
    if not shape.flexible:
        tags = st.integers(0, MAX_TAG).map(lambda tag: [RawTaggedField(tag, b"")])
        return tags.map(
            lambda value: _InvalidValue(value, "tagged fields in a version that is not flexible")
        )
    outside = st.one_of(st.integers(-(2**40), -1), st.integers(MAX_TAG + 1, 2**40))
    wrong = outside.map(lambda tag: _InvalidValue([RawTaggedField(tag, b"")], "not a tag number"))
    known = [field.tag for field in shape.tagged if field.tag is not None]
    known += shape.tags_of_other_versions()
    if not known:
        return wrong
    known_tags = st.sampled_from(known).map(lambda tag: [RawTaggedField(tag, b"")])
    return st.one_of(
        wrong, known_tags.map(lambda value: _InvalidValue(value, "the tag of a known field"))
    )


def _not_default(spec: FieldSpec) -> object:
    """Returns a value that differs from the field's default.

    The value is None (null) if the field is an array or a struct whose default is not null.
    """
    default = spec.default_value()
    if default is None:
        return [] if spec.is_array else "" if spec.type == "string" else b""
    if spec.is_array or spec.is_struct:
        return None
    if isinstance(default, bool):
        return not default
    if isinstance(default, int | float):
        return default + 1 if default <= 0 else default - 1
    if spec.type == "uuid":
        return b"\1" * 16
    return default + b"x" if isinstance(default, bytes) else default + "x"


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
