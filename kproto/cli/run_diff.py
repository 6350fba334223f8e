"""Prints the comparison of `kproto diff`: the APIs and versions that differ between releases."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from ..schema import study
from .tables import print_json, print_table

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Prints the comparison; returns 0. Raises UnknownNameError for an unknown release."""
    found = study.compare(options.older, options.newer)
    if options.json:
        data = found.to_json()
        for each, row in zip(found.versions, data["versions"], strict=True):
            note = study.version_note(each.message, each.newer)
            row["note"] = None if note is None else note.to_json()
        print_json(data)
        return 0
    print(
        f"Kafka {found.older} to {found.newer}: {len(found.added)} APIs added, "
        f"{len(found.removed)} removed, {len(found.changed)} changed"
    )
    _print_apis("added APIs", found.added)
    _print_apis("removed APIs", found.removed)
    _print_ranges([each for each in found.changed if each.older.versions != each.newer.versions])
    _print_marks([each for each in found.changed if each.older.versions == each.newer.versions])
    _print_versions(found.versions)
    return 0


def _print_apis(what: str, apis: Sequence[study.ApiRange]) -> None:
    if apis:
        print(f"\n{what}")
        rows = [(str(api.api_key), api.name, str(api.versions), _marks(api)) for api in apis]
        print_table(("KEY", "API", "VERSIONS", "MARKS"), rows, indent="  ")


def _print_ranges(changes: Sequence[study.RangeChange]) -> None:
    if changes:
        print("\nAPIs with other versions")
        rows = [
            (
                str(change.newer.api_key),
                change.newer.name,
                str(change.older.versions),
                str(change.newer.versions),
                _listed(change.added),
                _listed(change.dropped),
                _marks(change.newer),
            )
            for change in changes
        ]
        header = ("KEY", "API", "OLDER", "NEWER", "ADDED", "REMOVED", "MARKS")
        print_table(header, rows, indent="  ")


def _print_marks(changes: Sequence[study.RangeChange]) -> None:
    """Prints the APIs whose versions are equal in both releases and whose `_marks` differ."""
    if changes:
        print("\nAPIs with the same versions and other marks")
        rows = [
            (
                str(change.newer.api_key),
                change.newer.name,
                str(change.newer.versions),
                _marks(change.older),
                _marks(change.newer),
            )
            for change in changes
        ]
        print_table(("KEY", "API", "VERSIONS", "OLDER", "NEWER"), rows, indent="  ")


def _print_versions(versions: Sequence[study.VersionChanges]) -> None:
    if not versions:
        return
    print("\nadded versions")
    rows: list[tuple[str, str, str, str, str]] = []
    for each in versions:
        name = f"{each.message} v{each.newer}"
        note = study.version_note(each.message, each.newer)
        kips = "" if note is None else ", ".join(map(str, note.kips))
        changes = [(change.kind.value, change.field, change.detail) for change in each.changes]
        for row in changes or [("same", "", f"as v{each.older}")]:
            rows.append((name, kips, *row))
            name = kips = ""
    print_table(("MESSAGE", "KIP", "CHANGE", "FIELD", "DETAIL"), rows, indent="  ")


def _marks(api: study.ApiRange) -> str:
    """Returns the marks of an API in a release.

    The marks are the unstable, flexible and deprecated versions of the API, the listeners that
    serve the API, and its former name if the release uses a former name.
    """
    marks = [
        f"{word} {versions}"
        for word, versions in (
            ("unstable", api.unstable),
            ("flexible", api.flexible),
            ("deprecated", api.deprecated),
        )
        if versions
    ]
    if api.listeners:
        marks.append(f"for {'/'.join(api.listeners)}")
    if api.called != api.name:
        marks.append(f"called {api.called}")
    return ", ".join(marks)


def _listed(versions: Sequence[int]) -> str:
    """Returns `0-2, 5` for 0, 1, 2, 5."""
    parts: list[list[int]] = []
    for version in versions:
        if parts and parts[-1][-1] == version - 1:
            parts[-1].append(version)
        else:
            parts.append([version])
    return ", ".join(str(p[0]) if len(p) == 1 else f"{p[0]}-{p[-1]}" for p in parts)
