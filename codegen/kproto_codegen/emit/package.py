"""Generates a package from specs: message modules, `__init__`, definitions file, error codes.

Checks that module names and api keys are unique in the package. Renders all files before `output`
writes the first.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

from kproto.schema.definitions import definition_line
from kproto.schema.naming import class_name, module_name
from kproto.schema.secrets import SECRETS
from kproto.schema.specs import MessageSpec

from ..error_code import ErrorCode
from ..errors import DefinitionError
from ..origins import NO_ORIGINS, SourceFileNames
from .compiled_modules import FOLDER, compiled_source, package_source
from .heads import head
from .imports import import_lines
from .kafka_messages import DATA_PATH
from .module import BASES, RuntimePackage, module_source
from .output import GenerateReport, write_files
from .rendering import block, check_installed, rendered

__all__ = ["GenerateReport", "generate"]

#: The types of fields that can be hidden in the bytes of a frame.
_SECRET_TYPES: Final = frozenset({"string", "bytes"})


def generate(
    messages: Sequence[MessageSpec],
    *,
    package: str,
    out: Path,
    definitions: Path,
    runtime: str = "kproto",
    relative: bool = False,
    error_codes: Sequence[ErrorCode] = (),
    error_table: Path | None = None,
    secrets: Collection[tuple[str, str]] = (),
    origins: SourceFileNames = NO_ORIGINS,
) -> GenerateReport:
    """Writes the package called `package` with the classes of `messages` to the folder `out`.

    A message without valid versions gets no class, but is in the definitions file. `definitions` is
    the path of the definitions file, `error_table` the path of the module with the error codes
    (None: no module). Generated code imports its runtime from the package `runtime`. With
    `relative`, which is meant for `kproto.messages`, these imports are relative. `secrets` are
    pairs (message, field) that the repr hides, besides the secrets in Kafka's messages. The head of
    each file names its `origins`.

    Raises DefinitionError if two messages have the same module name, if two requests have the same
    api key, or if a field in `secrets` does not exist. Also raises DefinitionError if a file that
    was not generated would be overwritten. After a DefinitionError, no file is changed. Raises
    MissingPackageError if jinja2 is not installed.
    """
    check_installed()
    _check_secrets(messages, secrets)
    usable = sorted(
        (message for message in messages if message.valid_versions), key=lambda spec: spec.name
    )
    _check_api_keys(usable)
    files: dict[Path, str] = {}
    compiled: dict[Path, str] = {}
    for message in usable:
        path = out / f"{module_name(message.name)}.py"
        if path in files:
            raise DefinitionError(
                f"{message.name} and another message would both be written to {path.name}; "
                "rename one of them"
            )
        hidden = {field for name, field in (*SECRETS, *secrets) if name == message.name}
        made_from = origins.messages.get(message.name, ())
        files[path] = module_source(
            message, usable, RuntimePackage(runtime, relative), hidden, made_from
        )
        if relative and message.name in DATA_PATH:
            compiled[out / FOLDER / path.name] = compiled_source(message, made_from)
    files[out / "__init__.py"] = _package_source(usable, package, origins.folders)
    typed = out / "py.typed"  # type checkers read the annotations of the package (PEP 561)
    if not relative and not (typed.exists() and typed.stat().st_size):
        files[typed] = ""
    lines = [definition_line(message) for message in sorted(messages, key=lambda m: m.name)]
    files[definitions] = "".join(f"{line}\n" for line in lines)
    if error_table is not None:
        files[error_table] = _error_table(error_codes, origins.error_codes)
    if not compiled:
        return write_files(files, out)
    compiled[out / FOLDER / "__init__.py"] = package_source()
    return _sum(write_files(files, out), write_files(compiled, out / FOLDER))


def _sum(first: GenerateReport, second: GenerateReport) -> GenerateReport:
    return GenerateReport(
        first.written + second.written,
        first.removed + second.removed,
        first.unchanged + second.unchanged,
    )


def _check_secrets(messages: Sequence[MessageSpec], secrets: Collection[tuple[str, str]]) -> None:
    """Raises DefinitionError for a field that does not exist, or that is neither text nor bytes.

    A secret is hidden in the bytes of a frame by as many other bytes, which only text and bytes
    allow.
    """
    known = {
        (message.name, field.name): field.type
        for message in messages
        for fields in (message.fields, *(struct.fields for struct in message.structs()))
        for field in fields
    }
    for message, field in secrets:
        found = known.get((message, field))
        if found is None:
            raise DefinitionError(f"there is no field {field} in a message {message} to hide")
        if found not in _SECRET_TYPES:
            raise DefinitionError(
                f"the field {field} of {message} is {found}: only string and bytes can be hidden"
            )


def _check_api_keys(messages: Sequence[MessageSpec]) -> None:
    """Raises DefinitionError if two requests have the same api key.

    Kafka allows it for requests of different modules or releases; a generated package does not.
    """
    first: dict[int, MessageSpec] = {}
    for message in messages:
        if message.type != "request" or message.api_key is None:
            continue
        other = first.setdefault(message.api_key, message)
        if other is message:
            continue
        both = f"{other.name} and {message.name}"
        if other.module == message.module:
            where = f" of the module {message.module}" if message.module else ""
            raise DefinitionError(
                f"{both}{where} have the api key {message.api_key}; if a later release reused the "
                "key, generate a package for each release"
            )
        raise DefinitionError(
            f"{_with_module(other)} and {_with_module(message)} have the api key "
            f"{message.api_key}; generate a package for each"
        )


def _with_module(message: MessageSpec) -> str:
    """Returns the name of a message and its module, if it has one."""
    return f"{message.name} of " + (
        f"the module {message.module}" if message.module else "no module"
    )


def _package_source(messages: Sequence[MessageSpec], package: str, made_from: Sequence[str]) -> str:
    by_key = {
        (spec.type, spec.module, spec.api_key): class_name(spec.name)
        for spec in messages
        if spec.type in BASES
    }
    api_keys = sorted(
        (key, name, by_key[("response", module, key)])
        for (kind, module, key), name in by_key.items()
        if kind == "request" and key is not None and ("response", module, key) in by_key
    )
    names = {spec.name for spec in messages}
    former = {
        entry.name: class_name(spec.name)
        for spec in messages
        for entry in spec.formerly
        if entry.name not in names
    }
    pairs = sorted((module_name(spec.name), class_name(spec.name)) for spec in messages)
    about = f"The messages of {package}; each class is loaded at its first access."
    return rendered(
        "package.py.j2",
        head(about, made_from),
        messages=pairs,
        imports=[
            block(import_lines(f".{module}", [name], margin=4), inside=True)
            for module, name in pairs
        ],
        former=sorted(former.items()),
        api_keys=api_keys,
        exports=["API_KEYS", "FORMER_NAMES", "MODULES", *sorted(name for _, name in pairs)],
    )


def _error_table(codes: Sequence[ErrorCode], made_from: Sequence[str]) -> str:
    about = "Kafka's error codes, as the newest release has them"
    about += ": code, name, whether a retry may help."
    return rendered("error_table.py.j2", head(about, made_from), codes=codes)
