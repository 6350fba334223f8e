"""Compares two sets of message definitions, such as two releases of a protocol of your own.

`changes.compare` compares two releases of Kafka by a table of version ranges. This module compares
the definitions themselves: every message, with or without an API.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from .changes import VersionChanges, find_message, layout_changes
from .field_marks import MarkChange, mark_changes
from .layout import layout
from .layout_comparison import LayoutDifference, compare_layouts
from .release_table import ranges
from .specs import MessageSpec
from .versions import Versions

__all__ = [
    "AlteredVersion",
    "DefinitionComparison",
    "MarkChanges",
    "MessageChange",
    "compare_definitions",
    "release_definitions",
]


@dataclass(frozen=True, slots=True)
class MessageChange:
    """A message whose name, type, api key, versions or marks differ between two definitions.

    Marks are the flexible, unstable and deprecated versions, and the listeners.
    """

    older: MessageSpec
    newer: MessageSpec

    @property
    def added(self) -> tuple[int, ...]:
        """Returns the versions that only the newer definition has."""
        return tuple(
            each for each in self.newer.valid_versions if each not in self.older.valid_versions
        )

    @property
    def dropped(self) -> tuple[int, ...]:
        """Returns the versions that only the older definition has."""
        return tuple(
            each for each in self.older.valid_versions if each not in self.newer.valid_versions
        )

    def to_json(self) -> dict[str, Any]:
        """Returns this change as JSON data."""
        return {
            "older": _message_json(self.older),
            "newer": _message_json(self.newer),
            "added": list(self.added),
            "dropped": list(self.dropped),
        }


@dataclass(frozen=True, slots=True)
class AlteredVersion:
    """A version of a message that has another layout in the newer definitions."""

    message: str
    version: int
    differences: tuple[LayoutDifference, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns this version as JSON data; `changesBytes` tells whether encoded bytes differ."""
        return {
            "message": self.message,
            "version": self.version,
            "differences": [
                {
                    "kind": each.kind.value,
                    "field": each.field,
                    "detail": each.detail,
                    "changesBytes": each.kind.changes_bytes,
                }
                for each in self.differences
            ],
        }


@dataclass(frozen=True, slots=True)
class MarkChanges:
    """The marks of fields (mapKey, ignorable) that only one definition of a message has."""

    message: str
    changes: tuple[MarkChange, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns these marks as JSON data."""
        return {"message": self.message, "changes": [each.to_json() for each in self.changes]}


@dataclass(frozen=True, slots=True)
class DefinitionComparison:
    """The differences between two sets of definitions; messages are sorted by name.

    - `added`, `removed`: the messages that only one of the sets has.
    - `changed`: the messages that both have, but with another name, type, api key, versions or
      marks.
    - `versions`: the changes in each added version of the `changed` messages, compared with the
      version before. The lowest version of a message is left out.
    - `altered`: versions that both have, but with another layout. A released version must not
      change; `kproto-codegen check` tells which differences are compatible.
    - `field_marks`: the marks of fields that only one of the sets has.
    """

    older: str
    newer: str
    added: tuple[MessageSpec, ...]
    removed: tuple[MessageSpec, ...]
    changed: tuple[MessageChange, ...]
    versions: tuple[VersionChanges, ...]
    altered: tuple[AlteredVersion, ...]
    field_marks: tuple[MarkChanges, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Returns this comparison as JSON data."""
        return {
            "older": self.older,
            "newer": self.newer,
            "added": [_message_json(each) for each in self.added],
            "removed": [_message_json(each) for each in self.removed],
            "changed": [each.to_json() for each in self.changed],
            "versions": [each.to_json() for each in self.versions],
            "altered": [each.to_json() for each in self.altered],
            "fieldMarks": [each.to_json() for each in self.field_marks],
        }


def release_definitions(release: str) -> dict[str, MessageSpec]:
    """Returns the requests and responses of a release of Kafka, such as "3.9.2", by name.

    The versions and marks are those of the release; the layouts, and the names of fields, are those
    of the union of the releases. Raises UnknownNameError for an unknown release.
    """
    found: dict[str, MessageSpec] = {}
    for each in ranges(release).values():
        for kind in ("Request", "Response"):
            spec = find_message(each.name + kind)
            spec = replace(spec, name=each.called + kind, valid_versions=each.versions)
            if kind == "Request":
                spec = replace(
                    spec,
                    deprecated_versions=each.deprecated,
                    latest_version_unstable=bool(each.unstable),
                    listeners=each.listeners,
                )
            found[spec.name] = spec
    return found


def compare_definitions(
    older: str, before: Mapping[str, MessageSpec], newer: str, after: Mapping[str, MessageSpec]
) -> DefinitionComparison:
    """Compares two sets of definitions, by message name; `older` and `newer` are their names.

    A message is the same in both sets if it has the same name, or else the same type and api key,
    and for a record also the same module. Messages without valid versions do not count.
    """
    before, after = (
        {name: known[name] for name in known if known[name].valid_versions}
        for known in (before, after)
    )
    renamed = _renamed(before, after)
    pairs = [
        (before[renamed.get(name, name)], spec)
        for name, spec in sorted(after.items())
        if renamed.get(name, name) in before
    ]
    kept = {old.name for old, _ in pairs}
    both = {new.name for _, new in pairs}
    changes = [MessageChange(old, new) for old, new in pairs if _facts(old) != _facts(new)]
    return DefinitionComparison(
        older,
        newer,
        tuple(spec for name, spec in sorted(after.items()) if name not in both),
        tuple(spec for name, spec in sorted(before.items()) if name not in kept),
        tuple(changes),
        tuple(found for change in changes for found in _added_versions(change)),
        tuple(found for old, new in pairs for found in _altered_versions(old, new)),
        tuple(
            MarkChanges(new.name, marks)
            for old, new in pairs
            if (marks := tuple(mark_changes(old, new)))
        ),
    )


def _renamed(before: Mapping[str, MessageSpec], after: Mapping[str, MessageSpec]) -> dict[str, str]:
    """Returns the former name by name, for each message that has another name in `before`."""
    by_key = {_key(spec): name for name, spec in before.items() if name not in after}
    return {
        name: by_key[_key(spec)]
        for name, spec in after.items()
        if name not in before and spec.api_key is not None and _key(spec) in by_key
    }


def _key(spec: MessageSpec) -> tuple[str, str, int | None]:
    is_api = spec.type in {"request", "response"}
    return "" if is_api else spec.module, spec.type, spec.api_key


def _added_versions(change: MessageChange) -> Iterator[VersionChanges]:
    spec = change.newer
    for version in change.added:
        if spec.valid_versions.covers(Versions(version - 1, version)):
            found = layout_changes(layout(spec, version - 1), layout(spec, version))
            yield VersionChanges(spec.name, version - 1, version, tuple(found))


def _altered_versions(old: MessageSpec, new: MessageSpec) -> Iterator[AlteredVersion]:
    for version in old.valid_versions:
        if version in new.valid_versions:
            found = tuple(compare_layouts(layout(old, version), layout(new, version)))
            if found:
                yield AlteredVersion(new.name, version, found)


def _facts(spec: MessageSpec) -> tuple[object, ...]:
    return (
        spec.name,
        spec.type,
        spec.api_key,
        spec.valid_versions,
        spec.flexible_versions,
        spec.deprecated_versions,
        spec.latest_version_unstable,
        spec.listeners,
    )


def _message_json(spec: MessageSpec) -> dict[str, Any]:
    out: dict[str, Any] = {"name": spec.name, "type": spec.type}
    if spec.api_key is not None:
        out["apiKey"] = spec.api_key
    out["versions"] = str(spec.valid_versions)
    if spec.latest_version_unstable:
        out["unstable"] = str(spec.valid_versions.highest)
    for key, versions in (
        ("flexible", spec.flexible_versions),
        ("deprecated", spec.deprecated_versions),
    ):
        if versions:
            out[key] = str(versions)
    if spec.listeners:
        out["listeners"] = list(spec.listeners)
    return out
