"""Compares two versions of a message, and two Kafka releases.

Two versions of a message are compared by their layouts in the union of the releases' definitions.
Two releases are compared by the version ranges, names and marks (such as deprecated) of their APIs.
A release must not change the layout of an existing version; `kproto-codegen check` reports such an
error.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from .definitions import Definitions, union
from .layout import LayoutField, StructLayout, WireType, layout, struct_of
from .layout_comparison import default_words
from .release_table import ApiRange, former_api_names, ranges
from .specs import MessageSpec
from .unknown_names import UnknownNameError, unknown_name_error
from .versions import Versions

__all__ = [
    "ChangeKind",
    "FieldChange",
    "RangeChange",
    "ReleaseComparison",
    "VersionChanges",
    "changes",
    "common_versions",
    "compare",
    "find_message",
    "layout_changes",
    "message_layout",
]


class ChangeKind(StrEnum):
    """How a field or the whole message changes between two versions."""

    FLEXIBLE = "flexible"
    ADDED = "added"
    REMOVED = "removed"
    TYPE = "type"
    NULL = "null"
    DEFAULT = "default"
    TAG = "tag"


@dataclass(frozen=True, slots=True)
class FieldChange:
    """A change of a field between two versions; `field` is its path (`Topics.Partitions.Index`).

    If only one of the two versions is flexible, the message has a change of kind FLEXIBLE, whose
    `field` is "". It counts as one change, although a flexible version encodes lengths as varints
    and has tagged fields in each struct. `detail` describes the change.
    """

    kind: ChangeKind
    field: str
    detail: str

    def to_json(self) -> dict[str, str]:
        """Returns this change as JSON data."""
        return {"kind": self.kind.value, "field": self.field, "detail": self.detail}


@dataclass(frozen=True, slots=True)
class VersionChanges:
    """The changes from version `older` to version `newer` of a message."""

    message: str
    older: int
    newer: int
    changes: tuple[FieldChange, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns these changes as JSON data."""
        return {
            "message": self.message,
            "older": self.older,
            "newer": self.newer,
            "changes": [change.to_json() for change in self.changes],
        }


@dataclass(frozen=True, slots=True)
class RangeChange:
    """An API whose versions, name or marks (such as deprecated) differ between two releases."""

    older: ApiRange
    newer: ApiRange

    @property
    def added(self) -> tuple[int, ...]:
        """Returns the versions that only the newer release has."""
        return tuple(each for each in self.newer.versions if each not in self.older.versions)

    @property
    def dropped(self) -> tuple[int, ...]:
        """Returns the versions that only the older release has."""
        return tuple(each for each in self.older.versions if each not in self.newer.versions)

    def to_json(self) -> dict[str, Any]:
        """Returns this change as JSON data."""
        return {
            "older": self.older.to_json(),
            "newer": self.newer.to_json(),
            "added": list(self.added),
            "dropped": list(self.dropped),
        }


@dataclass(frozen=True, slots=True)
class ReleaseComparison:
    """The differences between two releases.

    - `added`: the APIs that only the newer release has.
    - `removed`: the APIs that only the older release has.
    - `changed`: the APIs that both releases have, but with other versions, names or marks
      (such as deprecated).
    - `versions`: the changes in each new version of the `changed` APIs, for request and response.
      Each change is relative to the previous version, so the first version of a message is left
      out.
    """

    older: str
    newer: str
    added: tuple[ApiRange, ...]
    removed: tuple[ApiRange, ...]
    changed: tuple[RangeChange, ...]
    versions: tuple[VersionChanges, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns this comparison as JSON data."""
        return {
            "older": self.older,
            "newer": self.newer,
            "added": [each.to_json() for each in self.added],
            "removed": [each.to_json() for each in self.removed],
            "changed": [each.to_json() for each in self.changed],
            "versions": [each.to_json() for each in self.versions],
        }


def find_message(name: str, known: Definitions | None = None) -> MessageSpec:
    """Returns the message called `name`. Raises UnknownNameError if no message has this name.

    `name` may be a former name of the message, or a former name of an API of Kafka followed by
    `Request` or `Response`. `known` are the definitions to search, by default Kafka's.
    """
    messages = union() if known is None else known
    if name in messages:
        return messages[name]
    for each in messages.former(name):
        return messages[each]
    for kind in ("Request", "Response"):
        api = name.removesuffix(kind)
        if messages is union() and api != name and api in former_api_names():
            return messages[former_api_names()[api] + kind]
    raise unknown_name_error("no message is called", name, messages)


def message_layout(name: str, version: int, known: Definitions | None = None) -> StructLayout:
    """Returns the layout of a message version.

    `known` are the definitions to search, by default Kafka's. Raises UnknownNameError for an
    unknown message or version.
    """
    return _layout(find_message(name, known), version)


def _layout(message: MessageSpec, version: int) -> StructLayout:
    if version not in message.valid_versions:
        raise UnknownNameError(
            f"{message.name} has no version {version}: it has {message.valid_versions}"
        )
    return layout(message, version)


def changes(
    message: str, older: int, newer: int, known: Definitions | None = None
) -> tuple[FieldChange, ...]:
    """Returns the changes from version `older` of a message to version `newer`.

    A struct comes before its fields. If a struct is added or removed, its fields are listed too.
    `known` are the definitions to search, by default Kafka's. Raises UnknownNameError for an
    unknown message or version.
    """
    spec = find_message(message, known)
    return tuple(layout_changes(_layout(spec, older), _layout(spec, newer)))


def layout_changes(before: StructLayout, after: StructLayout) -> Iterator[FieldChange]:
    """Yields the changes from one layout of a message to another; see `changes`."""
    if before.flexible != after.flexible:
        detail = "compact lengths, tagged fields" if after.flexible else "int lengths, no tags"
        yield FieldChange(ChangeKind.FLEXIBLE, "", detail)
    yield from _struct_changes(before, after, "")


def _struct_changes(
    before: StructLayout, after: StructLayout, prefix: str
) -> Iterator[FieldChange]:
    old = {field.name: field for field in before.all_fields()}
    new = {field.name: field for field in after.all_fields()}
    for name, field in old.items():
        if name not in new:
            yield from _with_inner_fields(ChangeKind.REMOVED, field, prefix)
    for name, field in new.items():
        if name in old:
            yield from _field_changes(old[name], field, prefix + name)
        else:
            yield from _with_inner_fields(ChangeKind.ADDED, field, prefix)


def _with_inner_fields(kind: ChangeKind, field: LayoutField, prefix: str) -> Iterator[FieldChange]:
    """Yields an added or removed field and all fields inside it."""
    path = prefix + field.name
    yield FieldChange(kind, path, field_words(field))
    inner = struct_of(field.type)
    if inner is not None:
        for each in inner.all_fields():
            yield from _with_inner_fields(kind, each, path + ".")


def _field_changes(old: LayoutField, new: LayoutField, path: str) -> Iterator[FieldChange]:
    before, after = _plain_words(old.type), _plain_words(new.type)
    if before != after:
        yield FieldChange(ChangeKind.TYPE, path, f"was {before}; is {after}")
    if old.type.nullable != new.type.nullable:
        detail = "may be null" if new.type.nullable else "may no longer be null"
        yield FieldChange(ChangeKind.NULL, path, detail)
    if repr(old.default) != repr(new.default):
        detail = f"was {default_words(old)}; is {default_words(new)}"
        yield FieldChange(ChangeKind.DEFAULT, path, detail)
    if old.tag != new.tag:
        detail = f"was {_tag_words(old)}; is {_tag_words(new)}"
        yield FieldChange(ChangeKind.TAG, path, detail)
    inner, outer = struct_of(old.type), struct_of(new.type)
    if inner is not None and outer is not None:
        yield from _struct_changes(inner, outer, path + ".")


def _tag_words(field: LayoutField) -> str:
    return "not tagged" if field.tag is None else f"tag {field.tag}"


def _plain_words(wire: WireType) -> str:
    """Returns the type without nullability and encoding, such as `[]int32` or `struct`."""
    return f"[]{_plain_words(wire.element)}" if wire.element is not None else wire.kind


def field_words(field: LayoutField) -> str:
    """Returns text with the field's type, nullability, default and tag.

    The default is left out if the definition states no default.
    """
    words = _plain_words(field.type)
    if field.type.nullable:
        words = f"nullable {words}"
    if field.spec.default is not None:
        words += f", default {default_words(field)}"
    return words if field.tag is None else f"{words}, tag {field.tag}"


def compare(older: str, newer: str) -> ReleaseComparison:
    """Compares two releases, such as "3.9.2" and "4.4.0".

    The APIs are sorted by key. Raises UnknownNameError for an unknown release.
    """
    before, after = ranges(older), ranges(newer)
    changed = tuple(
        RangeChange(before[key], after[key])
        for key in sorted(before.keys() & after.keys())
        if before[key] != after[key]
    )
    versions = (
        found
        for change in changed
        for version in change.added
        for found in _new_version(change.newer.name, version)
    )
    return ReleaseComparison(
        older,
        newer,
        tuple(after[key] for key in sorted(after.keys() - before.keys())),
        tuple(before[key] for key in sorted(before.keys() - after.keys())),
        changed,
        tuple(versions),
    )


def common_versions(older: str, newer: str) -> dict[int, Versions]:
    """Returns the final versions of each API that two releases share, by api key.

    A client of one release and a broker of the other use the highest of them. APIs without a common
    version are left out. Raises UnknownNameError for an unknown release.
    """
    before, after = ranges(older), ranges(newer)
    return {
        key: shared
        for key in sorted(before.keys() & after.keys())
        if (shared := before[key].stable.intersect(after[key].stable))
    }


def _new_version(api: str, version: int) -> Iterator[VersionChanges]:
    for kind in ("Request", "Response"):
        spec = find_message(api + kind)
        if spec.valid_versions.covers(Versions(version - 1, version)):
            found = changes(spec.name, version - 1, version)
            yield VersionChanges(spec.name, version - 1, version, found)
