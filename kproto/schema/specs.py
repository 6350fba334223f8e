"""Kafka's message definitions as immutable data classes.

The classes have the names of Kafka's message generator (FieldSpec, StructSpec, MessageSpec).
`from_json` and `to_json` use the JSON of Kafka's definitions. They do not check a definition, which
`kproto_codegen.rules` must have accepted.

The union of several releases (see `kproto_codegen.union`) adds three keys to Kafka's JSON. For a
message, `module` is the Kafka module that defines it, and `formerly` has the names and numbers that
older releases used for some of its versions. For a field, `aliases` has its names in older
releases.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from .versions import NO_VERSIONS, Versions

__all__ = [
    "PRIMITIVE_TYPES",
    "DefaultValue",
    "FieldSpec",
    "FormerName",
    "MessageSpec",
    "StructSpec",
]

DefaultValue: TypeAlias = bool | int | float | str | bytes | None

#: The types that are neither a struct nor an array.
PRIMITIVE_TYPES = frozenset(
    {
        "bool",
        "int8",
        "int16",
        "uint16",
        "int32",
        "uint32",
        "int64",
        "float64",
        "string",
        "uuid",
        "bytes",
        "records",
    }
)

ZERO_UUID_BYTES = bytes(16)


@dataclass(frozen=True, slots=True)
class FieldSpec:
    """A field; `type` is in Kafka's notation: `int32`, `[]string`, `[]TopicData`, `SnapshotId`."""

    name: str
    type: str
    versions: Versions
    fields: tuple[FieldSpec, ...] = ()
    nullable_versions: Versions = NO_VERSIONS
    default: str | None = None
    ignorable: bool = False
    map_key: bool = False
    tag: int | None = None
    tagged_versions: Versions = NO_VERSIONS
    flexible_versions: Versions | None = None
    entity_type: str | None = None
    zero_copy: bool = False
    about: str = ""
    aliases: tuple[str, ...] = ()

    @property
    def is_array(self) -> bool:
        """Returns True if the type is `[]T`."""
        return self.type.startswith("[]")

    @property
    def element_type(self) -> str:
        """Returns `T` for an array `[]T`, else the type itself."""
        return self.type[2:] if self.is_array else self.type

    @property
    def is_struct(self) -> bool:
        """Returns True if the type is a struct (not an array of structs)."""
        return self.type not in PRIMITIVE_TYPES and not self.is_array

    @property
    def is_struct_array(self) -> bool:
        """Returns True if the type is an array of structs."""
        return self.is_array and self.element_type not in PRIMITIVE_TYPES

    def default_value(self) -> DefaultValue:
        """Returns the default as a Python value: None for null, bytes for bytes and uuids.

        Returns b"" for each array or struct whose default is not null. The actual default of such a
        field is an empty list or a struct of defaults.
        """
        return _default_value(self)

    def to_json(self) -> dict[str, Any]:
        """Returns this field as the JSON of a definition, without keys that have defaults."""
        out: dict[str, Any] = {"name": self.name, "type": self.type, "versions": str(self.versions)}
        if self.map_key:
            out["mapKey"] = True
        if self.nullable_versions:
            out["nullableVersions"] = str(self.nullable_versions)
        if self.tag is not None:
            out["tag"] = self.tag
            out["taggedVersions"] = str(self.tagged_versions)
        if self.flexible_versions is not None:
            out["flexibleVersions"] = str(self.flexible_versions)
        if self.default is not None:
            out["default"] = self.default
        if self.ignorable:
            out["ignorable"] = True
        if self.entity_type is not None:
            out["entityType"] = self.entity_type
        if self.zero_copy:
            out["zeroCopy"] = True
        if self.about:
            out["about"] = self.about
        if self.aliases:
            out["aliases"] = list(self.aliases)
        if self.fields:
            out["fields"] = [field.to_json() for field in self.fields]
        return out

    @classmethod
    def from_json(cls, node: Mapping[str, Any]) -> FieldSpec:
        """Returns the field that `node` describes; numbers and booleans in it may be strings."""
        tagged = Versions.parse(node.get("taggedVersions", "none"))
        flexible = node.get("flexibleVersions")
        tag = node.get("tag")
        return cls(
            name=node["name"],
            type=node["type"],
            versions=Versions.parse(node["versions"]) if "versions" in node else tagged,
            fields=tuple(cls.from_json(child) for child in node.get("fields", ())),
            nullable_versions=Versions.parse(node.get("nullableVersions", "none")),
            default=_default_text(node.get("default")),
            ignorable=_flag(node.get("ignorable", False)),
            map_key=_flag(node.get("mapKey", False)),
            tag=None if tag is None else int(tag),
            tagged_versions=tagged,
            flexible_versions=None if flexible is None else Versions.parse(flexible),
            entity_type=node.get("entityType"),
            zero_copy=_flag(node.get("zeroCopy", False)),
            about=node.get("about", ""),
            aliases=tuple(node.get("aliases", ())),
        )


@dataclass(frozen=True, slots=True)
class StructSpec:
    """A struct: a common struct of the message, or the struct that a field defines."""

    name: str
    versions: Versions
    fields: tuple[FieldSpec, ...]

    def to_json(self) -> dict[str, Any]:
        """Returns this common struct as the JSON of a definition."""
        return {
            "name": self.name,
            "versions": str(self.versions),
            "fields": [field.to_json() for field in self.fields],
        }

    @classmethod
    def from_json(cls, node: Mapping[str, Any]) -> StructSpec:
        """Returns the common struct in the JSON of a definition."""
        return cls(
            name=node["name"],
            versions=Versions.parse(node["versions"]),
            fields=tuple(FieldSpec.from_json(child) for child in node.get("fields", ())),
        )


@dataclass(frozen=True, slots=True)
class FormerName:
    """The name, type and version numbers that older releases used for some versions of a message.

    `versions` are version numbers of the former message. A version `v` in this range is now version
    `v - versions.lowest + becomes` of the present message, whose spec has this `FormerName`.
    """

    name: str
    type: str
    versions: Versions
    becomes: int

    def to_json(self) -> dict[str, Any]:
        """Returns this entry as JSON data."""
        return {
            "name": self.name,
            "type": self.type,
            "versions": str(self.versions),
            "becomes": self.becomes,
        }

    @classmethod
    def from_json(cls, node: Mapping[str, Any]) -> FormerName:
        """Returns the entry in the JSON data of `to_json`."""
        return cls(node["name"], node["type"], Versions.parse(node["versions"]), node["becomes"])


@dataclass(frozen=True, slots=True)
class MessageSpec:
    """A message definition.

    `type` is `request`, `response`, `header`, `metadata`, `data`, `coordinator-key` or
    `coordinator-value`.
    """

    name: str
    type: str
    valid_versions: Versions
    flexible_versions: Versions = NO_VERSIONS
    fields: tuple[FieldSpec, ...] = ()
    common_structs: tuple[StructSpec, ...] = ()
    api_key: int | None = None
    listeners: tuple[str, ...] = ()
    deprecated_versions: Versions = NO_VERSIONS
    latest_version_unstable: bool = False
    module: str = ""
    formerly: tuple[FormerName, ...] = ()

    @property
    def latest_stable(self) -> int:
        """Returns the highest version that is not marked as unstable; -1 if there is none."""
        return self.valid_versions.highest - (1 if self.latest_version_unstable else 0)

    def structs(self) -> Iterator[StructSpec]:
        """Yields the structs inside the message; a nested struct comes before the outer struct."""
        seen: set[str] = set()
        common = {struct.name: struct for struct in self.common_structs}

        def walk(fields: tuple[FieldSpec, ...]) -> Iterator[StructSpec]:
            for field in fields:
                name = field.element_type
                if name in PRIMITIVE_TYPES or name in seen:
                    continue
                seen.add(name)
                struct = common.get(name) or StructSpec(name, field.versions, field.fields)
                yield from walk(struct.fields)
                yield struct

        yield from walk(self.fields)

    def struct(self, name: str) -> StructSpec:
        """Returns the struct called `name`. Raises KeyError if the message lacks it."""
        for struct in self.structs():
            if struct.name == name:
                return struct
        raise KeyError(f"{self.name} has no struct {name}")

    def with_module(self, module: str) -> MessageSpec:
        """Returns a copy of this message with `module` as its Kafka module."""
        return replace(self, module=module)

    def to_json(self) -> dict[str, Any]:
        """Returns this message as the JSON of a definition, without keys that have defaults."""
        out: dict[str, Any] = {}
        if self.api_key is not None:
            out["apiKey"] = self.api_key
        out["type"] = self.type
        out["name"] = self.name
        if self.module:
            out["module"] = self.module
        if self.listeners:
            out["listeners"] = list(self.listeners)
        out["validVersions"] = str(self.valid_versions)
        if self.deprecated_versions:
            out["deprecatedVersions"] = str(self.deprecated_versions)
        out["flexibleVersions"] = str(self.flexible_versions)
        if self.latest_version_unstable:
            out["latestVersionUnstable"] = True
        if self.formerly:
            out["formerly"] = [entry.to_json() for entry in self.formerly]
        out["fields"] = [field.to_json() for field in self.fields]
        if self.common_structs:
            out["commonStructs"] = [struct.to_json() for struct in self.common_structs]
        return out

    @classmethod
    def from_json(cls, node: Mapping[str, Any], module: str = "") -> MessageSpec:
        """Returns the message in the JSON of a definition; `module` is the default Kafka module."""
        api_key = node.get("apiKey")
        return cls(
            name=node["name"],
            type=node["type"],
            valid_versions=Versions.parse(node["validVersions"]),
            flexible_versions=Versions.parse(node.get("flexibleVersions", "none")),
            fields=tuple(FieldSpec.from_json(child) for child in node.get("fields", ())),
            common_structs=tuple(
                StructSpec.from_json(child) for child in node.get("commonStructs", ())
            ),
            api_key=None if api_key is None else int(api_key),
            listeners=tuple(node.get("listeners", ())),
            deprecated_versions=Versions.parse(node.get("deprecatedVersions", "none")),
            latest_version_unstable=_flag(node.get("latestVersionUnstable", False)),
            module=node.get("module", module),
            formerly=tuple(FormerName.from_json(entry) for entry in node.get("formerly", ())),
        )


def _flag(value: object) -> bool:
    """Returns a boolean of a definition, which may be a JSON boolean or a string, as in Jackson."""
    return value is True or value == "true"


def _default_text(value: object) -> str | None:
    """Returns a default as Kafka's generator reads it: as text, None for JSON null (no default)."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)


def _default_value(field: FieldSpec) -> DefaultValue:
    text = field.default
    if text == "null" and (field.type not in PRIMITIVE_TYPES or field.nullable_versions):
        return None
    match field.type:
        case "string":
            return text or ""
        case "bool":
            return text == "true"
        case "float64":
            return float(text or 0)
        case "uuid":
            return base64.urlsafe_b64decode(text + "==") if text else ZERO_UUID_BYTES
        case "records":
            return None if field.nullable_versions else b""
        case "int8" | "int16" | "uint16" | "int32" | "uint32" | "int64":
            return parse_integer(text) if text else 0
    return b""


def parse_integer(text: str) -> int:
    """Parses an integer as Kafka's generator does: decimal, hex with 0x, octal with leading 0."""
    sign, digits = (-1, text[1:]) if text.startswith("-") else (1, text.removeprefix("+"))
    if digits[:2].lower() == "0x":
        return sign * int(digits, 16)
    if len(digits) > 1 and digits[0] == "0":
        return sign * int(digits[1:], 8)
    return sign * int(digits, 10)
