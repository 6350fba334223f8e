"""Reads folders of message definitions: the folder of a release, or of several releases.

Definitions are JSON files in Kafka's format, with comments. They are read without the checks of
`kproto_codegen`, which reports every fault of a definition with its line. A folder of releases, and
the order of its releases, follow the rules of `kproto-codegen generate --schemas`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from ..wire.errors import ConfigurationError
from .layout import layout
from .specs import MessageSpec
from .unknown_names import unknown_name_error

__all__ = [
    "NO_DEFINITIONS",
    "ORDER_FILE",
    "RELEASE_NAME",
    "listed_releases",
    "read_definitions",
    "release_folder",
    "release_names",
    "release_order",
]

#: The file that lists the releases of a folder, one in each line, the oldest first.
ORDER_FILE: Final = "releases.txt"

#: Files in the folder of a release, or beside the releases, that are no definitions.
NO_DEFINITIONS: Final = frozenset({"errors.json", "versions.json"})

#: A name with a number that orders it: `3.9.2`, `v2`, `rp-24.3`, `4.0.0-rc1`.
RELEASE_NAME: Final = re.compile(r"(?P<prefix>[A-Za-z]*[-_]?)\d+(?:[._]\d+)*(?:[-.]?[A-Za-z]+\d*)?")

#: A JSON string, or a comment, which Kafka's own files have.
_STRING_OR_COMMENT: Final = re.compile(r'("(?:\\.|[^"\\])*")|//[^\n]*|/\*.*?\*/', re.DOTALL)


def read_definitions(folder: Path) -> Mapping[str, MessageSpec]:
    """Returns the messages that the files of a release define, by name, sorted by name.

    The files are in `folder` and in its subfolders, which are modules. Leaves out messages without
    valid versions. Raises ConfigurationError for a folder without definitions, for a folder of
    several releases, and for a file that is no definition.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"{folder} is no folder of definitions")
    releases = release_names(folder)
    if releases:
        raise ConfigurationError(
            f"{folder} has the releases {', '.join(releases)}: name one, such as "
            f"{folder / releases[-1]}"
        )
    files = [(file, "") for file in sorted(folder.glob("*.json"))]
    files += [(file, file.parent.name) for file in sorted(folder.glob("*/*.json"))]
    specs = [_read(file, module) for file, module in files if file.name not in NO_DEFINITIONS]
    if not specs:
        raise ConfigurationError(f"{folder} has no definitions: a definition is a file *.json")
    found = {spec.name: spec for spec in specs if spec.valid_versions}
    return {name: found[name] for name in sorted(found)}


def release_folder(folder: Path, name: str) -> Path:
    """Returns the folder of a release in a folder of releases.

    Raises UnknownNameError, which suggests similar names, for an unknown release, and
    ConfigurationError for a folder without releases.
    """
    names = release_names(folder) if folder.is_dir() else ()
    if not names:
        raise ConfigurationError(
            f"{folder} has no folders of releases, whose names have a number, such as v2"
        )
    if name not in names:
        raise unknown_name_error(f"{folder} has no release", name, names)
    return folder / name


def release_names(folder: Path) -> tuple[str, ...]:
    """Returns the names of the releases in a folder, the oldest first; empty if it has none.

    The releases are those in `releases.txt`. Without this file, they are the subfolders that have a
    number in their names or folders of definitions in them, in the order of the numbers.
    """
    listed = folder / ORDER_FILE
    if listed.is_file():
        return listed_releases(listed)
    found = [
        child.name
        for child in sorted(folder.iterdir())
        if child.is_dir() and not child.name.startswith(".") and _is_release(child)
    ]
    return tuple(sorted(found, key=release_order))


def listed_releases(file: Path) -> tuple[str, ...]:
    """Returns the names in a file `releases.txt`; `#` begins a comment."""
    lines = file.read_text(encoding="utf-8").splitlines()
    return tuple(name for line in lines if (name := line.partition("#")[0].strip()))


def release_order(name: str) -> tuple[tuple[int, int, str], ...]:
    """Returns a sort key for releases: 3.9.2 before 3.10.0, and 4.0.0-rc1 before 4.0.0."""
    match = RELEASE_NAME.fullmatch(name)
    base, dash, rest = name[len(match["prefix"]) if match else 0 :].partition("-")
    parts = [(1, int(part), "") for part in re.findall(r"\d+", base)]
    return (*parts, (0, 0, rest) if dash else (1, -1, ""))


def _is_release(folder: Path) -> bool:
    has_modules = any(folder.glob("*/*.json"))
    is_named = RELEASE_NAME.fullmatch(folder.name) is not None
    return has_modules or (is_named and any(folder.glob("*.json")))


def _read(file: Path, module: str) -> MessageSpec:
    try:
        text = file.read_text(encoding="utf-8")
        node: Any = json.loads(_STRING_OR_COMMENT.sub(lambda found: found[1] or " ", text))
        spec = MessageSpec.from_json(_without_nulls(node), module)
        if spec.valid_versions.open_ended:
            raise ValueError(f"validVersions is {spec.valid_versions}: it needs a highest version")
        for version in spec.valid_versions:
            layout(spec, version)
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, OSError) as error:
        reason = f"{type(error).__name__}: {error}"
    except RecursionError:
        reason = "a struct contains itself, or the JSON is too deep"
    else:
        return spec
    raise ConfigurationError(
        f"{file} is no valid definition ({reason}); kproto-codegen generate reports each fault of "
        "its folder"
    )


def _without_nulls(node: Any) -> Any:
    """Returns JSON data without the keys whose value is null, which count as missing."""
    if isinstance(node, dict):
        return {key: _without_nulls(value) for key, value in node.items() if value is not None}
    return [_without_nulls(value) for value in node] if isinstance(node, list) else node
