"""The wire layout of a message version: the order of its fields and their encodings.

Only this module implements the rules of versions, flexible versions, tags and nulls. The generator,
the JSON converter, `explain` and the hypothesis strategies use its layouts.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import Enum
from functools import lru_cache
from typing import Final, NamedTuple

from .naming import attribute_name, class_name
from .specs import PRIMITIVE_TYPES, DefaultValue, FieldSpec, MessageSpec, StructSpec
from .versions import Versions

__all__ = [
    "FORMATS",
    "FieldForm",
    "LayoutField",
    "Presence",
    "StructLayout",
    "WireType",
    "absent_type",
    "field_form",
    "layout",
    "struct_of",
]

#: The `struct` format character of each type of fixed width.
FORMATS: Final = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}


class Presence(Enum):
    """Tells if a version lacks a field, has it as a plain field, or has it as a tagged field."""

    ABSENT = "absent"
    PLAIN = "plain"
    TAGGED = "tagged"


class FieldForm(NamedTuple):
    """The encoding of a field in a version.

    `compact` is True if the length of the field, or the null marker of a struct, is a varint.
    """

    presence: Presence
    compact: bool
    nullable: bool


_ABSENT = FieldForm(Presence.ABSENT, False, False)


def field_form(field: FieldSpec, version: int, *, flexible: bool) -> FieldForm:
    """Returns the encoding of `field` at `version`.

    `flexible` is True if the message is flexible at `version`; the field may override it.
    """
    if version not in field.versions:
        return _ABSENT
    tagged = version in field.tagged_versions
    if field.flexible_versions is not None:
        flexible = version in field.flexible_versions
    # A struct has no length. But a nullable struct in a tagged field begins with a varint that
    # marks null, so it counts as compact.
    varies = field.type not in FORMATS and (tagged or not field.is_struct)
    return FieldForm(
        Presence.TAGGED if tagged else Presence.PLAIN,
        flexible and varies,
        version in field.nullable_versions and field.type not in FORMATS,
    )


@dataclass(frozen=True, slots=True)
class WireType:
    """A type in the encoding of a version; `kind` is a primitive type, `struct` or `array`.

    The length of a `compact` type is an unsigned varint. A nullable struct begins with a marker. In
    a tagged field the struct is `compact`, and its marker is a varint: 0 for null, 1 for present.
    In a plain field the marker is a byte: -1 for null, 1 for present.
    """

    kind: str
    compact: bool = False
    nullable: bool = False
    element: WireType | None = None
    struct: StructLayout | None = None


@dataclass(frozen=True, slots=True)
class LayoutField:
    """A field that a version of the message has; `tag` is None if that version does not tag it.

    `name` is the name in the definition, `attribute` is the name in the generated class.
    """

    name: str
    attribute: str
    type: WireType
    tag: int | None
    default: DefaultValue
    spec: FieldSpec


@dataclass(frozen=True, slots=True)
class StructLayout:
    """The layout of a struct, or of a whole message, at one version.

    `fields` are in wire order, `tagged` are ordered by tag; `absent` are the fields that the
    version lacks.
    """

    name: str
    class_name: str
    version: int
    flexible: bool
    fields: tuple[LayoutField, ...]
    tagged: tuple[LayoutField, ...]
    absent: tuple[FieldSpec, ...]
    is_message: bool

    def all_fields(self) -> tuple[LayoutField, ...]:
        """Returns the fields of the version, tagged fields last."""
        return self.fields + self.tagged

    def specs(self) -> Iterator[FieldSpec]:
        """Yields the fields of all versions."""
        yield from (field.spec for field in self.all_fields())
        yield from self.absent

    def tags_of_other_versions(self) -> dict[int, Versions]:
        """Returns the tags of fields that have no tag in this version.

        Maps each tag to the versions that use it.
        """
        others = (*self.absent, *(field.spec for field in self.fields))
        return {
            spec.tag: spec.versions.intersect(spec.tagged_versions)
            for spec in others
            if spec.tag is not None
        }


def struct_of(wire: WireType) -> StructLayout | None:
    """Returns the struct of a struct type or of an array's elements; None for other types."""
    return wire.struct if wire.element is None else wire.element.struct


@lru_cache(maxsize=4096)
def layout(message: MessageSpec, version: int) -> StructLayout:
    """Returns the layout of `message` at `version`. Raises ValueError for an invalid version."""
    if version not in message.valid_versions:
        raise ValueError(f"{message.name} has versions {message.valid_versions}, not {version}")
    structs = {struct.name: struct for struct in message.structs()}
    flexible = version in message.flexible_versions
    whole = StructSpec(message.name, message.valid_versions, message.fields)
    return _struct_layout(whole, version, flexible, structs, is_message=True)


def _struct_layout(
    struct: StructSpec,
    version: int,
    flexible: bool,
    structs: dict[str, StructSpec],
    *,
    is_message: bool,
) -> StructLayout:
    placed: list[LayoutField] = []
    tagged: list[LayoutField] = []
    absent: list[FieldSpec] = []
    for field in struct.fields:
        form = field_form(field, version, flexible=flexible)
        if form.presence is Presence.ABSENT:
            absent.append(field)
            continue
        is_tagged = form.presence is Presence.TAGGED
        entry = LayoutField(
            name=field.name,
            attribute=attribute_name(field.name, of_message=is_message),
            type=_wire_type(field, form, version, flexible, structs),
            tag=field.tag if is_tagged else None,
            default=field.default_value(),
            spec=field,
        )
        (tagged if is_tagged else placed).append(entry)
    tagged.sort(key=lambda entry: entry.tag or 0)
    return StructLayout(
        struct.name,
        class_name(struct.name),
        version,
        flexible,
        tuple(placed),
        tuple(tagged),
        tuple(absent),
        is_message,
    )


def _wire_type(
    field: FieldSpec,
    form: FieldForm,
    version: int,
    flexible: bool,
    structs: dict[str, StructSpec],
) -> WireType:
    name = field.element_type
    if name in PRIMITIVE_TYPES:
        inner = WireType(name, compact=flexible and name not in FORMATS)
        if not field.is_array:
            return WireType(name, form.compact, form.nullable)
    else:
        nested = _struct_layout(structs[name], version, flexible, structs, is_message=False)
        inner = WireType("struct", struct=nested)
        if not field.is_array:
            return WireType("struct", form.compact, form.nullable, struct=nested)
    return WireType("array", form.compact, form.nullable, element=inner)


def absent_type(message: MessageSpec, field: FieldSpec, version: int) -> WireType:
    """Returns the type of a field that `version` lacks, to read the field from JSON.

    The type is nullable if the field is nullable in any version. The `struct` of the type is None
    if `version` lacks the struct too.
    """
    structs = {struct.name: struct for struct in message.structs()}
    nullable = bool(field.nullable_versions)
    name = field.element_type
    if name in PRIMITIVE_TYPES:
        inner = WireType(name, nullable=nullable and not field.is_array)
    else:
        nested = None
        if version in structs[name].versions:
            nested = _struct_layout(structs[name], version, False, structs, is_message=False)
        inner = WireType("struct", nullable=nullable and not field.is_array, struct=nested)
    return WireType("array", nullable=nullable, element=inner) if field.is_array else inner
