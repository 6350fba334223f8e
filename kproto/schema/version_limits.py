"""Finds which set fields of a message limit the versions at which it can be sent.

The client chooses a version by these limits. Above the last version of a set field, the field would
be dropped silently, because most such fields are ignorable (a topic's name, when later versions
have topic ids only). Below the first version of a set field, `encode` refuses it. An ignorable
field is dropped there instead, which is intended, except for an id, which identifies the subject of
the message. Knows definitions and values, no peer.
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
    """Names a field that is set (`topics[0].name`) and the versions that have the field."""

    path: str
    versions: Versions


class _VersionedField(NamedTuple):
    """A field that not every version has, with the fields of its struct that may replace it."""

    attribute: str
    field: FieldSpec
    replacements: tuple[tuple[str, FieldSpec], ...]


class VersionedFields(NamedTuple):
    """The fields of a struct that some version removed or added, and the structs that have such."""

    removed: tuple[_VersionedField, ...]
    added: tuple[_VersionedField, ...]
    structs_inside: tuple[tuple[str, VersionedFields], ...]


def highest_version_limit(shape: VersionedFields, value: object) -> SetField | None:
    """Returns the set field whose versions end first; None if no set field was ever removed.

    A name does not count if the id that replaces it is set too: a uuid field of the same struct
    whose versions begin where those of the name end (KIP-516).
    """
    return min(
        _set_fields(shape, value, "", attrgetter("removed")),
        key=lambda found: found.versions.highest,
        default=None,
    )


def lowest_version_limit(shape: VersionedFields, value: object) -> SetField | None:
    """Returns the set field whose versions begin last; None if all set fields may be dropped.

    Ignorable fields do not count, because `encode` may drop them, except for an id: it counts
    unless the name that older versions have in its place is set too.
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
    """Yields the set fields that `versioned` selects in each struct and that nothing replaces."""
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
    """Returns the versioned fields of a message and its structs; costly, so callers cache it."""
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
    """Returns whether `field` is the uuid that replaces the string `other`."""
    follows = field.versions.lowest == other.versions.highest + 1
    return follows and (other.type, field.type) == ("string", "uuid")


def _is_name(field: FieldSpec, other: FieldSpec) -> bool:
    """Returns whether `field` is the string that older versions have instead of uuid `other`."""
    before = bool(field.versions) and field.versions.lowest < other.versions.lowest
    return before and (field.type, other.type) == ("string", "uuid")
