"""Finds the fields of a message whose values limit the versions in which it can be sent.

A version may lack a field that has a value other than its default. Encoding at such a version drops
the field silently if it is ignorable, and refuses it otherwise. So the client chooses a version
within these limits:
- The version must not be after the last version that has the field, because encoding would drop or
  refuse the field. An example is the name of a topic, if later versions have only topic ids.
- The version must not be before the first version that has the field, because encoding would refuse
  the field. An ignorable field does not limit the version, because dropping it is intended. But an
  ignorable id limits the version, because it names the subject of the message.
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
    "VersionLimit",
    "VersionedFields",
    "highest_version_limit",
    "lowest_version_limit",
    "versioned_fields",
]


class VersionLimit(NamedTuple):
    """A field whose value limits the version of a message.

    `path` is a path such as `topics[0].name`; `versions` are the versions that have the field.
    """

    path: str
    versions: Versions


class _VersionedField(NamedTuple):
    """A field that some versions lack.

    `attribute` is its name in the generated class. `replacements` are the fields of the same struct
    that can replace it, as pairs (attribute, field).
    """

    attribute: str
    field: FieldSpec
    replacements: tuple[tuple[str, FieldSpec], ...]


class VersionedFields(NamedTuple):
    """The fields of a struct that can limit the version, because a version removed or added them.

    `added` has no ignorable fields except ids (see `lowest_version_limit`). `structs_inside` has
    the attribute and the fields of each nested struct whose fields can limit the version.
    """

    removed: tuple[_VersionedField, ...]
    added: tuple[_VersionedField, ...]
    structs_inside: tuple[tuple[str, VersionedFields], ...]


def highest_version_limit(shape: VersionedFields, value: object) -> VersionLimit | None:
    """Returns the removed field whose last version is the lowest; None if there is none.

    A field counts only if its value is not the default. A string field does not count if the uuid
    field that replaces it has a value too, as a topic id replaces a topic name (KIP-516). A uuid
    field replaces a string field if both are in the same struct, and the first version of the uuid
    follows the last version of the string.
    """
    return min(
        _set_fields(shape, value, "", attrgetter("removed")),
        key=lambda found: found.versions.highest,
        default=None,
    )


def lowest_version_limit(shape: VersionedFields, value: object) -> VersionLimit | None:
    """Returns the added field whose first version is the highest; None if there is none.

    A field counts if the first version of the message lacks it, and if its value is not the
    default. Ignorable fields do not count, because `encode` may drop them. The exception is an
    ignorable uuid (an id) in a struct with an older string field (a name): it counts if no such
    string has a value.
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
) -> Iterator[VersionLimit]:
    """Yields the fields of a message whose values limit the version.

    `versioned` returns the fields of a struct that some versions lack, each with the fields that
    replace it. Such a field limits the version if its value is not the default, and if no replacing
    field has a value.
    """
    for attribute, field, replacements in versioned(shape):
        if is_default(field, getattr(value, attribute, None)):
            continue
        if not any(_is_set(spec, getattr(value, name, None)) for name, spec in replacements):
            yield VersionLimit(f"{path}{attribute}", field.versions)
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
    """Returns the fields of a message and its structs that can limit the version.

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
    """Returns True if `field` is a uuid that replaces `other`, a string.

    The first version of `field` is then the version after the last version of `other`.
    """
    follows = field.versions.lowest == other.versions.highest + 1
    return follows and (other.type, field.type) == ("string", "uuid")


def _is_name(field: FieldSpec, other: FieldSpec) -> bool:
    """Returns True if `field` is a string field, and `other` is a uuid field of later versions."""
    before = bool(field.versions) and field.versions.lowest < other.versions.lowest
    return before and (field.type, other.type) == ("string", "uuid")
