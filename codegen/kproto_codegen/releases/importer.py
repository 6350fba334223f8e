"""Reads the definitions and error codes of a Kafka release from jars, a source tree or a folder.

Finds the definition files, and the number of the release. `parser` parses a definition, `rules`
checks it, and `release.write_release` stores the result.
"""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Final

from ..error_code import ErrorCode
from ..errors import DefinitionError
from ..reading.parser import Definition, decode_text, parse_with_faults
from ..rules.cross_message_rules import check_messages
from ..rules.table import CheckStrictness, check_definition
from .attribution import is_half, is_kafkas
from .error_enum import (
    ERRORS_CLASS,
    ERRORS_SOURCE,
    error_codes_of_classes,
    error_codes_of_sources,
)
from .folders import release_folders
from .release import ERRORS_FILE, Release, load_error_codes, load_release

__all__ = ["Imported", "ImportedRelease", "read_release_at", "read_releases"]

#: The names of the folders, in jars and under `resources/`, that contain definitions.
DEFINITION_FOLDERS: Final = frozenset({"message", "metadata"})

_VERSION_FILE: Final = "kafka/kafka-version.properties"
_JAR_NAME = re.compile(
    r"(?P<artefact>[a-z][a-z-]*[a-z])(?:_\d+\.\d+)?-(?P<version>\d+\.\d+[^/]*?)"
    r"(?P<classifier>-(?:sources|javadoc|test|scaladoc|test-sources))?\.jar"
)
_TREE_DEFINITION = re.compile(r"(?P<module>.+?)/src/main/resources/(?:.+/)?(?:message|metadata)")

#: Maximum size in bytes of a definition or class file that is read; Kafka's largest definition has
#: 30 kB.
MAX_DEFINITION_BYTES: Final = 1 << 20


@dataclass(slots=True)
class ImportedRelease:
    """The result of reading a release.

    `errors` has an error for each part that could not be read, and for each violation of a rule.
    `notes` has the errors for violations that are not enforced (`Finding.accepted`).
    """

    release: Release
    errors: list[DefinitionError] = field(default_factory=list)
    notes: list[DefinitionError] = field(default_factory=list)
    #: The messages of the user's own protocol, by name: their `about` sentences are kept.
    own: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class _SourceFile:
    """A definition file that was found, with the function that reads it."""

    module: str
    file: str
    read: Callable[[], bytes]


@dataclass(slots=True)
class _Source:
    """A jar, a source tree or a folder of definitions; `error_codes` reads its error codes."""

    release: str
    definitions: list[_SourceFile]
    error_codes: Callable[[], list[ErrorCode]] | None = None
    is_folder: bool = False


@dataclass(slots=True)
class Imported:
    """The result of reading all sources.

    `unopened` has the errors of sources that could not be opened. `empty` are the sources without
    definitions.
    """

    releases: list[ImportedRelease] = field(default_factory=list)
    unopened: list[DefinitionError] = field(default_factory=list)
    empty: list[Path] = field(default_factory=list)

    def errors(self) -> list[DefinitionError]:
        """Returns the errors of all sources and releases."""
        return [*self.unopened, *(error for entry in self.releases for error in entry.errors)]


def read_releases(paths: Sequence[Path], *, release: str | None = None) -> Imported:
    """Reads jars, folders of jars, source trees and folders of definitions.

    `release` replaces the release number that the sources have. Collects errors instead of raising
    them. If all sources could be opened and none has a definition, adds an error for each path.
    """
    imported = Imported()
    by_release: dict[str, list[_Source]] = {}
    for path in paths:
        try:
            sources = list(_open(path, release, imported.unopened))
        except DefinitionError as error:
            imported.unopened.append(error)
            continue
        if not any(source.definitions for source in sources):
            imported.empty.append(path)
        for source in sources:
            if source.definitions or source.error_codes:
                by_release.setdefault(source.release, []).append(source)
    found = any(source.definitions for sources in by_release.values() for source in sources)
    if not found and not imported.unopened:
        imported.unopened += [
            DefinitionError("holds no message definitions", file=str(path)) for path in paths
        ]
    imported.releases = [
        _read_release(name, sources) for name, sources in sorted(by_release.items())
    ]
    return imported


def read_release_at(path: Path) -> Release:
    """Reads the release at `path`: a release's folder, a jar, a folder of jars or a source tree.

    Raises DefinitionError if `path` has several releases, or if a file of the release is unreadable
    or breaks a rule. The error lists all faults of the release.
    """
    is_tree = (path / "gradle.properties").is_file()
    if path.is_dir() and not is_tree and next(path.rglob("*.jar"), None) is None:
        releases = [folder.name for folder in release_folders(path)]
        if releases:
            reason = "is a folder of releases; name one of them: "
            reason += ", ".join(str(path / name) for name in releases)
            raise DefinitionError(reason, file=str(path))
        return load_release(path)
    imported = read_releases([path])
    errors = imported.errors()
    if errors:
        raise DefinitionError.of(errors)
    if len(imported.releases) != 1:
        names = ", ".join(entry.release.name for entry in imported.releases)
        raise DefinitionError(f"holds more than one release: {names}", file=str(path))
    return imported.releases[0].release


def _read_release(name: str, sources: Sequence[_Source]) -> ImportedRelease:
    imported = ImportedRelease(Release(name, ()))
    definitions: list[Definition] = []
    own: set[str] = set()
    unread: list[tuple[str, str]] = []
    codes: list[ErrorCode] = []
    for source in sources:
        for entry in source.definitions:
            try:
                text = decode_text(entry.read(), file=entry.file)
                definition = parse_with_faults(
                    text, file=entry.file, module=entry.module, lenient=True
                )
            except DefinitionError as error:
                imported.errors.append(error)
                unread.append((entry.module, PurePosixPath(entry.file.rpartition("!")[2]).stem))
                continue
            found = check_definition(definition, profile=CheckStrictness.LEGACY)
            imported.notes += [finding.error for finding in found if finding.accepted]
            faults = [finding.error for finding in found if not finding.accepted]
            imported.errors += faults
            is_duplicate = any(definition.spec == other.spec for other in definitions)
            if faults:
                unread.append((entry.module, definition.spec.name))
            elif not is_duplicate:  # a folder may have the same jar twice
                definitions.append(definition)
                if source.is_folder and not is_kafkas(definition.spec, text):
                    own.add(definition.spec.name)
        if source.error_codes is not None:
            try:
                codes = source.error_codes()
            except DefinitionError as error:
                imported.errors.append(error)
    imported.errors += check_messages(definitions)
    halves = [each for each in definitions if is_half(each.spec, unread)]
    imported.notes += [
        DefinitionError(
            f"{each.spec.name} is left out, because its "
            f"{'response' if each.spec.type == 'request' else 'request'} could not be read",
            file=each.file,
        )
        for each in halves
    ]
    messages = tuple(each.spec for each in definitions if each not in halves)
    imported.release = Release(name, messages, tuple(codes))
    imported.own = frozenset(own)
    return imported


def _open(path: Path, release: str | None, errors: list[DefinitionError]) -> Iterator[_Source]:
    if path.is_dir():
        yield from _open_folder(path, release, errors)
    elif path.is_file():
        yield _open_jar(path, release)
    else:
        raise DefinitionError("is neither a jar nor a folder", file=str(path))


def _open_folder(
    path: Path, release: str | None, errors: list[DefinitionError]
) -> Iterator[_Source]:
    if (path / "gradle.properties").is_file() and (path / "clients/src").is_dir():
        yield _open_tree(path, release)
        return
    jars = sorted(path.rglob("*.jar"))
    for jar in jars:
        if not _is_kafka_jar(jar):
            continue
        try:
            yield _open_jar(jar, release)
        except DefinitionError as error:
            errors.append(error)
    if not jars:
        yield _open_definitions(path, release)


def _is_kafka_jar(path: Path) -> bool:
    """Returns True if a jar is named like a Kafka artifact without a classifier."""
    match = _JAR_NAME.fullmatch(path.name)
    kafka = match is not None and match["artefact"].split("-")[0] in {"kafka", "connect"}
    return kafka and match is not None and match["classifier"] is None


def _open_jar(path: Path, release: str | None) -> _Source:
    try:
        jar = zipfile.ZipFile(path)
        names = set(jar.namelist())
    # zipfile raises NotImplementedError for a version of the format that it does not know.
    except (OSError, zipfile.BadZipFile, NotImplementedError, ValueError) as error:
        raise DefinitionError(f"is no readable jar: {error}", file=str(path)) from error
    read = _entry_reader(jar, path)
    found = sorted(
        name
        for name in names
        if name.endswith(".json") and PurePosixPath(name).parent.name in DEFINITION_FOLDERS
    )
    if not found and ERRORS_CLASS not in names:
        return _Source("", [])
    match = _JAR_NAME.fullmatch(path.name)
    if release is None:
        release = _property(read(_VERSION_FILE), "version") if _VERSION_FILE in names else None
        release = release or (match["version"] if match else None)
    if release is None:
        raise DefinitionError(
            "has no release in its name or in kafka-version.properties; name it with --release",
            file=str(path),
        )
    module = _module_of_artefact(match["artefact"] if match else path.stem)
    definitions = [
        _SourceFile(module, f"{path.name}!{name}", partial(read, name)) for name in found
    ]
    source = _Source(_safe_release(release, path), definitions)
    if ERRORS_CLASS in names:
        source.error_codes = lambda: error_codes_of_classes(
            lambda name: read(name) if name in names else None, file=path.name
        )
    return source


def _entry_reader(jar: zipfile.ZipFile, path: Path) -> Callable[[str], bytes]:
    def read(name: str) -> bytes:
        try:
            if jar.getinfo(name).file_size > MAX_DEFINITION_BYTES:
                raise DefinitionError(
                    f"is larger than {MAX_DEFINITION_BYTES} bytes", file=f"{path.name}!{name}"
                )
            return jar.read(name)
        except (OSError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error) as error:
            raise DefinitionError(f"cannot be read: {error}", file=f"{path.name}!{name}") from error

    return read


def _module_of_artefact(artefact: str) -> str:
    """Returns the module of a jar: `group-coordinator` for the artifact `kafka-group-coordinator`,
    and `core` for `kafka`.
    """
    return "core" if artefact == "kafka" else artefact.removeprefix("kafka-")


def _open_tree(path: Path, release: str | None) -> _Source:
    if release is None:
        release = _property(_read_file(path / "gradle.properties"), "version")
    if release is None:
        raise DefinitionError(
            "has no version; name the release with --release", file=str(path / "gradle.properties")
        )
    definitions = []
    for file in sorted(path.rglob("src/main/resources/**/*.json")):
        match = _TREE_DEFINITION.fullmatch(file.parent.relative_to(path).as_posix())
        if match:
            module = match["module"].replace("/", "-")
            definitions.append(_source_file(module, file))

    def read(name: str) -> str | None:
        source = path / name
        if not source.is_file():
            return None
        return decode_text(_read_file(source), file=str(source))

    source = _Source(_safe_release(release, path), definitions)
    if (path / ERRORS_SOURCE).is_file():
        source.error_codes = lambda: error_codes_of_sources(read, file=str(path))
    return source


def _open_definitions(path: Path, release: str | None) -> _Source:
    """Opens a folder of extracted definition files, whose subfolders are modules."""
    if release is None:
        version = path / _VERSION_FILE
        release = _property(_read_file(version), "version") if version.is_file() else None
    if release is None:
        raise DefinitionError(
            "has no kafka-version.properties; name the release with --release", file=str(path)
        )
    definitions = [
        _source_file(_module_of_folder(path, file.parent), file)
        for file in sorted(path.rglob("*.json"))
        if file.name != ERRORS_FILE
    ]
    source = _Source(_safe_release(release, path), definitions, is_folder=True)
    if (path / ERRORS_FILE).is_file():
        source.error_codes = lambda: list(load_error_codes(path / ERRORS_FILE))
    return source


def _module_of_folder(path: Path, folder: Path) -> str:
    """Returns the module of `folder`: its path below `path`, joined by dashes.

    A last part `common/message`, `common/metadata` or `message` is left out. If nothing is left,
    returns the name of `path`.
    """
    inner = "" if folder == path else folder.relative_to(path).as_posix()
    module = re.sub(r"(^|/)(common/(message|metadata)|message)$", "", inner)
    return module.replace("/", "-") or path.resolve().name


def _source_file(module: str, file: Path) -> _SourceFile:
    return _SourceFile(module, str(file), partial(_read_file, file))


def _read_file(path: Path) -> bytes:
    try:
        if path.stat().st_size > MAX_DEFINITION_BYTES:
            raise DefinitionError(f"is larger than {MAX_DEFINITION_BYTES} bytes", file=str(path))
        return path.read_bytes()
    except OSError as error:
        raise DefinitionError(f"cannot be read: {error.strerror}", file=str(path)) from error


def _property(data: bytes, key: str) -> str | None:
    """Returns the value of a key in a Java properties file; None if missing or empty."""
    for line in data.decode("utf-8", "replace").splitlines():
        name, _, value = line.partition("=")
        if name.strip() == key and value.strip():
            return value.strip()
    return None


def _safe_release(name: str, path: Path) -> str:
    """Returns the release `name`. Raises DefinitionError if it is not safe as a folder name."""
    if re.fullmatch(r"[0-9A-Za-z][0-9A-Za-z._+-]*", name, re.ASCII) is None:
        raise DefinitionError(f"{name!r} cannot be the name of a release", file=str(path))
    return name
