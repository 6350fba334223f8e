"""Converts a message to the JSON of Kafka's JsonConverter classes, and back.

Field names are in camelCase; bytes are base64; uuids are base64url without padding. A field of type
`records` is written as base64 (Kafka writes an empty string, but reads base64). A tagged field at
its default is left out.

`from_json` ignores a field that the version lacks if the field is ignorable or at its default, and
raises DecodeError otherwise. `from_json` also accepts the names that older releases used for a
field.
"""

from __future__ import annotations

import base64
import math
import re
import struct
from collections.abc import Mapping
from typing import Any

from ..wire.buffers import octets
from ..wire.errors import ConfigurationError, DecodeError
from ..wire.limits import MAX_STRING_BYTES
from ..wire.tags import RawTaggedField
from ..wire.uuid import Uuid
from .explain import is_default, not_in_version
from .layout import FORMATS, StructLayout, WireType, absent_type, layout
from .specs import FieldSpec, MessageSpec
from .unknown_names import nearest

__all__ = ["from_json", "json_name", "to_json"]


def json_name(name: str) -> str:
    """Returns the name of a field in JSON: `topicId` for `TopicId`."""
    return name[:1].lower() + name[1:]


def to_json(message: MessageSpec, version: int, value: object) -> dict[str, Any]:
    """Returns `value` as JSON data (dict, list, str …). `value` must be encodable at `version`."""
    return _struct_to_json(layout(message, version), value)


def _struct_to_json(shape: StructLayout, value: object) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for field in shape.all_fields():
        field_value = getattr(value, field.attribute)
        if (
            field.tag is not None
            and is_default(field.spec, field_value)
            and not _is_stated_default(field_value)
        ):
            continue
        out[json_name(field.name)] = _value_to_json(field.type, field_value)
    return out


class _ExplicitDefaultMark(list[RawTaggedField]):
    """Marks a tagged struct that was read from JSON, so that it is written to JSON again.

    A tagged struct at its default is left out of JSON. But Kafka's JSON has such a struct if the
    struct had unknown tagged fields, which JSON cannot carry. With this mark, a message that is
    read from JSON is written as the same JSON.
    """


def _is_stated_default(value: object) -> bool:
    return type(getattr(value, "_unknown_tags", None)) is _ExplicitDefaultMark


def _value_to_json(kind: WireType, value: Any) -> Any:
    if value is None:
        return None
    match kind.kind:
        case "struct":
            assert kind.struct is not None
            return _struct_to_json(kind.struct, value)
        case "array":
            assert kind.element is not None
            return [_value_to_json(kind.element, element) for element in value]
        case "uuid":
            return str(Uuid(octets(value)))
        case "bytes" | "records":
            # `octets` returns the content of the buffer, even if a subclass overrides methods such
            # as `__bytes__` or `__index__`.
            return base64.b64encode(octets(value)).decode("ascii")
        case "bool":
            return bool(value)
        case "string":
            return value if type(value) is str else value.encode().decode()
        case "float64":
            return _float_to_json(float(value))
        case _:
            return int(value)


def _float_to_json(value: float) -> float | str:
    if math.isfinite(value):
        return value
    return "NaN" if math.isnan(value) else "Infinity" if value > 0 else "-Infinity"


def from_json(
    message: MessageSpec,
    version: int,
    node: object,
    classes: Mapping[str, Any],
    *,
    fill_defaults: bool = False,
) -> object:
    """Returns the message that the JSON data `node` describes.

    `classes` maps the names of the message and of its structs to their classes. With
    `fill_defaults` a missing field takes its default, and an unknown name is an error.

    Raises DecodeError, which names the field, for data that Kafka's converter would refuse.
    """
    reader = _JsonReader(message, version, classes, fill_defaults=fill_defaults)
    return reader.struct(layout(message, version), node, "")


class _JsonReader:
    """Reads a message of one version from JSON; `classes` has the class of each struct."""

    def __init__(
        self,
        message: MessageSpec,
        version: int,
        classes: Mapping[str, Any],
        *,
        fill_defaults: bool,
    ) -> None:
        self.message = message
        self.version = version
        self.classes = classes
        self.fill_defaults = fill_defaults

    def error(self, reason: str, path: str) -> DecodeError:
        return DecodeError(reason, message=self.message.name, version=self.version, field=path)

    def struct(self, shape: StructLayout, node: object, path: str) -> object:
        if not isinstance(node, dict):
            raise self.error(f"a JSON object is wanted, not {_json_kind(node)}", path)
        values: dict[str, Any] = {}
        for field in shape.all_fields():
            name = self.name_in(node, shape, field.spec, path)
            if name is not None:
                value = self.value(field.type, node[name], _join(path, name))
                if field.tag is not None and field.type.kind == "struct" and value is not None:
                    value._unknown_tags = _ExplicitDefaultMark()
                values[field.attribute] = value
            elif field.tag is None and not self.fill_defaults:
                raise self.error("the field is missing", _join(path, json_name(field.name)))
        for spec in shape.absent:
            name = self.name_in(node, shape, spec, path)
            if name is not None:
                self.absent(spec, node[name], _join(path, name))
        if self.fill_defaults:
            self.check_names(shape, node, path)
        return self.classes[shape.class_name](**values)

    def check_names(self, shape: StructLayout, node: dict[str, Any], path: str) -> None:
        """Raises DecodeError for a name that is no field: it may be a misspelled one."""
        known = [json_name(name) for spec in shape.specs() for name in (spec.name, *spec.aliases)]
        for name in node:
            if name not in known:
                near = ", ".join(nearest(name, known) or known)
                raise self.error(f"there is no such field; known: {near}", _join(path, name))

    def name_in(
        self, node: dict[str, Any], shape: StructLayout, spec: FieldSpec, path: str
    ) -> str | None:
        """Returns the key in `node` for the field: its present name, or one of its older names.

        Returns None if `node` lacks the field. Raises DecodeError if `node` has two names of the
        field.
        """
        name = json_name(spec.name)
        found = [name] if name in node else []
        if spec.aliases:
            own = {json_name(other.name) for other in shape.specs()}
            found += [old for old in map(json_name, spec.aliases) if old in node and old not in own]
        if len(found) > 1:
            reason = f"the field occurs twice, as {found[1]} too"
            raise self.error(reason, _join(path, found[0]))
        return found[0] if found else None

    def absent(self, spec: FieldSpec, node: object, path: str) -> None:
        """Checks a field in the JSON that the version lacks; the field is then dropped.

        Raises DecodeError if the field is not ignorable and has a value other than its default. As
        in Kafka, raises DecodeError for an invalid value, too.
        """
        value = self.value(absent_type(self.message, spec, self.version), node, path)
        if not spec.ignorable and not is_default(spec, value):
            raise self.error(f"{not_in_version(spec)}; leave it out, or at its default", path)

    def value(self, kind: WireType, node: Any, path: str) -> Any:
        if node is None:
            if not kind.nullable:
                raise self.error("null, which this version does not allow", path)
            return None
        match kind.kind:
            case "struct":
                if kind.struct is None:
                    reason = "this version has neither the field nor its struct; leave it out"
                    raise self.error(reason, path)
                return self.struct(kind.struct, node, path)
            case "array":
                if not isinstance(node, list):
                    raise self.error(f"a JSON array is wanted, not {_json_kind(node)}", path)
                assert kind.element is not None
                element = kind.element
                return [self.value(element, item, f"{path}[{i}]") for i, item in enumerate(node)]
            case "string" | "uuid" | "bytes" | "records":
                if not isinstance(node, str):
                    raise self.error(f"a JSON string is wanted, not {_json_kind(node)}", path)
                return self.text(kind.kind, node, path)
            case "bool":
                if not isinstance(node, bool):
                    raise self.error(f"true or false is wanted, not {_json_kind(node)}", path)
                return node
            case "float64":
                if not isinstance(node, float):
                    reason = f"a number with a fraction is wanted, not {_json_kind(node)}"
                    raise self.error(reason, path)
                return node
            case number:
                return self.integer(number, node, path)

    def integer(self, kind: str, node: object, path: str) -> int:
        if isinstance(node, bool) or not isinstance(node, int):
            raise self.error(f"a whole number is wanted, not {_json_kind(node)}", path)
        try:
            struct.pack(">" + FORMATS[kind], node)
        except struct.error:
            raise self.error(f"{_json_kind(node)} is no {kind}", path) from None
        return node

    def text(self, kind: str, node: str, path: str) -> str | bytes:
        if kind == "string":
            try:
                size = len(node.encode())
            except UnicodeEncodeError:
                reason = "a string with a lone surrogate, which UTF-8 cannot carry"
                raise self.error(reason, path) from None
            if size > MAX_STRING_BYTES:
                reason = f"a string of {size} bytes; at most {MAX_STRING_BYTES} are allowed"
                raise self.error(reason, path)
            return node
        try:
            if kind == "uuid":
                return Uuid.parse(node.removesuffix("=="))
            return _decode_base64(node)
        except ConfigurationError as error:
            raise self.error(str(error), path) from None
        except ValueError:
            raise self.error("a string that is no base64", path) from None


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _decode_base64(text: str) -> bytes:
    """Returns the bytes of base64 as Kafka's converter (Jackson) reads it.

    Raises ValueError for other text. Each group of four characters may end with padding, not only
    the last group. White space is allowed before a group and at the end.
    """
    if not _BASE64.fullmatch(text):
        raise ValueError
    return b"".join(base64.b64decode(padded) for padded in _PADDED.findall(text))


_BASE64 = re.compile(
    r"(?:[\0-\x20]*+[A-Za-z0-9+/]{2}(?:[A-Za-z0-9+/]{2}|[A-Za-z0-9+/]=|==))*+[\0-\x20]*+"
)
_PADDED = re.compile(r"[^=]+=*")


def _json_kind(node: object) -> str:
    """Describes a JSON value in an error.

    Numbers, booleans and null are described by their value, other values by their type.
    """
    if type(node) is int and node.bit_length() > 128:
        return f"a number of {node.bit_length()} bits"
    if node is None or isinstance(node, bool | int | float):
        return repr(node)
    names: dict[type, str] = {str: "a string", list: "an array", dict: "an object"}
    return names.get(type(node), "something else")
