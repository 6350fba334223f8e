"""Specs to source: one module a message, a lazy package, and the definitions file.

What a definition says reaches the templates only as identifiers that were checked, as literals
that were quoted, and as docstrings that were defused. Nothing is written until all is rendered;
`output` owns the files.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path
from typing import Final

import jinja2

from kproto.schema.definitions import definition_line
from kproto.schema.naming import class_name, module_name
from kproto.schema.specs import MessageSpec
from kproto.schema.versions import Versions

from .emit_read import read_functions, read_method, read_tags_function
from .emit_write import default_functions, write_functions, write_method, write_tags_function
from .error_codes import ErrorCode
from .errors import DefinitionError
from .glossary import Glossary, load_glossary
from .imports import Imports
from .output import MARK, GenerateReport, write_files
from .plan import FieldPlan, StructPlan, plan_structs
from .source import WIDTH, docstring, fitted, indent

__all__ = ["GenerateReport", "generate"]

#: Messages on the data path: every layout of a struct gets its own straight-line code.
HOT: Final = frozenset(
    {
        "ApiVersionsResponse",
        "FetchRequest",
        "FetchResponse",
        "HeartbeatRequest",
        "HeartbeatResponse",
        "JoinGroupResponse",
        "ListOffsetsRequest",
        "ListOffsetsResponse",
        "MetadataResponse",
        "OffsetCommitRequest",
        "OffsetCommitResponse",
        "OffsetFetchResponse",
        "ProduceRequest",
        "ProduceResponse",
    }
)

#: Fields that carry a secret, as (message, field); they are never printed.
SECRETS: Final = frozenset(
    {
        ("AlterConfigsRequest", "Value"),
        ("AlterUserScramCredentialsRequest", "Salt"),
        ("AlterUserScramCredentialsRequest", "SaltedPassword"),
        ("ConfigRecord", "Value"),
        ("CreateDelegationTokenResponse", "Hmac"),
        ("DescribeDelegationTokenResponse", "Hmac"),
        ("ExpireDelegationTokenRequest", "Hmac"),
        ("IncrementalAlterConfigsRequest", "Value"),
        ("RenewDelegationTokenRequest", "Hmac"),
        ("SaslAuthenticateRequest", "AuthBytes"),
        ("SaslAuthenticateResponse", "AuthBytes"),
        ("UserScramCredentialRecord", "Salt"),
        ("UserScramCredentialRecord", "ServerKey"),
        ("UserScramCredentialRecord", "StoredKey"),
    }
)

_BASES: Final = {"request": "Request", "response": "Response"}


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
) -> GenerateReport:
    """Write the package called `package` of `messages` into the folder `out`.

    `definitions` is the file that gets the definitions, `error_table` the module that gets the
    error codes. Imports of the runtime are relative with
    `relative` (for `kproto.messages` itself), else of the package called `runtime`. `secrets` are
    further fields, as (message, field), that are never printed. Raises DefinitionError when two
    messages would make one module, when two requests have one api key, when a secret names no
    field, and when a file stands in the way that the generator did not make; then nothing is
    written.
    """
    glossary = load_glossary()
    _check_secrets(messages, secrets)
    usable = sorted(
        (message for message in messages if message.valid_versions), key=lambda spec: spec.name
    )
    _check_api_keys(usable)
    files: dict[Path, str] = {}
    for message in usable:
        path = out / f"{module_name(message.name)}.py"
        if path in files:
            raise DefinitionError(
                f"{message.name} and another message would both be written to {path.name}; "
                "rename one of them"
            )
        hidden = {field for name, field in (*SECRETS, *secrets) if name == message.name}
        writer = _ModuleWriter(message, usable, glossary, runtime, hidden, relative=relative)
        files[path] = writer.source()
    files[out / "__init__.py"] = _package_source(usable, package)
    lines = [definition_line(message) for message in sorted(messages, key=lambda m: m.name)]
    files[definitions] = "".join(f"{line}\n" for line in lines)
    if error_table is not None:
        template = _environment().get_template("error_table.py.j2")
        files[error_table] = _finished(template.render(mark=MARK, codes=error_codes))
    return write_files(files, out)


def _check_secrets(messages: Sequence[MessageSpec], secrets: Collection[tuple[str, str]]) -> None:
    known = {
        (message.name, field.name)
        for message in messages
        for fields in (message.fields, *(struct.fields for struct in message.structs()))
        for field in fields
    }
    for message, field in secrets:
        if (message, field) not in known:
            raise DefinitionError(f"there is no field {field} in a message {message} to hide")


def _check_api_keys(messages: Sequence[MessageSpec]) -> None:
    """A package tells its requests apart by their api keys; modules of Kafka need not."""
    first: dict[int, MessageSpec] = {}
    for message in messages:
        if message.type != "request" or message.api_key is None:
            continue
        other = first.setdefault(message.api_key, message)
        if other is message:
            continue
        both = f"{other.name} and {message.name}"
        if other.module == message.module:
            raise DefinitionError(
                f"{both} of the module {message.module} have the api key {message.api_key}; "
                "if releases gave it to one after the other, make a package of each release"
            )
        raise DefinitionError(
            f"{other.name} of the module {other.module} and {message.name} of the module "
            f"{message.module} have the api key {message.api_key}; make a package of each"
        )


def _environment() -> jinja2.Environment:
    return jinja2.Environment(  # noqa: S701 - renders Python, where HTML escapes would be wrong
        loader=jinja2.PackageLoader("kproto_codegen"),
        undefined=jinja2.StrictUndefined,
        keep_trailing_newline=True,
        trim_blocks=False,
    )


class _ModuleWriter:
    """Renders the module of one message."""

    def __init__(
        self,
        message: MessageSpec,
        messages: Sequence[MessageSpec],
        glossary: Glossary,
        runtime: str,
        secrets: Collection[str],
        *,
        relative: bool,
    ) -> None:
        self.message = message
        self.glossary = glossary
        self.secrets = secrets
        self.imports = Imports()
        self.straight = message.name in HOT and relative
        self.plans = plan_structs(message, straight=self.straight)
        self.root = ".." if relative else f"{runtime}."
        self.base_module = ".base" if relative else f"{runtime}.messages.base"
        self.response = self._response_of(messages)

    def _response_of(self, messages: Sequence[MessageSpec]) -> str | None:
        """The response to the message, when it is a request."""
        if self.message.type != "request":
            return None
        for other in messages:
            if (other.type, other.api_key, other.module) == (
                "response",
                self.message.api_key,
                self.message.module,
            ):
                return other.name
        return None

    def source(self) -> str:
        """The whole module."""
        *inner, own = self.plans
        functions = []
        for plan in inner:
            if not plan.versions:
                continue  # nothing ever reads or writes it
            functions.append(read_functions(plan, self.imports, straight=self.straight))
            if plan.tagged:
                functions.append(read_tags_function(plan, self.imports))
            functions.append(write_functions(plan, self.imports, straight=self.straight))
            if plan.tagged:
                functions.append(write_tags_function(plan, self.imports))
        if own.tagged:
            functions.append(read_tags_function(own, self.imports))
            functions.append(write_tags_function(own, self.imports))
        lines = [line for function in functions for line in function]
        write = write_method(own, self.imports, straight=self.straight)
        functions += default_functions(inner, [*lines, *write], self.imports)
        structs = [self._struct(plan) for plan in inner]
        message = self._struct(own) | {
            "base": self._base(),
            "constants": self._constants(),
            "read": _text(indent(read_method(own, self.imports, straight=self.straight))),
            "write": _text(indent(write)),
        }
        exports = [name for plan in self.plans for name in _exports(plan)]
        return _finished(
            _environment()
            .get_template("message.py.j2")
            .render(
                head=self._head(),
                imports=self._imports(),
                exports=sorted(exports),
                shapes=self.imports.shapes(),
                structs=structs,
                message=message,
                functions=[_text(lines) for lines in functions],
            )
        )

    def _head(self) -> str:
        name = self.message.name
        key = "" if self.message.api_key is None else f", api key {self.message.api_key}"
        first = f"{name} ({self.message.type}{key})."
        return "\n".join([f'"""{first}"""', "", MARK])

    def _base(self) -> str:
        base = _BASES.get(self.message.type, "Message")
        if base == "Request":
            quoted = f'"{class_name(self.response)}"' if self.response else "Response"
            return f"Request[{quoted}]"
        return base

    def _constants(self) -> list[str]:
        spec = self.message
        lines = []
        if spec.api_key is not None:
            lines.append(f"API_KEY = {spec.api_key}")
        lines.append(f"VALID_VERSIONS = {_range(spec.valid_versions)}")
        flexible = spec.flexible_versions.intersect(spec.valid_versions)
        lines.append(f"FLEXIBLE_VERSIONS = {_range(flexible)}")
        lines.append(f"LATEST_STABLE = {spec.latest_stable}")
        if spec.type == "request":
            lines.append(f"LISTENERS = {_tuple(spec.listeners)}")
        return lines

    def _struct(self, plan: StructPlan) -> dict[str, object]:
        for field in plan.fields:
            default = field.default + field.fresh_default()
            if "ZERO_UUID" in default:
                self.imports.wire("uuid", "ZERO_UUID")
            if "Uuid" in field.annotation + default.replace("ZERO_UUID", ""):
                self.imports.wire("uuid", "Uuid")
        secrets = [field.attribute for field in plan.fields if field.spec.name in self.secrets]
        return {
            "class_name": plan.class_name,
            "docstring": _text(indent(self._docstring(plan))),
            "slots": _slots([field.slot for field in plan.fields]),
            "lazy": [_text(indent(_lazy(field))) for field in plan.fields if field.lazy],
            "secrets": "{" + ", ".join(f'"{name}"' for name in secrets) + "}" if secrets else "",
            "init": _text(indent(_init(plan))),
            "keyed": bool(plan.keys),
            "key_names": _tuple([field.attribute for field in plan.keys]),
            "finders": _text(indent(_finders(plan))) if plan.keys else "",
        }

    def _docstring(self, plan: StructPlan) -> list[str]:
        name = self.message.name
        if plan.is_message:
            about = self.glossary.message(name)
            first = about or f"The {self.message.type} called {name}."
            versions = f"{_versions(plan.versions)}, {_flexible(plan)}.".capitalize()
        else:
            first = self.glossary.struct(name, plan.name) or f"{plan.name} of {name}."
            versions = f"{_versions(plan.versions)}.".capitalize()
        paragraphs: list[str | list[str]] = [first, versions]
        if plan.fields:
            entries = [f"{field.attribute}: {self._about(plan, field)}" for field in plan.fields]
            paragraphs.append(entries)
        return docstring(paragraphs, margin=4)

    def _about(self, plan: StructPlan, field: FieldPlan) -> str:
        spec = field.spec
        text = spec.about or self.glossary.field(self.message.name, plan.name, spec.name) or ""
        notes = []
        used = plan.versions.intersect(spec.versions)
        if not used:
            notes.append("in no version")
        elif not used.covers(plan.versions):
            notes.append(_versions(used))
        nullable = used.intersect(spec.nullable_versions)
        if nullable and field.nullable:
            same = nullable.covers(used)
            notes.append("nullable" if same else f"nullable in {_versions(nullable)}")
        tagged = plan.tagged_versions(field)
        if tagged:
            notes.append(f"tag {spec.tag}")
        if spec.ignorable and not used.covers(plan.versions):
            notes.append("ignorable")
        return f"{text} ({', '.join(notes)})".strip() if notes else text

    def _imports(self) -> str:
        annotated = [field.parameter for plan in self.plans for field in plan.fields]
        abstract = ["Collection"] if any(plan.versions for plan in self.plans[:-1]) else []
        if any("Iterable" in text for text in annotated):
            abstract.append("Iterable")
        base = ["Struct"] if len(self.plans) > 1 else []
        base.append(_BASES.get(self.message.type, "Message"))
        fields = [field for plan in self.plans for field in plan.fields]
        if any(field.null_is_not_default or field.lazy for field in fields):
            base.append("DEFAULT")
        if any(plan.keys for plan in self.plans[:-1]):
            base.append("KeyedList")
        if any(_is_strings(field) for plan in self.plans for field in plan.fields):
            base.append("string_list")
        if self.message.type == "request" and self.response is None:
            base.append("Response")
        lines = []
        if self.imports.shapes():
            lines.append("import struct")
        if abstract:
            lines.append(f"from collections.abc import {', '.join(abstract)}")
        if self.imports.index:
            lines.append("from operator import index")
        lines.append(f"from typing import {'TYPE_CHECKING, ' if self.response else ''}Self")
        lines.append("")
        ours = [
            (f"{self.root}wire.{module}", names) for module, names in self.imports.wire_imports()
        ]
        own = (self.base_module, sorted(base))
        ours = [*ours, own] if self.root == ".." else [own, *ours]
        for module, names in ours:
            lines += _from_import(module, names)
        if self.response:
            module = module_name(self.response)
            lines += ["", "if TYPE_CHECKING:"]
            lines += indent(_from_import(f".{module}", [class_name(self.response)], margin=4))
        return "\n".join(lines)


def _package_source(messages: Sequence[MessageSpec], package: str) -> str:
    by_key = {
        (spec.type, spec.module, spec.api_key): class_name(spec.name)
        for spec in messages
        if spec.type in _BASES
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
    table = "".join(f'    "{old}": "{new}",\n' for old, new in sorted(former.items()))
    head = f'"""The messages of {package}: each class is loaded when it is first asked for."""'
    pairs = sorted((module_name(spec.name), class_name(spec.name)) for spec in messages)
    return _finished(
        _environment()
        .get_template("package.py.j2")
        .render(
            head=f"{head}\n\n{MARK}",
            messages=pairs,
            imports=[_text(indent(_from_import(f".{m}", [n], margin=4))) for m, n in pairs],
            former="{\n" + table + "}" if former else "{}",
            aliases=[f"{old} = {new}" for old, new in sorted(former.items())],
            api_keys=[_text(indent(_api_key(*entry))) for entry in api_keys],
            exports=["API_KEYS", "FORMER_NAMES", "MODULES", *sorted(name for _, name in pairs)],
        )
    )


def _init(plan: StructPlan) -> list[str]:
    """`__init__` with a keyword for each field."""
    if not plan.fields:
        return ["def __init__(self) -> None:", "    self._unknown_tags = None"]
    parameters = [
        f"{field.attribute}: {field.parameter} = {field.default}" for field in plan.fields
    ]
    body = [line for field in plan.fields for line in _assignment(field)]
    body.append("self._unknown_tags = None")
    # An argument a line, always: fields come and go with releases, and so a diff shows just those.
    head = ["def __init__(", "    self,", "    *,"]
    return [*head, *(f"    {text}," for text in parameters), ") -> None:", *indent(body)]


def _assignment(field: FieldPlan) -> list[str]:
    name, place = field.attribute, f"self.{field.slot}"
    if field.lazy:
        return [f"{place}: {field.element} = DEFAULT if {name} is None else {name}"]
    if field.null_is_not_default:
        made = f"{class_name(field.spec.type)}()"
        return [f"{place} = {made} if {name} is DEFAULT else {name}"]
    if field.spec.is_struct and not field.nullable:
        made = f"{class_name(field.spec.type)}()"
        return [f"{place} = {made} if {name} is None else {name}"]
    if not field.spec.is_array:
        return [f"{place} = {name}"]
    made = f"list({name})"
    if field.collection:
        made = f"{field.element}Collection({name})"
    elif _is_strings(field):
        made = f"string_list({name})"
    if not field.nullable:
        return [f"{place} = {made}"]
    return [f"{place} = None if {name} is None else {made}"]


def _is_strings(field: FieldPlan) -> bool:
    return field.spec.is_array and field.spec.element_type == "string"


def _lazy(field: FieldPlan) -> list[str]:
    """The property in front of the slot of a struct that is made when it is first asked for."""
    name, place = field.attribute, f"self.{field.slot}"
    return [
        "@property",
        f"def {name}(self) -> {field.element}:",
        '    """Made at its defaults when it is first asked for: few messages carry it."""',
        f"    if {place} is DEFAULT:",
        f"        {place} = {field.element}()",
        f"    return {place}",
        "",
        f"@{name}.setter",
        f"def {name}(self, value: {field.element}) -> None:",
        f"    {place} = value",
    ]


def _finders(plan: StructPlan) -> list[str]:
    """`find` and `find_all`, with the names and types of the key."""
    several = len(plan.keys) > 1
    parameters = ["self", "*"]
    for key in plan.keys:
        default = f" = {key.default}" if several else ""
        parameters.append(f"{key.attribute}: {key.annotation}{default}")
    names = ", ".join(key.attribute for key in plan.keys)
    name = plan.class_name
    return [
        *_method("find", parameters, f"{name} | None"),
        '    """An element with that key, or None; the first, if none was moved or changed."""',
        f"    return self._find({names})",
        "",
        *_method("find_all", parameters, f"list[{name}]"),
        '    """Every element with that key, in order."""',
        f"    return self._find_all({names})",
    ]


def _method(name: str, parameters: Sequence[str], result: str) -> list[str]:
    return [f"def {name}({', '.join(parameters)}) -> {result}:"]


def _exports(plan: StructPlan) -> list[str]:
    names = [plan.class_name]
    if plan.keys and not plan.is_message:
        names.append(f"{plan.class_name}Collection")
    return names


def _api_key(key: int, request: str, response: str) -> list[str]:
    return [f'{key}: ("{request}", "{response}"),']


def _from_import(module: str, names: Sequence[str], *, margin: int = 0) -> list[str]:
    line = f"from {module} import {', '.join(names)}"
    if margin + len(line) <= WIDTH:
        return [line]
    return [f"from {module} import (", *(f"    {name}," for name in names), ")"]


def _slots(names: Sequence[str]) -> str:
    line = _tuple(names)
    if len(line) + 16 <= WIDTH:
        return line
    return "(\n" + "".join(f'        "{name}",\n' for name in names) + "    )"


def _tuple(names: Sequence[str]) -> str:
    if len(names) == 1:
        return f'("{names[0]}",)'
    return "(" + ", ".join(f'"{name}"' for name in names) + ")"


def _range(versions: Versions) -> str:
    if versions.empty:
        return "range(0)"
    return f"range({versions.lowest}, {versions.highest + 1})"


def _versions(versions: Versions) -> str:
    if versions.empty:
        return "in no version"
    if versions.lowest == versions.highest:
        return f"version {versions.lowest}"
    return f"versions {versions.lowest} to {versions.highest}"


def _flexible(plan: StructPlan) -> str:
    """Which of a message's versions are flexible."""
    flexible = plan.versions.intersect(plan.flexible)
    if flexible == plan.versions:
        return "flexible" if len(plan.versions) == 1 else "all flexible"
    if not flexible:
        return "not flexible" if len(plan.versions) == 1 else "none flexible"
    return f"flexible in {_versions(flexible)}"


def _text(lines: Sequence[str]) -> str:
    return "\n".join(lines)


def _finished(source: str) -> str:
    """The source with long lines broken and one line feed at its end."""
    return "\n".join(fitted(source.rstrip("\n").split("\n"))) + "\n"
