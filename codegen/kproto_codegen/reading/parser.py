"""Parses a definition file to a MessageSpec, and keeps the line of each field and key.

Reports syntax errors: unknown or missing keys, and values of a wrong type. The package `rules`
checks the definition itself.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from kproto.schema.specs import FieldSpec, MessageSpec, StructSpec
from kproto.schema.versions import NO_VERSIONS, Versions

from ..errors import DefinitionError
from .json_text import JsonNode, read_json

__all__ = [
    "MESSAGE_TYPES",
    "Definition",
    "LocatedSpec",
    "decode_text",
    "parse_definition",
    "parse_with_faults",
    "read_definition",
    "read_text",
]

#: The types of messages, as in Kafka's MessageSpecType.
MESSAGE_TYPES: Final = (
    "request",
    "response",
    "header",
    "metadata",
    "data",
    "coordinator-key",
    "coordinator-value",
)

_MESSAGE_KEYS: Final = frozenset(
    {
        "apiKey",
        "type",
        "name",
        "listeners",
        "validVersions",
        "deprecatedVersions",
        "flexibleVersions",
        "latestVersionUnstable",
        "fields",
        "commonStructs",
    }
)
_FIELD_KEYS: Final = frozenset(
    {
        "name",
        "type",
        "versions",
        "fields",
        "mapKey",
        "nullableVersions",
        "default",
        "ignorable",
        "entityType",
        "about",
        "taggedVersions",
        "flexibleVersions",
        "tag",
        "zeroCopy",
    }
)
_STRUCT_KEYS: Final = frozenset({"name", "versions", "deprecatedVersions", "fields"})


@dataclass(frozen=True, slots=True)
class LocatedSpec:
    """A field or a common struct of a definition, with its path and its JSON.

    - `path`: such as `Topics.Partitions.Index`, or `commonStructs.Name` for a common struct.
    - `spec`: the field or the common struct. `node`: its JSON object.
    - `holder`: the JSON object whose `fields` or `commonStructs` contain `node`.
    - `parents`: the fields that contain `spec`, outermost first. In a common struct, the first
      parent is the common struct.
    """

    path: str
    spec: FieldSpec | StructSpec
    node: JsonNode
    holder: JsonNode
    parents: tuple[FieldSpec | StructSpec, ...]

    @property
    def line(self) -> int:
        """Returns the line of the key `name`.

        If the object has no such key, returns the line of the object.
        """
        return _named_line(self.node)

    def key_line(self, key: str) -> int:
        """Returns the line of `key`, or `line` if the key is missing."""
        member = _members(self.node).get(key)
        return self.line if member is None else member.line


@dataclass(frozen=True, slots=True)
class Definition:
    """A message as a file defines it, with the lines of its keys.

    - `repeated`: an error for each key that an object has twice with the same value.
    - `trailing_line`: the line of content after the definition; None if there is none, or if that
      content is in `faults`.
    - `faults`: the syntax errors.
    - `guesses`: specs with various replacements for the values that could not be read. If a rule
      fails for the spec and for all guesses, the failure does not follow from a syntax error.
    - `lacks_structs`: True if the name of a struct, the type of a field, or an array of fields or
      structs could not be read.
    """

    spec: MessageSpec
    file: str
    node: JsonNode
    repeated: tuple[DefinitionError, ...] = ()
    trailing_line: int | None = None
    faults: tuple[DefinitionError, ...] = ()
    guesses: tuple[MessageSpec, ...] = ()
    lacks_structs: bool = False

    def states(self, key: str) -> bool:
        """Returns True if the message object has `key` with a value other than null."""
        member = _members(self.node).get(key)
        return member is not None and member.value is not None

    def key_line(self, key: str) -> int:
        """Returns the line of `key` in the message object.

        If the object lacks `key`, returns the line of the message's name.
        """
        member = _members(self.node).get(key)
        return _named_line(self.node) if member is None else member.line

    def fields(self) -> Iterator[LocatedSpec]:
        """Yields the message's own fields, then common structs' fields; outer fields come first."""
        yield from _locate_fields(self.spec.fields, self.node, (), "")
        for struct in self.structs():
            assert isinstance(struct.spec, StructSpec)
            yield from _locate_fields(
                struct.spec.fields, struct.node, (struct.spec,), struct.path + "."
            )

    def structs(self) -> Iterator[LocatedSpec]:
        """Yields the common structs."""
        for spec, node in zip(
            self.spec.common_structs, _elements(self.node, "commonStructs"), strict=True
        ):
            yield LocatedSpec(f"commonStructs.{spec.name}", spec, node, self.node, ())


def read_definition(path: Path, *, module: str = "", lenient: bool = False) -> Definition:
    """Reads the definition in the file `path`, as `parse_with_faults` does for a text.

    Raises DefinitionError if the file cannot be read or is not JSON.
    """
    return parse_with_faults(read_text(path), file=str(path), module=module, lenient=lenient)


def read_text(path: Path) -> str:
    """Returns the content of a file. Raises DefinitionError if it is unreadable or not UTF-8."""
    try:
        return decode_text(path.read_bytes(), file=str(path))
    except OSError as error:
        raise DefinitionError(f"cannot be read: {error.strerror}", file=str(path)) from error


def decode_text(data: bytes, *, file: str) -> str:
    """Decodes UTF-8 and removes a byte order mark.

    Raises DefinitionError for other bytes; the error names the line of the first invalid byte.
    """
    try:
        return data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise DefinitionError("the text is no UTF-8", file=file, line=line) from error


def parse_definition(
    text: str, *, file: str, module: str = "", lenient: bool = False
) -> Definition:
    """Parses a definition like `parse_with_faults`, but raises DefinitionError for syntax errors.

    The error has all syntax errors, each with file, line and field.
    """
    definition = parse_with_faults(text, file=file, module=module, lenient=lenient)
    if definition.faults:
        raise DefinitionError.of(definition.faults)
    return definition


def parse_with_faults(
    text: str, *, file: str, module: str = "", lenient: bool = False
) -> Definition:
    """Parses a definition, and collects its syntax errors in `Definition.faults`.

    `module` is the Kafka module of the message. With `lenient`, content after the definition is
    not an error; `Definition.trailing_line` is its line. Raises DefinitionError if the text is not
    JSON.
    """
    read = read_json(text, file=file, allow_trailing=True)
    reader = _SpecReader(file)
    spec = reader.message(read.root).with_module(module)
    if read.trailing_line is not None and not lenient:
        reason = "there is content after the end of the definition"
        reader.faults.append(DefinitionError(reason, file=file, line=read.trailing_line))
    guessing = [_SpecReader(file, guess) for guess in _GUESSES] if reader.faults else []
    return Definition(
        spec,
        file,
        read.root,
        read.repeated,
        read.trailing_line if lenient else None,
        tuple(sorted(reader.faults, key=lambda fault: fault.line or 0)),
        tuple(other.message(read.root).with_module(module) for other in guessing),
        reader.lacks_structs,
    )


def _members(node: JsonNode) -> dict[str, JsonNode]:
    return node.value if isinstance(node.value, dict) else {}


def _elements(node: JsonNode, key: str) -> list[JsonNode]:
    member = _members(node).get(key)
    return member.value if member is not None and isinstance(member.value, list) else []


def _named_line(node: JsonNode) -> int:
    name = _members(node).get("name")
    return node.line if name is None else name.line


def _locate_fields(
    fields: tuple[FieldSpec, ...],
    node: JsonNode,
    parents: tuple[FieldSpec | StructSpec, ...],
    prefix: str,
) -> Iterator[LocatedSpec]:
    for spec, child in zip(fields, _elements(node, "fields"), strict=True):
        path = prefix + spec.name
        yield LocatedSpec(path, spec, child, node, parents)
        yield from _locate_fields(spec.fields, child, (*parents, spec), path + ".")


@dataclass(frozen=True, slots=True)
class _FallbackValues:
    """The values to use for keys that are missing or whose values could not be read."""

    name: str = ""
    message_type: str = ""
    type: str = ""
    versions: Versions = NO_VERSIONS
    number: int | None = None
    flag: bool = False


#: Replacement values that differ from each other and from the default `_FallbackValues`, so that no
#: rule fails for all of them.
_GUESSES: Final = (
    _FallbackValues("UnreadRequest", "request", "int32", Versions.parse("0+"), 0, True),
    _FallbackValues("UnreadResponse", "response", "string", Versions.single(0), 1, False),
)


class _SpecReader:
    """Converts the JSON of a definition to specs, and collects the syntax errors.

    After an error, the reader continues with a value of `guess`, so that it finds all errors.
    """

    def __init__(self, file: str, guess: _FallbackValues = _FallbackValues()) -> None:
        self.file = file
        self.guess = guess
        self.faults: list[DefinitionError] = []
        self.lacks_structs = False

    def fault(self, reason: str, line: int, field: str) -> None:
        self.faults.append(DefinitionError(reason, file=self.file, line=line, field=field or None))

    def message(self, node: JsonNode) -> MessageSpec:
        members = self.object(node, "", "a message definition", _MESSAGE_KEYS)
        self.require(members, ("name", "type", "validVersions"), node, "", "message")
        kind = self.text(members, "type", "") or self.guess.message_type
        if kind and kind not in MESSAGE_TYPES:
            self.fault(
                f"{kind!r} is no message type: use one of {', '.join(MESSAGE_TYPES)}",
                members["type"].line,
                "",
            )
            kind = self.guess.message_type
        return MessageSpec(
            name=self.text(members, "name", "") or self.guess.name,
            type=kind,
            valid_versions=self.versions(members, "validVersions", "", needed=True),
            flexible_versions=self.versions(members, "flexibleVersions", ""),
            fields=tuple(
                self.field(child, "") for child in self.array(members, "fields", "", "fields")
            ),
            common_structs=tuple(
                self.struct(child) for child in self.array(members, "commonStructs", "", "structs")
            ),
            api_key=self.integer(members, "apiKey", ""),
            listeners=self.listeners(members),
            deprecated_versions=self.versions(members, "deprecatedVersions", ""),
            latest_version_unstable=self.flag(members, "latestVersionUnstable", ""),
        )

    def struct(self, node: JsonNode) -> StructSpec:
        members = self.object(node, "commonStructs", "a struct", _STRUCT_KEYS)
        self.require(members, ("name", "versions"), node, "commonStructs", "struct")
        name = self.text(members, "name", "commonStructs")
        self.lacks_structs = self.lacks_structs or not name
        path = f"commonStructs.{name}"
        self.versions(members, "deprecatedVersions", path)  # Kafka checks the key and ignores it
        return StructSpec(
            name=name or self.guess.name,
            versions=self.versions(members, "versions", path, needed=True),
            fields=tuple(
                self.field(child, path + ".")
                for child in self.array(members, "fields", path, "fields")
            ),
        )

    def field(self, node: JsonNode, prefix: str) -> FieldSpec:
        holder = prefix.rstrip(".")
        members = self.object(node, holder, "a field", _FIELD_KEYS)
        self.require(members, ("name", "type"), node, holder, "field")
        name = self.text(members, "name", holder)
        path = prefix + name if name else holder
        fault_count = len(self.faults)
        tagged = self.versions(members, "taggedVersions", path)
        no_versions = "versions" not in members and tagged.empty and len(self.faults) == fault_count
        if no_versions and isinstance(node.value, dict):
            self.fault("has neither versions nor taggedVersions", node.line, path)
        kind = self.text(members, "type", path)
        self.lacks_structs = self.lacks_structs or not kind
        return FieldSpec(
            name=name or self.guess.name,
            type=kind or self.guess.type,
            versions=(
                self.versions(members, "versions", path, needed=True)
                if no_versions or "versions" in members
                else tagged
            ),
            fields=tuple(
                self.field(child, path + ".")
                for child in self.array(members, "fields", path, "fields")
            ),
            nullable_versions=self.versions(members, "nullableVersions", path),
            default=self.default(members, path),
            ignorable=self.flag(members, "ignorable", path),
            map_key=self.flag(members, "mapKey", path),
            tag=self.integer(members, "tag", path),
            tagged_versions=tagged,
            flexible_versions=(
                self.versions(members, "flexibleVersions", path)
                if "flexibleVersions" in members
                else None
            ),
            entity_type=self.text(members, "entityType", path) or None,
            zero_copy=self.flag(members, "zeroCopy", path),
            about=self.text(members, "about", path),
        )

    def object(
        self, node: JsonNode, path: str, what: str, keys: frozenset[str]
    ) -> Mapping[str, JsonNode]:
        """Returns the members of an object, without null members, which Kafka treats as missing.

        Adds a fault for each key that is not in `keys`. If `node` is not an object, adds a single
        fault and returns no members.
        """
        if not isinstance(node.value, dict):
            self.fault(f"{what} must be an object in braces, not {node.kind}", node.line, path)
            return {}
        for key, member in node.value.items():
            if key not in keys:
                name = node.value.get("name")
                here = path if name is None or keys is _MESSAGE_KEYS else f"{path}.{name.text}"
                self.fault(
                    f"{key!r} is no key of {what}; the keys are {', '.join(sorted(keys))}",
                    member.line,
                    here.lstrip("."),
                )
        return {key: member for key, member in node.value.items() if member.value is not None}

    def require(
        self,
        members: Mapping[str, JsonNode],
        keys: tuple[str, ...],
        node: JsonNode,
        path: str,
        what: str,
    ) -> None:
        if isinstance(node.value, dict):
            for key in keys:
                if key not in members:
                    self.fault(f"a {what} has no {key!r}", node.line, path)

    def text(self, members: Mapping[str, JsonNode], key: str, path: str) -> str:
        node = members.get(key)
        if node is None:
            return ""
        if not isinstance(node.value, str):
            self.fault(f"{key} should be text, not {node.kind}", node.line, path)
            return ""
        if not node.value and key != "about":
            self.fault(f"{key} is empty", node.line, path)
        return node.value

    def flag(self, members: Mapping[str, JsonNode], key: str, path: str) -> bool:
        node = members.get(key)
        if node is None:
            return False
        if node.text not in {"true", "false"}:
            self.fault(f"{key} should be true or false, not {node.kind}", node.line, path)
            return self.guess.flag
        return node.text == "true"

    def integer(self, members: Mapping[str, JsonNode], key: str, path: str) -> int | None:
        node = members.get(key)
        if node is None:
            return None
        digits = node.text.removeprefix("-")
        if not (digits.isascii() and digits.isdigit() and len(digits) <= 10):
            self.fault(f"{key} should be a whole number, not {node.kind}", node.line, path)
            return self.guess.number
        return int(node.text)

    def versions(
        self, members: Mapping[str, JsonNode], key: str, path: str, *, needed: bool = False
    ) -> Versions:
        node = members.get(key)
        if node is None:
            return self.guess.versions if needed else NO_VERSIONS
        if not isinstance(node.value, str | int) or isinstance(node.value, bool):
            self.fault(f"{key} should be a version range as text, not {node.kind}", node.line, path)
            return self.guess.versions
        try:
            return Versions.parse(node.text)
        except ValueError as error:
            self.fault(f"{key}: {error}", node.line, path)
            return self.guess.versions

    def default(self, members: Mapping[str, JsonNode], path: str) -> str | None:
        """Returns the default as text; None if it is missing or JSON null, as in Kafka."""
        node = members.get("default")
        if node is None:
            return None
        if isinstance(node.value, dict | list):
            self.fault(f"default should be a scalar, not {node.kind}", node.line, path)
            return None
        is_bool = "type" in members and members["type"].text == "bool"
        return node.text.lower() if is_bool else node.text

    def listeners(self, members: Mapping[str, JsonNode]) -> tuple[str, ...]:
        nodes = self.array(members, "listeners", "", "names")
        for node in nodes:
            if not isinstance(node.value, str):
                self.fault(f"a listener should be text, not {node.kind}", node.line, "")
        return tuple(node.text for node in nodes if isinstance(node.value, str))

    def array(
        self, members: Mapping[str, JsonNode], key: str, path: str, what: str
    ) -> list[JsonNode]:
        node = members.get(key)
        if node is None:
            return []
        if not isinstance(node.value, list):
            self.fault(f"{key} should be an array of {what}, not {node.kind}", node.line, path)
            self.lacks_structs = self.lacks_structs or what != "names"
            return []
        return node.value
