"""Reads and writes the folder of a release, `schemas/<release>/`, and checks its definitions.

The folder has a subfolder for each module with a JSON file for each message, and a file of error
codes. `importer` reads a release from jars or sources; `release_union` combines several releases.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from kproto.schema.specs import MessageSpec

from ..error_code import ErrorCode
from ..errors import DefinitionError
from ..origins import NO_ORIGINS, SourceFileNames
from ..reading.json_text import JsonNode, read_json
from ..reading.parser import Definition, read_definition, read_text
from ..rules.cross_message_rules import check_messages
from ..rules.table import checked_spec
from .folders import release_folders

__all__ = [
    "ERRORS_FILE",
    "Release",
    "format_facts",
    "load_error_codes",
    "load_release",
    "load_releases",
    "write_release",
]

#: The name of the file with the error codes of a release, in the folder of the release.
ERRORS_FILE: Final = "errors.json"

_ERROR_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Release:
    """A release: its messages, each with its module, and its error codes.

    `error_codes` is empty if the import lacked kafka-clients, which defines the error codes.
    `origins` is set only for a release that was read from its folder, and is not compared.
    """

    name: str
    messages: tuple[MessageSpec, ...]
    error_codes: tuple[ErrorCode, ...] = ()
    origins: SourceFileNames = field(default=NO_ORIGINS, compare=False)

    def message(self, name: str) -> MessageSpec:
        """Returns the message called `name`. Raises KeyError if the release lacks it."""
        for message in self.messages:
            if message.name == name:
                return message
        raise KeyError(f"{self.name} has no message {name}")

    def modules(self) -> dict[str, tuple[MessageSpec, ...]]:
        """Returns the messages by module; modules and messages are sorted by name."""
        found: dict[str, list[MessageSpec]] = {}
        for message in sorted(self.messages, key=lambda spec: (spec.module, spec.name)):
            found.setdefault(message.module, []).append(message)
        return {module: tuple(messages) for module, messages in found.items()}


def load_release(path: Path, *, root: Path | None = None) -> Release:
    """Reads the folder of a release: a subfolder for each module, and errors.json.

    Also accepts definitions without a module, directly in the folder, and Kafka's own files with
    comments. In `origins`, the names of files begin with the name of `root`, by default the folder
    itself. Raises DefinitionError if a file is invalid, or if there is no definition; the error has
    the errors of all files.
    """
    root = root or path
    if not path.is_dir():
        raise DefinitionError("is no folder of definitions", file=str(path))
    definitions: list[Definition] = []
    faults: list[DefinitionError] = []
    for file, module in _definition_files(path):
        try:
            definition = read_definition(file, module=module)
            checked_spec(definition)
            definitions.append(definition)
        except DefinitionError as error:
            faults.append(error)
    faults += check_messages(definitions)
    codes: tuple[ErrorCode, ...] = ()
    try:
        codes = load_error_codes(path / ERRORS_FILE)
    except DefinitionError as error:
        faults.append(error)
    if not definitions and not faults:
        faults.append(DefinitionError("holds no message definitions (*.json)", file=str(path)))
    if faults:
        raise DefinitionError.of(faults)
    messages = tuple(definition.spec for definition in definitions)
    origins = SourceFileNames(
        (_named(path, root),),
        {each.spec.name: (_named(Path(each.file), root),) for each in definitions},
        (_named(path / ERRORS_FILE, root),) if codes else (),
    )
    return Release(path.resolve().name, messages, codes, origins)


def _named(file: Path, root: Path) -> str:
    """Returns the path of a file, beginning with the name of `root`; equal on all machines."""
    return (PurePosixPath(root.resolve().name) / file.relative_to(root).as_posix()).as_posix()


def load_releases(path: Path, order: Sequence[str] = ()) -> list[Release]:
    """Returns the releases in a folder such as `schemas/`, oldest first.

    `order` is that of `release_folders`. A folder without release folders is itself read as a
    release. Raises DefinitionError as `load_release` and `release_folders` do; the error has the
    errors of all releases.
    """
    if not path.is_dir():
        raise DefinitionError("is no folder of releases", file=str(path))
    releases: list[Release] = []
    faults: list[DefinitionError] = []
    for folder in release_folders(path, order) or [path]:
        try:
            releases.append(load_release(folder, root=path))
        except DefinitionError as error:
            faults.append(error)
    if faults:
        raise DefinitionError.of(faults)
    return releases


def _definition_files(path: Path) -> Iterator[tuple[Path, str]]:
    """Yields the definition files and their modules, sorted by path."""
    for child in sorted(path.iterdir()):
        if child.is_dir():
            yield from ((file, child.name) for file in sorted(child.glob("*.json")))
        elif child.suffix == ".json" and child.name != ERRORS_FILE:
            yield child, ""


def load_error_codes(path: Path) -> tuple[ErrorCode, ...]:
    """Returns the error codes in the file `path`; an empty tuple if the file does not exist.

    Raises DefinitionError if the file is invalid, or has a code or a name twice.
    """
    if not path.exists():
        return ()
    root = read_json(read_text(path), file=str(path)).root
    if not isinstance(root.value, list):
        raise DefinitionError("should hold an array of error codes", file=str(path), line=root.line)
    codes = tuple(_error_code(node, path) for node in root.value)
    for key, values in (("code", [c.code for c in codes]), ("name", [c.name for c in codes])):
        for index, (value, node) in enumerate(zip(values, root.value, strict=True)):
            if value in values[:index]:
                reason = f"two error codes have the {key} {value}"
                raise DefinitionError(reason, file=str(path), line=node.line)
    return codes


def _error_code(node: JsonNode, path: Path) -> ErrorCode:
    entry = node.value if isinstance(node.value, dict) else {}
    values = {key: entry[key].value for key in entry}
    match values:
        case {
            "name": str(name),
            "code": int(code),
            "retriable": bool(retriable),
            "message": str() | None as message,
        } if len(values) == 4 and not isinstance(code, bool):
            if _ERROR_NAME.fullmatch(name):
                return ErrorCode(name, code, retriable, message)
    raise DefinitionError(
        'an error code should have a "name" of capitals, digits and underscores, and "code", '
        '"retriable" and "message"',
        file=str(path),
        line=node.line,
    )


def write_release(release: Release, out: Path, *, own: Collection[str] = ()) -> bool:
    """Writes the files of `release` to `out/<release>`; returns False if they were up to date.

    Leaves out the `about` sentences of the messages that are not in `own`.

    The files are `<module>/<Name>.json` for each message, and errors.json. A module of `release`
    replaces the existing folder of the module. Keeps existing modules that `release` lacks, and
    keeps errors.json if `release` has no error codes. The new folder is written under a temporary
    name, so that a failed write does not change the existing folder.
    """
    files = {
        f"{m.module}/{m.name}.json": format_facts(m, keeps_about=m.name in own)
        for m in release.messages
    }
    if release.error_codes:
        files[ERRORS_FILE] = _format_lines([code.to_json() for code in release.error_codes])
    target = out / release.name
    parts = sorted({name.split("/")[0] for name in files})
    if _current_files(target, parts) == files:
        return False
    out.mkdir(parents=True, exist_ok=True)
    staging = Path(tempfile.mkdtemp(prefix=f".{release.name}-", dir=out))
    try:
        if target.exists():
            shutil.copytree(target, staging, dirs_exist_ok=True)
        _replace_parts(staging, parts, files)
        _swap(staging, target)
    finally:
        shutil.rmtree(staging, ignore_errors=True)
    return True


def _current_files(target: Path, parts: Iterable[str]) -> dict[str, str]:
    """Returns the content of the existing files in `parts` (modules and errors.json), by name."""
    found: dict[str, str] = {}
    for part in parts:
        path = target / part
        for file in [path] if path.is_file() else sorted(path.glob("**/*")):
            if file.is_file():
                name = file.relative_to(target).as_posix()
                found[name] = file.read_text("utf-8", "surrogateescape")
    return found


def _replace_parts(folder: Path, parts: Iterable[str], files: Mapping[str, str]) -> None:
    for part in parts:
        if (folder / part).is_dir():
            shutil.rmtree(folder / part)
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


def _swap(staging: Path, target: Path) -> None:
    """Replaces `target` by `staging` with two renames; restores `target` if the second fails."""
    staging.chmod(0o755)
    if not target.exists():
        staging.rename(target)
        return
    replaced = target.with_name(f".{target.name}-replaced")
    shutil.rmtree(replaced, ignore_errors=True)
    target.rename(replaced)
    try:
        staging.rename(target)
    except OSError:
        replaced.rename(target)
        raise
    shutil.rmtree(replaced)


def format_facts(message: MessageSpec, *, keeps_about: bool = False) -> str:
    """Returns the JSON of a message, with a line for each key and each field.

    Leaves out the module, which is the name of the folder, and `about` sentences, unless
    `keeps_about` is True.
    """
    facts = message.with_module("").to_json()
    if not keeps_about:
        facts = _without_about(facts)
    lines = []
    for key, value in facts.items():
        nested = key in {"fields", "commonStructs"}
        text = _format_nested(value, "  ") if nested else json.dumps(value)
        lines.append(f"  {json.dumps(key)}: {text}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _without_about(node: Any) -> Any:
    if isinstance(node, dict):
        return {key: _without_about(value) for key, value in node.items() if key != "about"}
    return [_without_about(value) for value in node] if isinstance(node, list) else node


def _format_nested(entries: Sequence[Mapping[str, Any]], indent: str) -> str:
    """Formats an array of fields: each on a line, with its own fields indented below."""
    if not entries:
        return "[]"
    inner = indent + "  "
    return "[\n" + ",\n".join(inner + _format_entry(e, inner) for e in entries) + f"\n{indent}]"


def _format_entry(entry: Mapping[str, Any], indent: str) -> str:
    parts = [
        f"{json.dumps(key)}: "
        + (_format_nested(value, indent) if key == "fields" else json.dumps(value))
        for key, value in entry.items()
    ]
    return "{" + ", ".join(parts) + "}"


def _format_lines(entries: Sequence[Mapping[str, Any]]) -> str:
    return "[\n" + ",\n".join("  " + json.dumps(entry) for entry in entries) + "\n]\n"
