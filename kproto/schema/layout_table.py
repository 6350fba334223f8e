"""Returns the layout of a message version as rows: offset, size and description of each field.

Sizes and offsets are in bytes, without the header of the request or response.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from .changes import find_message, message_layout
from .definitions import Definitions, union
from .glossary import load_glossary
from .layout import FORMATS, LayoutField, StructLayout, WireType, struct_of
from .layout_comparison import default_words

__all__ = ["LayoutRow", "least_size", "message_rows"]


@dataclass(frozen=True, slots=True)
class LayoutRow:
    """A field of a message version.

    - `field`: the path of the field (`Topics.Partitions.LeaderEpoch`); `depth`: the number of
      structs around the field in that path.
    - `offset`: counted from the start of the message if `counts_from` is "", else from the start of
      the array element or tagged struct at the path `counts_from`. None after a field of variable
      size, and for tagged fields.
    - `type`: in Kafka's notation, with `compact` before it if the length is a varint.
    - `size`: None if it depends on the value; `least` is the smallest possible size.
    - `default`: the default in the definition, or the implied default of the type: `0`, `false`,
      `""`, `[]`, `{}`, `null`, and `zero` for a uuid.
    - `versions`: the versions that have the field, such as `3+`.
    - `meaning`: the sentence of the glossary, "" if there is none. For a message that is not
      Kafka's, the `about` of the field's definition.
    - `ignorable`: a sender may drop a value that the version cannot express; `map_key`: the field
      is a key of its array's elements.
    """

    field: str
    depth: int
    offset: int | None
    counts_from: str
    type: str
    nullable: bool
    default: str
    tag: int | None
    versions: str
    size: int | None
    least: int
    meaning: str
    ignorable: bool
    map_key: bool

    def to_json(self) -> dict[str, Any]:
        """Returns this row as JSON data."""
        return {
            "field": self.field,
            "offset": self.offset,
            "countsFrom": self.counts_from,
            "type": self.type,
            "nullable": self.nullable,
            "default": self.default,
            "tag": self.tag,
            "versions": self.versions,
            "size": self.size,
            "least": self.least,
            "meaning": self.meaning,
            "ignorable": self.ignorable,
            "mapKey": self.map_key,
        }


def message_rows(
    message: str, version: int, known: Definitions | None = None
) -> tuple[LayoutRow, ...]:
    """Returns a row for each field of a message version.

    A struct comes before its fields, and tagged fields come last. `known` are the definitions to
    search, by default Kafka's. Raises UnknownNameError for an unknown message or version.
    """
    name = find_message(message, known).name
    meaning = _kafka_meaning(name) if known is None or known is union() else _own_meaning
    return tuple(_rows(message_layout(name, version, known), meaning, "", "", 0))


def _kafka_meaning(message: str) -> Callable[[str, LayoutField], str]:
    """Returns the function that looks up the glossary's sentence for a field of a struct."""
    return lambda struct, field: load_glossary().field(message, struct, field.name) or ""


def _own_meaning(struct: str, field: LayoutField) -> str:
    return field.spec.about


def least_size(
    message: str, version: int, known: Definitions | None = None
) -> tuple[int | None, int]:
    """Returns the size of a message version and its least size, in bytes.

    The size is None if it depends on the values. Tagged fields do not count in the least size,
    because they are not written at their defaults. `known` are the definitions to search, by
    default Kafka's. Raises UnknownNameError for an unknown message or version.
    """
    return _struct_size(message_layout(message, version, known))


def _rows(
    layout: StructLayout,
    meaning: Callable[[str, LayoutField], str],
    prefix: str,
    base: str,
    start: int | None,
) -> Iterator[LayoutRow]:
    """Yields a row for each field of the struct `layout`, and of the structs inside it.

    `meaning` returns the sentence for a field, given the name of its struct and the field. `base`
    is the `counts_from` of the rows. `start` is the offset of the struct from `base`; None if the
    offset depends on values. `prefix` is the path of the struct, with a dot at the end.
    """
    at = start
    for field in layout.all_fields():
        size, least = _size(field.type)
        offset = at if field.tag is None else None
        yield LayoutRow(
            prefix + field.name,
            prefix.count("."),
            offset,
            base,
            _type_words(field.type),
            field.type.nullable,
            _default(field),
            field.tag,
            str(field.spec.versions),
            size,
            least,
            meaning(layout.name, field),
            field.spec.ignorable,
            field.spec.map_key,
        )
        inner = struct_of(field.type)
        if inner is not None:
            path = prefix + field.name
            if field.type.element is not None or field.tag is not None:
                yield from _rows(inner, meaning, f"{path}.", path, 0)
            else:  # a nullable struct begins with a marker byte
                begins = None if at is None else at + (1 if field.type.nullable else 0)
                yield from _rows(inner, meaning, f"{path}.", base, begins)
        at = None if at is None or size is None else at + size


def _size(wire: WireType) -> tuple[int | None, int]:
    """Returns the size in bytes of a value of the type, and the least size in bytes.

    The size is None if it depends on the value.
    """
    if wire.kind in FORMATS:
        fixed = struct.calcsize(f">{FORMATS[wire.kind]}")
        return fixed, fixed
    if wire.kind == "struct":
        assert wire.struct is not None
        return (None, 1) if wire.nullable else _struct_size(wire.struct)
    if wire.compact:
        return None, 1
    return None, 2 if wire.kind == "string" else 4


def _struct_size(layout: StructLayout) -> tuple[int | None, int]:
    sizes = [_size(field.type) for field in layout.fields]
    least = sum(each for _, each in sizes) + (1 if layout.flexible else 0)
    fixed = not layout.flexible and all(size is not None for size, _ in sizes)
    return (least if fixed else None), least


def _type_words(wire: WireType) -> str:
    if wire.struct is not None:
        return wire.struct.name
    compact = "compact " if wire.compact else ""
    if wire.element is None:
        name = wire.kind
    else:
        element = wire.element
        name = f"[]{element.struct.name if element.struct is not None else element.kind}"
    return compact + name


def _default(field: LayoutField) -> str:
    if field.default is None:
        return "null"
    if field.spec.is_array:
        return "[]"
    if field.type.struct is not None:
        return "{}"
    if isinstance(field.default, bytes) and field.type.kind == "uuid" and not any(field.default):
        return "zero"
    return default_words(field)
