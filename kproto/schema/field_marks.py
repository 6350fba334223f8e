"""Compares the marks of fields, `mapKey` and `ignorable`, in two definitions of a message.

The marks change no bytes, so `layout_comparison` does not compare them. A class without a mapKey
has no `find` by this field. A field that is not ignorable must have its default in a version that
lacks the field; otherwise the message cannot be encoded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from .specs import FieldSpec, MessageSpec

__all__ = ["FieldMark", "MarkChange", "mark_changes"]


class FieldMark(StrEnum):
    """A mark of a field that changes no bytes; the value describes it."""

    MAP_KEY = "map key"
    IGNORABLE = "ignorable"

    def of(self, field: FieldSpec) -> bool:
        """Returns True if `field` has this mark."""
        return field.map_key if self is FieldMark.MAP_KEY else field.ignorable


@dataclass(frozen=True, slots=True)
class MarkChange:
    """A mark of a field that only one of two definitions has.

    `field` is `Field` for a field of the message itself, else `Struct.Field`. `dropped` is True if
    only the older definition has the mark.
    """

    mark: FieldMark
    field: str
    dropped: bool

    @property
    def kind(self) -> str:
        """Returns the change in words, such as `map key dropped` and `ignorable added`."""
        return f"{self.mark} {'dropped' if self.dropped else 'added'}"

    def to_json(self) -> dict[str, str]:
        """Returns this change as JSON data."""
        return {"kind": self.kind, "field": self.field}


def mark_changes(old: MessageSpec, new: MessageSpec) -> Iterator[MarkChange]:
    """Yields the marks that only one of two definitions of a message has, sorted by field.

    Compares only fields that have the same name in both definitions, in structs of the same name.
    """
    before, after = _fields(old), _fields(new)
    for path in sorted(before.keys() & after.keys()):
        for mark in FieldMark:
            dropped = mark.of(before[path])
            if dropped != mark.of(after[path]):
                yield MarkChange(mark, path, dropped)


def _fields(message: MessageSpec) -> dict[str, FieldSpec]:
    own = {field.name: field for field in message.fields}
    return own | {
        f"{struct.name}.{field.name}": field
        for struct in message.structs()
        for field in struct.fields
    }
