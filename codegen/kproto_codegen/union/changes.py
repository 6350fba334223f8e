"""Compares two releases, and decides which changes break clients or brokers of the older release.

The rules are those of Kafka's guide to its message definitions ("Incompatible Changes"): a released
version must not change. `release_union` finds which messages of the releases are the same, and
`kproto.schema.layout_comparison` finds the differences between their layouts.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from kproto.schema.field_marks import mark_changes
from kproto.schema.layout import layout
from kproto.schema.layout_comparison import DifferenceKind, compare_layouts
from kproto.schema.specs import MessageSpec
from kproto.schema.versions import Versions

from ..releases.release import Release
from .additions import additions
from .release_union import (
    MESSAGE_RENAMED,
    MESSAGE_RENUMBERED,
    Union,
    changed_type,
    same_key,
    unite,
)

__all__ = ["Change", "format_changes", "is_unstable", "release_changes", "version_changes"]


@dataclass(frozen=True, slots=True)
class Change:
    """A change of a message in one or more versions, or an addition of the newer release.

    If the versions were dropped, or if the type of the message changed, `versions` are version
    numbers of the older release; otherwise `versions` are version numbers of the newer release. The
    following changes are not breaking: added messages, versions and their fields, new names and
    version numbers, added and dropped tagged fields, an array of primitives that became an array of
    structs with the same bytes, map keys, ignorable fields, listeners, and changes of a version
    that the older release marked as unstable. `field` of an added or dropped field is its path.
    """

    message: str
    versions: tuple[int, ...]
    kind: str
    field: str
    detail: str
    breaking: bool

    def to_json(self) -> dict[str, Any]:
        """Returns this change as JSON data."""
        return {
            "message": self.message,
            "versions": list(self.versions),
            "kind": self.kind,
            "field": self.field,
            "detail": self.detail,
            "breaking": self.breaking,
        }


def release_changes(old: Release, new: Release) -> list[Change]:
    """Returns what `new` changed in the messages and versions of `old`, and what it added.

    Sorts breaking changes first, then by message. Raises DefinitionError if the releases cannot be
    merged.
    """
    now = {message.name: message for message in new.messages}
    other = [each for each in old.messages if changed_type(each, now)]
    old = replace(old, messages=tuple(each for each in old.messages if each not in other))
    united = unite([old, new])
    found: dict[tuple[str, str, str, str, bool], list[int]] = {}
    known: dict[str, set[int]] = {}
    for message in other:
        known[message.name] = {*now[message.name].valid_versions}
        detail = f"was {message.type}; is {now[message.name].type}"
        if message.valid_versions:  # without versions, the older release only reserved the key
            key = (message.name, "message type changed", "", detail, True)
            found[key] = [*message.valid_versions]
    for message in old.messages:
        for version in message.valid_versions:
            current, number = _counterpart(united, old, new, message, version)
            if current is not None:
                known.setdefault(current.name, set()).add(number)
            unstable = is_unstable(old, message, version)
            for entry in _changes_of(message, version, current, number, unstable=unstable):
                key = (entry.message, entry.kind, entry.field, entry.detail, entry.breaking)
                found.setdefault(key, []).extend(entry.versions)
    for message in old.messages:
        for entry in _mark_changes(united, old, new, message):
            key = (entry.message, entry.kind, entry.field, entry.detail, entry.breaking)
            found.setdefault(key, []).extend(entry.versions)
    for message in new.messages:
        for kind, path, versions in additions(message, known.get(message.name, set())):
            found[message.name, kind, path, "", False] = [*versions]
    changes = [
        Change(name, tuple(sorted(versions)), kind, field, detail, breaking)
        for (name, kind, field, detail, breaking), versions in found.items()
    ]
    return sorted(changes, key=lambda c: (not c.breaking, c.message, c.versions, c.kind, c.field))


def _counterpart(
    united: Union, old: Release, new: Release, message: MessageSpec, version: int
) -> tuple[MessageSpec | None, int]:
    """Returns the newer message and version number for a version of an older message.

    If no newer message has the name and the bytes of the version, returns the newer message with
    the same api key, whose name and bytes then differ. Returns None for a message without both.
    """
    merged, number = united.resolve(message.name, version, message.type)
    current = next((entry for entry in new.messages if entry.name == merged.name), None)
    if current is not None and current.valid_versions:
        return current, number
    older_names = {entry.name for entry in old.messages if entry.valid_versions}
    return next(same_key(message, new.messages, older_names), current), number


def _mark_changes(
    united: Union, old: Release, new: Release, message: MessageSpec
) -> Iterator[Change]:
    """Yields the marks of fields that vanished, and changed listeners; both change no bytes.

    Without a mapKey, the generated class has no `find` by the field. A field that is no longer
    ignorable cannot be set in a message of a version that lacks the field.
    """
    if not message.valid_versions:
        return
    current, _ = _counterpart(united, old, new, message, message.valid_versions.lowest)
    if current is None or not current.valid_versions:
        return
    shared = (*message.valid_versions.intersect(current.valid_versions),)
    for each in mark_changes(message, current):
        if each.dropped:
            yield Change(current.name, shared, each.kind, each.field, "", False)
    before, after = message.listeners, current.listeners
    if sorted(before) != sorted(after):
        detail = f"was {', '.join(before) or 'none'}; is {', '.join(after) or 'none'}"
        yield Change(current.name, shared, "listeners changed", "", detail, False)


def is_unstable(release: Release, message: MessageSpec, version: int) -> bool:
    """Returns True if the release marked the version as unstable.

    The mark is in the request, and applies to its response too.
    """
    if message.type == "response":
        requests = (
            other
            for other in release.messages
            if other.type == "request" and other.api_key == message.api_key
        )
        return any(is_unstable(release, request, version) for request in requests)
    return message.latest_version_unstable and version == message.valid_versions.highest


def _changes_of(
    message: MessageSpec,
    version: int,
    current: MessageSpec | None,
    number: int,
    *,
    unstable: bool,
) -> Iterator[Change]:
    """Yields the changes that the newer release makes to a message version of the older release."""
    if current is None or number not in current.valid_versions:
        is_dropped = current is None or not current.valid_versions
        kind, detail = (
            ("message dropped", "")
            if is_dropped
            else ("version dropped", _remaining_range(current))
        )
        yield _change(message.name, version, kind, "", detail, breaking=True, unstable=unstable)
        return
    yield from version_changes(message, version, current, number, unstable=unstable)


def version_changes(
    message: MessageSpec, version: int, current: MessageSpec, number: int, *, unstable: bool
) -> Iterator[Change]:
    """Yields the differences between a version of an older and of a newer definition.

    `version` is the number in the older definition `message`, `number` that in the newer definition
    `current`. No difference is breaking if the version was `unstable` in the older release.
    """

    def change(kind: str, field: str, detail: str, *, breaking: bool) -> Change:
        return _change(
            current.name, number, kind, field, detail, breaking=breaking, unstable=unstable
        )

    if version != number:
        yield change(MESSAGE_RENUMBERED, "", f"was {message.name} v{version}", breaking=False)
    elif message.name != current.name:
        yield change(MESSAGE_RENAMED, "", f"was {message.name}", breaking=False)
    elif message.type == current.type and message.api_key != current.api_key:
        detail = f"was {message.api_key}; is {current.api_key}"
        yield change("api key changed", "", detail, breaking=True)
    for found in compare_layouts(layout(message, version), layout(current, number)):
        breaking = found.kind.changes_bytes or found.kind is DifferenceKind.DEFAULT
        yield change(found.kind.value, found.field, found.detail, breaking=breaking)


def _change(
    message: str,
    version: int,
    kind: str,
    field: str,
    detail: str,
    *,
    breaking: bool,
    unstable: bool,
) -> Change:
    """Returns a change of a version, which is not breaking if the version was unstable."""
    if breaking and unstable:
        detail = f"{detail} (unstable before)".lstrip()
    return Change(message, (version,), kind, field, detail, breaking and not unstable)


def _remaining_range(message: MessageSpec | None) -> str:
    return "" if message is None else f"now {message.valid_versions}"


def format_changes(changes: Sequence[Change]) -> str:
    """Formats the changes as a table, with a line for each change."""
    header = ("", "MESSAGE", "VERSIONS", "CHANGE", "FIELD", "DETAIL")
    rows = [
        (
            "breaking" if change.breaking else "compatible",
            change.message,
            _ranges(change.versions),
            change.kind,
            change.field,
            change.detail,
        )
        for change in changes
    ]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in [header, *rows]
    )
    return "\n".join(lines)


def _ranges(versions: Sequence[int]) -> str:
    """Formats ascending versions: `0-2, 5` for 0, 1, 2, 5."""
    parts: list[Versions] = []
    for version in versions:
        if parts and parts[-1].highest == version - 1:
            parts[-1] = Versions(parts[-1].lowest, version)
        else:
            parts.append(Versions.single(version))
    return ", ".join(str(part) for part in parts)
