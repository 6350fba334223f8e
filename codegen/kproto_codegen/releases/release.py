"""A release in `schemas/<release>/`: the facts of every module, and the error codes.

Owns the folder: its layout, the form of its files, and its atomic replacement. `importer` finds
a release, `release_union` combines several.
"""

from __future__ import annotations

import json
import re
import shutil
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Any, Final

from kproto.schema.specs import MessageSpec

from ..error_code import ErrorCode
from ..errors import DefinitionError
from ..origins import NO_ORIGINS, Origins
from ..reading.json_text import JsonNode, read_json
from ..reading.parser import Definition, read_definition, read_text
from ..rules.cross_message_rules import check_messages
from ..rules.table import checked_spec

__all__ = [
    "ERRORS_FILE",
    "Release",
    "format_facts",
    "load_error_codes",
    "load_release",
    "load_releases",
    "release_folders",
    "release_order",
    "write_release",
]

#: The file of a release's error codes, next to the folders of its modules.
ERRORS_FILE: Final = "errors.json"

_ERROR_NAME: Final = re.compile(r"[A-Z][A-Z0-9_]*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Release:
    """One release: its messages, each with its module, and its error codes.

    `error_codes` is empty if the release was imported without the module that has them. `origins`
    are known for a folder of facts, and do not count for equality.
    """

    name: str
    messages: tuple[MessageSpec, ...]
    error_codes: tuple[ErrorCode, ...] = ()
    origins: Origins = field(default=NO_ORIGINS, compare=False)

    def message(self, name: str) -> MessageSpec:
        """Returns the message called `name`. Raises KeyError if the release has none."""
        for message in self.messages:
            if message.name == name:
                return message
        raise KeyError(f"{self.name} has no message {name}")

    def modules(self) -> dict[str, tuple[MessageSpec, ...]]:
        """Returns the messages by module, modules and messages in alphabetical order."""
        found: dict[str, list[MessageSpec]] = {}
        for message in sorted(self.messages, key=lambda spec: (spec.module, spec.name)):
            found.setdefault(message.module, []).append(message)
        return {module: tuple(messages) for module, messages in found.items()}


def load_release(path: Path, *, root: Path | None = None) -> Release:
    """Reads `schemas/<release>`: a folder per module, a file per message, and errors.json.

    The names of its files begin with the name of `root`, which is the folder itself or a parent.
    Accepts definitions in the folder itself, without a module, and Kafka's own files with comments.
    Raises DefinitionError with every fault of every file.
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
    origins = Origins(
        (_named(path, root),),
        {each.spec.name: (_named(Path(each.file), root),) for each in definitions},
        (_named(path / ERRORS_FILE, root),) if codes else (),
    )
    return Release(path.resolve().name, messages, codes, origins)


def _named(file: Path, root: Path) -> str:
    """Returns the name of a file below `root`, which is the same on every machine."""
    return (PurePosixPath(root.resolve().name) / file.relative_to(root).as_posix()).as_posix()


def load_releases(path: Path) -> list[Release]:
    """Returns every release in a folder such as `schemas/`, oldest first.

    A folder with definitions, directly or in folders of modules, is one release. Raises
    DefinitionError with every fault of every file of every release.
    """
    if not path.is_dir():
        raise DefinitionError("is no folder of releases", file=str(path))
    releases: list[Release] = []
    faults: list[DefinitionError] = []
    for folder in release_folders(path) or [path]:
        try:
            releases.append(load_release(folder, root=path))
        except DefinitionError as error:
            faults.append(error)
    if faults:
        raise DefinitionError.of(faults)
    return releases


def release_folders(path: Path) -> list[Path]:
    """Returns the releases in a folder, oldest first; none if the folder is itself a release."""
    folders = (child for child in path.iterdir() if child.is_dir() and _is_release_folder(child))
    return sorted(folders, key=release_order)


def release_order(path: Path | str) -> tuple[tuple[int, int, str], ...]:
    """Returns a key that sorts 3.9.2 before 3.10.0, and 4.0.0-rc1 before 4.0.0."""
    name = path.name if isinstance(path, Path) else path
    base, dash, rest = name.partition("-")
    parts = [(1, int(part), "") for part in re.findall(r"\d+", base)]
    return (*parts, (0, 0, rest) if dash else (1, -1, ""))


def _is_release_folder(path: Path) -> bool:
    return re.match(r"\d+\.\d+", path.name) is not None


def _definition_files(path: Path) -> Iterator[tuple[Path, str]]:
    """Yields each definition file with its module, in alphabetical order."""
    for child in sorted(path.iterdir()):
        if child.is_dir():
            yield from ((file, child.name) for file in sorted(child.glob("*.json")))
        elif child.suffix == ".json" and child.name != ERRORS_FILE:
            yield child, ""


def load_error_codes(path: Path) -> tuple[ErrorCode, ...]:
    """Reads errors.json; a release without it has no error codes. Raises DefinitionError."""
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


def write_release(release: Release, out: Path) -> bool:
    """Writes `out/<release>/<module>/<Name>.json` and errors.json; returns whether it changed.

    Replaces every module of `release` as a whole, and keeps other modules. Writes to a temporary
    folder first, so that a failure keeps the old state.
    """
    files = {f"{m.module}/{m.name}.json": format_facts(m) for m in release.messages}
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
    """Returns the files of the parts (modules, errors.json) as they are now."""
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
    """Moves `staging` to `target` with two renames in immediate succession."""
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


def format_facts(message: MessageSpec) -> str:
    """Returns the facts of a message as text: one key per line, and one field per line.

    Leaves out `about` sentences and the module, which the folder tells.
    """
    facts = _without_about(message.with_module("").to_json())
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
    """Formats an array of fields: each on its line, its own fields indented below it."""
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
