"""Prints the comparison of `kproto diff`: the APIs and versions that differ between releases."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..schema import study
from ..schema.definition_folders import release_folder
from ..schema.specs import MessageSpec
from ..wire.counted import counted
from .diff_definitions import print_definitions
from .selection import definitions_from_options
from .tables import print_json, print_table, ranges_text

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Prints the comparison; returns 0. Raises UnknownNameError for an unknown release."""
    has_newer = options.newer is not None
    if options.package is not None and has_newer:
        options.refuse("NEWER is the package of --package: pass OLDER alone")
    if options.package is None and not has_newer:
        options.refuse("the following arguments are required: NEWER")
    is_of_definitions = (
        options.package is not None or options.schemas is not None or _has_folder(options)
    )
    if options.common:
        if is_of_definitions:
            options.refuse("--common is for two releases of Kafka")
        _print_common(options)
        return 0
    if is_of_definitions:
        print_definitions(_compare_definitions(options), as_json=options.json)
        return 0
    found = study.compare(options.older, options.newer)
    if options.json:
        data = found.to_json()
        for each, row in zip(found.versions, data["versions"], strict=True):
            note = study.version_note(each.message, each.newer)
            row["note"] = None if note is None else note.to_json()
        print_json(data)
        return 0
    print(
        f"Kafka {found.older} to {found.newer}: {counted(len(found.added), 'API')} added, "
        f"{len(found.removed)} removed, {len(found.changed)} changed"
    )
    _print_apis("added APIs", found.added)
    _print_apis("removed APIs", found.removed)
    _print_ranges([each for each in found.changed if each.older.versions != each.newer.versions])
    _print_marks([each for each in found.changed if each.older.versions == each.newer.versions])
    _print_versions(found.versions)
    return 0


def _print_common(options: argparse.Namespace) -> None:
    found = study.common_versions(options.older, options.newer)
    names = study.api_names()
    if options.json:
        print_json(
            [
                {"apiKey": key, "name": names[key], "versions": str(versions)}
                for key, versions in found.items()
            ]
        )
        return
    print_table(
        ("KEY", "API", "VERSIONS"),
        [(str(key), names[key], str(versions)) for key, versions in found.items()],
    )


def _has_folder(options: argparse.Namespace) -> bool:
    """Returns True if OLDER or NEWER is a folder, and not the name of a release of Kafka."""
    names = [name for name in (options.older, options.newer) if name not in study.releases()]
    return any(os.sep in name or Path(name).is_dir() for name in names)


def _compare_definitions(options: argparse.Namespace) -> study.DefinitionComparison:
    """Compares folders of definitions, releases of Kafka and the package of `--package`.

    A release of Kafka has only requests and responses, so only these are compared with it.
    """
    schemas = options.schemas

    def is_of_kafka(name: str) -> bool:
        return schemas is None and name in study.releases()

    def side(name: str) -> tuple[str, Mapping[str, MessageSpec]]:
        if is_of_kafka(name):
            return f"Kafka {name}", study.release_definitions(name)
        folder = Path(name) if schemas is None else release_folder(Path(schemas), name)
        return str(folder), study.read_definitions(folder)

    package = definitions_from_options(options)
    sides = [
        side(options.older),
        side(options.newer) if package is None else (options.package, package),
    ]
    if is_of_kafka(options.older) or (package is None and is_of_kafka(options.newer)):
        sides = [(name, _apis(messages)) for name, messages in sides]
    (older, before), (newer, after) = sides
    return study.compare_definitions(older, before, newer, after)


def _apis(messages: Mapping[str, MessageSpec]) -> Mapping[str, MessageSpec]:
    """Returns the requests and responses of `messages`."""
    return {
        name: messages[name] for name in messages if messages[name].type in {"request", "response"}
    }


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
                ranges_text(change.added),
                ranges_text(change.dropped),
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
