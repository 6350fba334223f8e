"""Prints the comparison of two folders of definitions for `kproto diff`."""

from __future__ import annotations

from collections.abc import Sequence

from ..schema.layout_comparison import DifferenceKind
from ..schema.specs import MessageSpec
from ..schema.study import (
    AlteredVersion,
    DefinitionComparison,
    MarkChanges,
    MessageChange,
    VersionChanges,
)
from ..wire.counted import counted
from .tables import print_json, print_table, ranges_text

__all__ = ["print_definitions"]


def print_definitions(found: DefinitionComparison, *, as_json: bool) -> None:
    """Prints the messages and versions that differ between two sets of definitions."""
    if as_json:
        print_json(found.to_json())
        return
    print(
        f"{found.older} to {found.newer}: {counted(len(found.added), 'message')} added, "
        f"{len(found.removed)} removed, {len(found.changed)} changed"
    )
    _print_messages("added messages", found.added)
    _print_messages("removed messages", found.removed)
    _print_changes(found.changed)
    _print_versions(found.versions)
    _print_altered(found.altered)
    _print_renamed(found.altered)
    _print_marks(found.field_marks)


def _print_messages(what: str, messages: Sequence[MessageSpec]) -> None:
    if messages:
        print(f"\n{what}")
        rows = [
            (spec.name, spec.type, _key(spec), str(spec.valid_versions), _marks(spec))
            for spec in messages
        ]
        print_table(("MESSAGE", "TYPE", "KEY", "VERSIONS", "MARKS"), rows, indent="  ")


def _print_changes(changes: Sequence[MessageChange]) -> None:
    if changes:
        print("\nchanged messages")
        rows = [
            (
                change.newer.name,
                "" if change.older.name == change.newer.name else change.older.name,
                _if_changed(change.older.type, change.newer.type),
                _changed(_key(change.older), _key(change.newer)),
                _changed(str(change.older.valid_versions), str(change.newer.valid_versions)),
                ranges_text(change.added),
                ranges_text(change.dropped),
                _changed(_marks(change.older), _marks(change.newer)),
            )
            for change in changes
        ]
        header = ("MESSAGE", "FORMERLY", "TYPE", "KEY", "VERSIONS", "ADDED", "REMOVED", "MARKS")
        print_table(header, rows, indent="  ")


def _changed(older: str, newer: str) -> str:
    """Returns a value, or the older and the newer value if they differ."""
    return newer if older == newer else f"{older or 'none'} -> {newer or 'none'}"


def _if_changed(older: str, newer: str) -> str:
    """Returns the older and the newer value; "" if they are equal."""
    return "" if older == newer else _changed(older, newer)


def _print_versions(versions: Sequence[VersionChanges]) -> None:
    if versions:
        print("\nadded versions")
        rows: list[tuple[str, str, str, str]] = []
        for each in versions:
            name = f"{each.message} v{each.newer}"
            changes = [(change.kind.value, change.field, change.detail) for change in each.changes]
            for row in changes or [("same", "", f"as v{each.older}")]:
                rows.append((name, *row))
                name = ""
        print_table(("MESSAGE", "CHANGE", "FIELD", "DETAIL"), rows, indent="  ")


def _print_altered(altered: Sequence[AlteredVersion]) -> None:
    """Prints the differences of versions that both sets have, except other names of fields."""
    rows: list[tuple[str, str, str, str]] = []
    for each in altered:
        name = f"{each.message} v{each.version}"
        for difference in each.differences:
            if difference.kind is not DifferenceKind.FIELD_RENAMED:
                rows.append((name, difference.kind.value, difference.field, difference.detail))
                name = ""
    if rows:
        print("\nversions with another layout (kproto-codegen check judges them)")
        print_table(("MESSAGE", "DIFFERENCE", "FIELD", "DETAIL"), rows, indent="  ")


def _print_renamed(altered: Sequence[AlteredVersion]) -> None:
    """Prints the fields with another name and the same bytes, and the versions that have them."""
    versions: dict[tuple[str, str, str], list[int]] = {}
    for each in altered:
        for difference in each.differences:
            if difference.kind is DifferenceKind.FIELD_RENAMED:
                place = (each.message, difference.field, difference.detail)
                versions.setdefault(place, []).append(each.version)
    if versions:
        print("\nrenamed fields")
        rows = [
            (message, ranges_text(numbers), field, detail)
            for (message, field, detail), numbers in versions.items()
        ]
        print_table(("MESSAGE", "VERSIONS", "FIELD", "DETAIL"), rows, indent="  ")


def _print_marks(marks: Sequence[MarkChanges]) -> None:
    if marks:
        print("\nfields with other marks")
        rows = [
            (each.message if at == 0 else "", change.field, change.kind)
            for each in marks
            for at, change in enumerate(each.changes)
        ]
        print_table(("MESSAGE", "FIELD", "CHANGE"), rows, indent="  ")


def _key(spec: MessageSpec) -> str:
    return "" if spec.api_key is None else str(spec.api_key)


def _marks(spec: MessageSpec) -> str:
    """Returns the flexible, deprecated and unstable versions of a message, and its listeners."""
    marks = [
        f"{word} {versions}"
        for word, versions in (
            ("flexible", spec.flexible_versions),
            ("deprecated", spec.deprecated_versions),
        )
        if versions
    ]
    if spec.latest_version_unstable:
        marks.append(f"unstable {spec.valid_versions.highest}")
    if spec.listeners:
        marks.append(f"for {'/'.join(spec.listeners)}")
    return ", ".join(marks)
