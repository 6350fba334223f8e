"""Builds instances in which one field has a given length or count, and the others their defaults.

The lengths are the borders of the encodings: the largest length that fits into one byte or into a
varint of one byte, and its neighbours. `instances` fills all fields at once, so it cannot make all
of them long. The instances are deterministic, and can be encoded at their version.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple, TypeVar

from ..messages.base import Message
from ..schema.layout import StructLayout, WireType, layout
from .instances import Fill, InstanceBuilder

__all__ = ["SIZES", "SizedField", "sized_fields", "sized_instance"]

M = TypeVar("M", bound=Message)

#: Lengths around which a signed or unsigned varint, a byte or an int16 is full. The varint of a
#: compact length encodes the length plus one.
SIZES: Final = (0, 1, 63, 64, 126, 127, 128, 255, 256, 16382, 16383, 16384, 32767)

#: Maximum count of elements of an array, by the kind of its elements. An element of fixed width or
#: a short string takes a few bytes, but a struct may take a hundred.
_MOST_PRIMITIVES: Final = 16384
_MOST_STRUCTS: Final = 256

#: The step of a path from an array to its elements, if they are strings or bytes.
_ELEMENT: Final = "[]"

_SIZED: Final = frozenset({"string", "bytes", "records"})


class SizedField(NamedTuple):
    """A field of a message version that has a length or a count.

    `path` has the names of the fields from the message to the field; `[]` is an element of an array
    of strings or bytes. `sizes` are the SIZES that the field can have within bounded memory.
    """

    path: tuple[str, ...]
    sizes: tuple[int, ...]


def sized_fields(message: type[Message], version: int) -> list[SizedField]:
    """Returns the strings, bytes and arrays of a message version, also those inside structs.

    Raises ValueError for a version that the message lacks.
    """
    return _sized_fields(layout(message._definition(), version), ())


def _sized_fields(shape: StructLayout, prefix: tuple[str, ...]) -> list[SizedField]:
    found: list[SizedField] = []
    for field in shape.all_fields():
        path = (*prefix, field.name)
        kind = field.type
        if kind.kind in _SIZED:
            found.append(SizedField(path, SIZES))
        elif kind.element is not None:
            most = _MOST_PRIMITIVES if kind.element.struct is None else _MOST_STRUCTS
            found.append(SizedField(path, tuple(size for size in SIZES if size <= most)))
            if kind.element.kind in _SIZED:
                found.append(SizedField((*path, _ELEMENT), SIZES))
        inner = kind.struct if kind.element is None else kind.element.struct
        if inner is not None:
            found += _sized_fields(inner, path)
    return found


def sized_instance(message: type[M], version: int, path: tuple[str, ...], size: int) -> M:
    """Returns an instance whose field at `path` has `size` bytes or elements.

    `path` is that of a `SizedField`. Arrays on the path have one element; all other fields have
    their defaults. Raises ValueError for a version that the message lacks.
    """
    shape = layout(message._definition(), version)
    builder = InstanceBuilder(message, Fill.LEAST, unknown_tags=False)
    made: M = _struct(builder, shape, message, path, size)
    return made


def _struct(
    builder: InstanceBuilder, shape: StructLayout, cls: type[Any], path: tuple[str, ...], size: int
) -> Any:
    made = builder.struct(shape, cls, 0)
    field = next(each for each in shape.all_fields() if each.name == path[0])
    setattr(made, field.attribute, _value(builder, field.type, path[1:], size))
    return made


def _value(builder: InstanceBuilder, kind: WireType, path: tuple[str, ...], size: int) -> Any:
    """Returns the value of a field on the path; `path` is what follows the field."""
    if kind.element is not None:
        if not path:
            return [_element(builder, kind.element) for _ in range(size)]
        return [_value(builder, kind.element, () if path == (_ELEMENT,) else path, size)]
    if kind.struct is not None:
        return _struct(builder, kind.struct, builder.classes[kind.struct.class_name], path, size)
    text = "x" * size
    return text if kind.kind == "string" else text.encode()


def _element(builder: InstanceBuilder, kind: WireType) -> Any:
    """Returns an element with its defaults, except for map keys, which differ from each other."""
    made = builder.value(kind, 0)
    if kind.struct is not None:
        for field in kind.struct.all_fields():
            if field.spec.map_key:
                setattr(made, field.attribute, builder.value(field.type, 0))
    return made
