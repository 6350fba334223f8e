"""Finds the releases in a folder such as `schemas/`, and their order.

A release is a subfolder that is named like one (`3.9.2`, `v2`, `rp-24.3`), that has a folder for
each module, or that `releases.txt` or the caller names. Other folders with definitions are modules
of a single release, which is then the whole folder. No folder with definitions is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from kproto.schema.definition_folders import (
    NO_DEFINITIONS,
    ORDER_FILE,
    RELEASE_NAME,
    listed_releases,
    release_order,
)

from ..errors import DefinitionError

__all__ = ["release_folders"]


def release_folders(path: Path, order: Sequence[str] = ()) -> list[Path]:
    """Returns the subfolders of `path` that are releases, the oldest first.

    `order` are the names of the releases, the oldest first; by default those in `releases.txt`, and
    without this file the numbers in the names decide. Returns an empty list if the folder is itself
    a release. Raises DefinitionError for a named folder that is missing, for a folder with
    definitions that is no release, and if the names tell no order.
    """
    file = path / ORDER_FILE
    names = list(order) or _listed(file)
    with_definitions = [child for child in sorted(path.iterdir()) if _has_definitions(child)]
    if names:
        source = "the order" if order else str(file)
        _check_no_files(path)
        return _in_order(path, names, with_definitions, source)
    found = [child for child in with_definitions if _is_release(child)]
    if not found:
        return []
    _check_no_files(path)
    others = [child.name for child in with_definitions if child not in found]
    if others:
        raise DefinitionError(
            f"has the releases {_names(found)}, and definitions in {', '.join(others)}: list all "
            f"releases in {file}, the oldest first",
            file=str(path),
        )
    prefixes = {match["prefix"] for each in found if (match := RELEASE_NAME.fullmatch(each.name))}
    if len(found) > 1 and (len(prefixes) > 1 or not all(map(_has_number, found))):
        raise DefinitionError(
            f"has the releases {_names(found)}, whose names tell no order: list them in {file}, "
            "the oldest first, or pass their order with --releases",
            file=str(path),
        )
    return sorted(found, key=lambda each: release_order(each.name))


def _listed(file: Path) -> list[str]:
    if not file.is_file():
        return []
    names = listed_releases(file)
    if not names:
        raise DefinitionError("lists no release", file=str(file))
    return list(names)


def _in_order(
    path: Path, names: Sequence[str], with_definitions: Sequence[Path], source: str
) -> list[Path]:
    """Returns the folders with these names. Raises DefinitionError if names and folders differ."""
    there = {child.name for child in with_definitions}
    missing = [name for name in names if name not in there]
    twice = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    unlisted = sorted(there - set(names))
    for faults, text in (
        (twice, "names {} twice"),
        (missing, "names {}, which is no folder with definitions"),
        (unlisted, "does not name {}, which has definitions"),
    ):
        if faults:
            raise DefinitionError(f"{source} " + text.format(", ".join(faults)), file=str(path))
    return [path / name for name in names]


def _check_no_files(path: Path) -> None:
    """Raises DefinitionError if definitions are beside the folders of releases."""
    files = sorted(file.name for file in path.glob("*.json") if file.name not in NO_DEFINITIONS)
    if files:
        raise DefinitionError(
            f"has folders of releases, and {', '.join(files[:3])} beside them: move the files into "
            "the folder of their release",
            file=str(path),
        )


def _has_definitions(path: Path) -> bool:
    if not path.is_dir() or path.name.startswith("."):
        return False
    return any(path.glob("*.json")) or any(path.glob("*/*.json"))


def _is_release(path: Path) -> bool:
    return _has_number(path) or any(path.glob("*/*.json"))


def _has_number(path: Path) -> bool:
    return RELEASE_NAME.fullmatch(path.name) is not None


def _names(folders: Sequence[Path]) -> str:
    return ", ".join(folder.name for folder in folders)
