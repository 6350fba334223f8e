"""Finds the set fields of a message that limit the versions in which it can be sent.

The client chooses a version within these limits, because encoding would lose or refuse the field:
- In a version after the last that has the field, encoding would drop most such fields silently. An
  example is the name of a topic, if later versions have only topic ids.
- In a version before the first that has the field, encoding refuses the field, or drops it if it
  is ignorable. Dropping is intended, except for an id, which names the subject of the message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from .explain import is_default
from .naming import attribute_name
from .specs import FieldSpec, MessageSpec
from .versions import Versions

__all__ = [
    "SetField",
    "VersionedFields",
    "highest_version_limit",
    "lowest_version_limit",
    "versioned_fields",
]


class SetField(NamedTuple):
    """The path of a set field (`topics[0].name`) and the versions that have the field."""

    path: str
    versions: Versions


class _VersionedField(NamedTuple):
    """A field that some versions lack, with the fields of its struct that can replace it.

    `attribute` is its name in the generated class.
    """

    attribute: str
    field: FieldSpec
    replacements: tuple[tuple[str, FieldSpec], ...]


class VersionedFields(NamedTuple):
    """The fields of a struct that a version removed or added, and its nested structs with such."""

    removed: tuple[_VersionedField, ...]
    added: tuple[_VersionedField, ...]
    structs_inside: tuple[tuple[str, VersionedFields], ...]


def highest_version_limit(shape: VersionedFields, value: object) -> SetField | None:
    """Returns the set field whose last version is lowest; None if the newest version has all.

    A string field does not count if the uuid field that replaces it is set too, as a topic id
    replaces a topic name (KIP-516). It is in the same struct, and its first version follows the
    last version of the string.
    """
    return min(
        _set_fields(shape, value, "", attrgetter("removed")),
        key=lambda found: found.versions.highest,
        default=None,
    )


def lowest_version_limit(shape: VersionedFields, value: object) -> SetField | None:
    """Returns the set field whose first version is highest; None if all may be dropped.

    Ignorable fields do not count, because `encode` may drop them. An exception is a uuid (an id)
    that replaced a string (a name): it counts unless the string is set too.
    """
    return max(
        _set_fields(shape, value, "", attrgetter("added")),
        key=lambda found: found.versions.lowest,
        default=None,
    )


def _set_fields(
    shape: VersionedFields,
    value: Any,
    path: str,
    versioned: Callable[[VersionedFields], tuple[_VersionedField, ...]],
) -> Iterator[SetField]:
    """Yields the set fields that `versioned` selects in each struct, without replaced fields.

    A field is replaced if one of its `replacements` is set.
    """
    for attribute, field, replacements in versioned(shape):
        if is_default(field, getattr(value, attribute, None)):
            continue
        if not any(_is_set(spec, getattr(value, name, None)) for name, spec in replacements):
            yield SetField(f"{path}{attribute}", field.versions)
    for attribute, inner in shape.structs_inside:
        inner_value = getattr(value, attribute, None)
        if isinstance(inner_value, list | tuple):
            for at, element in enumerate(inner_value):
                yield from _set_fields(inner, element, f"{path}{attribute}[{at}].", versioned)
        elif inner_value is not None:
            yield from _set_fields(inner, inner_value, f"{path}{attribute}.", versioned)


def _is_set(field: FieldSpec, value: object) -> bool:
    return value is not None and not is_default(field, value)


def versioned_fields(message: MessageSpec) -> VersionedFields:
    """Returns the fields of a message and its structs that some versions lack.

    Callers cache the result, because computing it is slow.
    """
    structs = {struct.name: struct.fields for struct in message.structs()}
    versions = message.valid_versions

    def shape(fields: tuple[FieldSpec, ...], *, of_message: bool) -> VersionedFields:
        named = [(attribute_name(field.name, of_message=of_message), field) for field in fields]
        removed = tuple(
            _VersionedField(
                attribute, field, tuple(each for each in named if _replaces(each[1], field))
            )
            for attribute, field in named
            if field.versions and field.versions.highest < versions.highest
        )
        added = []
        for attribute, field in named:
            if not field.versions or field.versions.lowest <= versions.lowest:
                continue
            names = tuple(each for each in named if _is_name(each[1], field))
            if not field.ignorable:
                added.append(_VersionedField(attribute, field, ()))
            elif names:
                added.append(_VersionedField(attribute, field, names))
        structs_inside = tuple(
            (attribute, inner)
            for attribute, field in named
            if field.element_type in structs
            and any(inner := shape(structs[field.element_type], of_message=False))
        )
        return VersionedFields(removed, tuple(added), structs_inside)

    return shape(message.fields, of_message=True)


def _replaces(field: FieldSpec, other: FieldSpec) -> bool:
    """Returns whether `field` is a uuid that follows the last version of the string `other`."""
    follows = field.versions.lowest == other.versions.highest + 1
    return follows and (other.type, field.type) == ("string", "uuid")


def _is_name(field: FieldSpec, other: FieldSpec) -> bool:
    """Returns whether `field` is a string that older versions have, and `other` a later uuid."""
    before = bool(field.versions) and field.versions.lowest < other.versions.lowest
    return before and (field.type, other.type) == ("string", "uuid")
