"""Says which field is at fault, where and why, after the fast codec has only said "wrong".

The generated codec checks little and explains nothing. When it stumbles, these walkers go through
the same bytes, or the same object, once more by the layout of the definition.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any, Final, cast

from ..wire.errors import DecodeError, EncodeError
from ..wire.limits import (
    MAX_ARRAY_ELEMENTS,
    MAX_LENGTH,
    MAX_STRING_BYTES,
    MAX_TAG,
    MAX_TAGGED_FIELDS,
)
from ..wire.writing import BOOLS
from .layout import FORMATS, LayoutField, StructLayout, WireType, layout
from .naming import attribute_name, class_name
from .specs import FieldSpec, MessageSpec
from .versions import Versions

__all__ = ["explain_decode", "explain_encode", "is_default", "not_in_version"]

#: The width of each type of fixed width, in bytes.
_SIZES: Final = {kind: struct.calcsize(">" + letter) for kind, letter in FORMATS.items()}

#: Longer numbers are told by their length: Python turns none of thousands of digits into text.
_SHOWN_BITS: Final = 128


class _Fault(Exception):  # noqa: N818 - carries a finding up the walk, never leaves this module
    def __init__(self, reason: str, path: str, offset: int = 0) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path
        self.offset = offset


def explain_decode(
    message: MessageSpec, version: int, data: bytes, offset: int = 0, *, trailing: bool = False
) -> DecodeError | None:
    """What is wrong with the bytes of `message` that begin at `offset`; None when nothing is.

    Offsets in the error count from there. With `trailing`, bytes behind the message are no fault.
    """
    reader = _Reader(data, offset)
    try:
        end = reader.struct(layout(message, version), offset, "")
    except _Fault as fault:
        return DecodeError(
            fault.reason,
            message=message.name,
            version=version,
            field=fault.path,
            offset=fault.offset - offset,
        )
    if end < len(data) and not trailing:
        return DecodeError(
            f"{len(data) - end} bytes stand behind the end of the message; "
            "decode_from reads a message that something follows",
            message=message.name,
            version=version,
            offset=end - offset,
        )
    return None


class _Reader:
    """Walks bytes by a layout and builds nothing."""

    def __init__(self, data: bytes, start: int) -> None:
        self.data = data
        self.start = start

    def struct(self, shape: StructLayout, pos: int, path: str) -> int:
        for field in shape.fields:
            pos = self.value(field.type, pos, _join(path, field.attribute))
        if shape.flexible:
            pos = self.tags(shape, pos, path)
        return pos

    def value(self, kind: WireType, pos: int, path: str) -> int:
        match kind.kind:
            case "struct":
                return self.nested(kind, pos, path)
            case "array":
                return self.array(kind, pos, path)
            case "string":
                return self.string(kind, pos, path)
            case "bytes" | "records":
                size, pos = self.length(kind, pos, path, 4)
                return pos if size is None else self.take(pos, size, path)
            case fixed:
                return self.take(pos, _SIZES[fixed], path)

    def nested(self, kind: WireType, pos: int, path: str) -> int:
        assert kind.struct is not None
        if kind.nullable and kind.compact:
            mark, pos = self.uvarint(pos, path)
            if not 0 < mark <= MAX_LENGTH:
                return pos
        elif kind.nullable:
            end = self.take(pos, 1, path)
            if self.data[pos] > 127:
                return end
            pos = end
        return self.struct(kind.struct, pos, path)

    def array(self, kind: WireType, pos: int, path: str) -> int:
        start = pos
        count, pos = self.length(kind, pos, path, 4)
        if count is None:
            return pos
        left = len(self.data) - pos
        if count > left:
            raise _Fault(f"{count} elements are announced and {left} bytes are left", path, start)
        if count > MAX_ARRAY_ELEMENTS:
            reason = f"{count} elements are announced; at most {MAX_ARRAY_ELEMENTS} are read"
            raise _Fault(reason, path, start)
        assert kind.element is not None
        for index in range(count):
            pos = self.value(kind.element, pos, f"{path}[{index}]")
        return pos

    def string(self, kind: WireType, pos: int, path: str) -> int:
        start = pos
        size, pos = self.length(kind, pos, path, 2)
        if size is None:
            return pos
        if size > MAX_STRING_BYTES:
            reason = f"a string of {size} bytes; at most {MAX_STRING_BYTES} are allowed"
            raise _Fault(reason, path, start)
        end = self.take(pos, size, path)
        try:
            self.data[pos:end].decode()
        except UnicodeDecodeError as error:
            reason = f"a string that is not UTF-8 ({error.reason})"
            raise _Fault(reason, path, pos + error.start) from None
        return end

    def length(self, kind: WireType, pos: int, path: str, width: int) -> tuple[int | None, int]:
        """A length in either form, None for null."""
        start = pos
        if kind.compact:
            size, pos = self.uvarint(pos, path)
            size -= 1
        else:
            pos = self.take(pos, width, path)
            size = int.from_bytes(self.data[start:pos], "big", signed=True)
        if size < -1:
            raise _Fault(f"a length of {size}", path, start)
        if size == -1:
            if not kind.nullable:
                raise _Fault(f"null, which {path} may not be in this version", path, start)
            return None, pos
        return size, pos

    def uvarint(self, pos: int, path: str) -> tuple[int, int]:
        value = 0
        for index in range(5):
            end = self.take(pos + index, 1, path)
            byte = self.data[pos + index]
            value |= (byte & 127) << 7 * index
            if byte < 128:
                return value & 0xFFFFFFFF, end
        raise _Fault("an unsigned varint of more than 5 bytes", path, pos)

    def take(self, pos: int, size: int, path: str) -> int:
        end = pos + size
        if end > len(self.data):
            left = len(self.data) - pos
            needed = "1 byte is" if size == 1 else f"{size} bytes are"
            rest = "1 is" if left == 1 else f"{left} are"
            raise _Fault(f"{needed} needed and {rest} left", path, pos)
        return end

    def tags(self, shape: StructLayout, pos: int, path: str) -> int:
        """The tagged fields; a fault of their numbers and sizes is one of the struct at `path`."""
        known = {field.tag: field for field in shape.tagged}
        spans, pos = self.tag_spans(shape, pos, path)
        for tag, start, end in spans:
            field = known.get(tag)
            if field is None:
                continue
            inner = _join(path, field.attribute)
            stopped = self.value(field.type, start, inner)
            if stopped != end:
                reason = f"tag {tag} announces {end - start} bytes and holds {stopped - start}"
                raise _Fault(reason, inner, start)
        return pos

    def tag_spans(
        self, shape: StructLayout, pos: int, path: str
    ) -> tuple[list[tuple[int, int, int]], int]:
        """Each tag with the start and the end of its value."""
        elsewhere = shape.tags_of_other_versions()
        start = pos
        with _of("the number of tagged fields"):
            count, pos = self.uvarint(pos, path)
        if count > MAX_TAGGED_FIELDS:
            reason = f"{count} tagged fields are announced; at most {MAX_TAGGED_FIELDS} are read"
            raise _Fault(reason, path, start)
        previous = -1
        spans: list[tuple[int, int, int]] = []
        for _ in range(count):
            start = pos
            with _of("the number of a tag"):
                tag, pos = self.uvarint(pos, path)
            if tag <= previous:
                raise _Fault(f"tag {tag} comes after tag {previous}", path, start)
            if tag > MAX_TAG:
                raise _Fault(f"tag {tag}; the highest that is read is {MAX_TAG}", path, start)
            if tag in elsewhere:
                reason = f"tag {tag} is a field of {_versions(elsewhere[tag])} only"
                raise _Fault(reason, path, start)
            previous = tag
            with _of(f"tag {tag}"):
                size, pos = self.uvarint(pos, path)
                end = self.take(pos, size, path)
            spans.append((tag, pos, end))
            pos = end
        return spans, pos


@contextmanager
def _of(what: str) -> Iterator[None]:
    """Say of a fault what it is one of, where the path does not."""
    try:
        yield
    except _Fault as fault:
        raise _Fault(f"{what}: {fault.reason}", fault.path, fault.offset) from None


def explain_encode(message: MessageSpec, version: int, value: object) -> EncodeError | None:
    """Why `value` cannot be written as `message` at `version`; None when nothing is wrong."""
    try:
        _check_struct(layout(message, version), value, "")
    except _Fault as fault:
        error = EncodeError(fault.reason, message=message.name, version=version, field=fault.path)
        error.__cause__ = fault.__cause__  # what an object raised when it was looked at
        return error
    return None


@contextmanager
def _looking_at(path: str) -> Iterator[None]:
    """Whatever an object raises when it is looked at is a fault of the field that holds it."""
    try:
        yield
    except (_Fault, MemoryError):
        raise
    except Exception as error:
        kind = type(error).__name__
        raise _Fault(f"an object that raises {kind} when it is looked at", path) from error


def _check_struct(shape: StructLayout, value: object, path: str) -> None:
    is_one = any(base.__name__ == shape.class_name for base in type(value).__mro__)

    def held(attribute: str, where: str) -> object:
        try:
            return getattr(value, attribute)
        except AttributeError:
            if is_one:
                raise _Fault("the attribute was deleted, or never set", where) from None
            raise _Fault(f"a {shape.class_name} is wanted, not {_kind(value)}", path) from None

    for spec in shape.absent:
        attribute = attribute_name(spec.name, of_message=shape.is_message)
        if not spec.ignorable:
            where = _join(path, attribute)
            with _looking_at(where):
                _check_absent(spec, held(attribute, where), where)
    for field in shape.all_fields():
        where = _join(path, field.attribute)
        with _looking_at(where):
            _check_field(field, held(field.attribute, where), where)
    where = _join(path, "unknown_tagged_fields")
    with _looking_at(where):
        _check_unknown_tags(shape, held("_unknown_tags", where), where)


def _check_unknown_tags(shape: StructLayout, unknown: Any, where: str) -> None:
    if not unknown:
        return
    if not shape.flexible:
        raise _Fault("tagged fields cannot be written: this version is not flexible", where)
    elsewhere = shape.tags_of_other_versions()
    taken = {field.tag for field in shape.tagged}
    try:
        numbers = [operator.index(tag) for tag, _ in unknown]
        for _, data in unknown:
            memoryview(data)
    except (TypeError, ValueError):
        raise _Fault("a list of RawTaggedField(tag, bytes) is wanted", where) from None
    for tag in numbers:
        if not 0 <= tag <= MAX_TAG:
            reason = f"{_kind(tag)} is no tag number, which are from 0 to {MAX_TAG}"
            raise _Fault(reason, where)
        if tag in elsewhere:
            raise _Fault(f"tag {tag} is a field of {_versions(elsewhere[tag])}", where)
        if tag in taken:
            raise _Fault(f"tag {tag} is a field of this version, or is there twice", where)
        taken.add(tag)


def _check_absent(spec: FieldSpec, value: object, path: str) -> None:
    if not is_default(spec, value):
        raise _Fault(f"{not_in_version(spec)}; leave it at its default", path)


def not_in_version(spec: FieldSpec) -> str:
    """Why a value of the field cannot be written where the version does not have it."""
    held = spec.versions
    which = f"{_versions(held)} {'does' if len(held) == 1 else 'do'}" if held else "none does"
    return f"this version does not have the field ({which})"


def _versions(versions: Versions) -> str:
    """`version 3`, `versions 3-5` or `versions 3+`."""
    return f"version{'' if len(versions) == 1 else 's'} {versions}"


def is_default(spec: FieldSpec, value: Any) -> bool:
    """True when `value` is the default of the field, so that it may be left out."""
    default = spec.default_value()
    if default is None:
        return value is None
    if spec.is_struct:
        return _made_as(value) == class_name(spec.type) and _equals(value, value._generated()())
    return _equals(value, [] if spec.is_array else default)


def _equals(value: Any, default: Any) -> bool:
    """Whether `value` is written as `default` is: 1.0 equals 1, and is none for an int field."""
    if isinstance(default, bool):
        return _bool(value) is default
    if isinstance(default, int):
        try:
            return operator.index(value) == default
        except TypeError:
            return False
    if isinstance(default, list):
        return _is_array(value) and len(value) == 0 and not any(True for _ in value)
    if hasattr(default, "_unknown_tags"):  # a struct: all that its class has
        if _made_as(value) != _made_as(default) or value._unknown_tags:
            return False
        names = default._names()
        return all(_equals(getattr(value, name), getattr(default, name)) for name in names)
    return bool(value == default)


def _made_as(value: Any) -> str | None:
    """The name of the generated class of a struct, whatever the user derived from it."""
    made = getattr(type(value), "_generated", None)
    return None if made is None else made().__name__


def _bool(value: Any) -> bool | None:
    """What a bool field would carry; None for what it does not take."""
    try:
        return BOOLS[value]
    except (KeyError, TypeError):
        return None


def _is_array(value: object) -> bool:
    return (
        isinstance(value, Sized)
        and isinstance(value, Iterable)
        and not isinstance(value, Mapping | str)
    )


def _check_field(field: LayoutField, value: object, path: str) -> None:
    if field.tag is not None and is_default(field.spec, value):
        return  # It is left out.
    if value is None and field.type.kind not in FORMATS:
        if not field.type.nullable:
            raise _Fault("null, which this version does not allow", path)
        return
    _check_value(field.type, value, path)


def _check_value(kind: WireType, value: object, path: str) -> None:
    match kind.kind:
        case "struct":
            assert kind.struct is not None
            _check_struct(kind.struct, value, path)
        case "array":
            _check_array(kind, value, path)
        case "string":
            _check_string(value, path)
        case "bytes" | "records":
            if _octets(value) is None:
                raise _Fault(f"bytes are wanted, not {_kind(value)}", path)
        case "uuid":
            if _octets(value) != 16:
                raise _Fault(f"a Uuid of 16 bytes is wanted, not {_kind(value)}", path)
        case "bool":
            _check_bool(value, path)
        case fixed:
            _check_number(fixed, value, path)


def _check_array(kind: WireType, value: Any, path: str) -> None:
    assert kind.element is not None
    if not _is_array(value):
        raise _Fault(f"a list is wanted, not {_kind(value)}", path)
    count = len(value)
    seen = 0
    for index, element in enumerate(value):
        seen += 1
        if seen > count:
            break
        where = f"{path}[{index}]"
        if element is None:
            raise _Fault("null, which an element may not be", where)
        _check_value(kind.element, element, where)
    if seen != count:
        more = "more" if seen > count else str(seen)
        raise _Fault(f"{_kind(value)}, which says it has {count} elements and gives {more}", path)


def _check_string(value: Any, path: str) -> None:
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        raise _Fault("a str with a lone surrogate, which UTF-8 cannot carry", path) from None
    except (AttributeError, TypeError):
        raw = None
    if not isinstance(raw, bytes):
        raise _Fault(f"a str is wanted, not {_kind(value)}", path)
    size = len(raw)
    if size > MAX_STRING_BYTES:
        raise _Fault(f"a str of {size} bytes; at most {MAX_STRING_BYTES} are allowed", path)


def _octets(value: Any) -> int | None:
    """How many bytes a buffer holds; None for what is no buffer."""
    try:
        return memoryview(value).nbytes
    except TypeError:
        return None


def _check_bool(value: object, path: str) -> None:
    if _bool(value) is None:
        raise _Fault(f"{_kind(value)} is no bool", path)


def _check_number(kind: str, value: object, path: str) -> None:
    try:
        struct.pack(">" + FORMATS[kind], value)
    except (struct.error, TypeError, OverflowError):
        raise _Fault(f"{_kind(value)} is no {kind}{_range_of(kind)}", path) from None


def _range_of(kind: str) -> str:
    """What a type of whole numbers holds, for a message; nothing for other types."""
    if "int" not in kind:
        return ""
    values = 1 << 8 * _SIZES[kind]
    low = 0 if kind.startswith("u") else -values // 2
    return f", a whole number from {low} to {low + values - 1}"


def _kind(value: object) -> str:
    """A value named for a message: numbers as they are, all else by its type and length."""
    if type(value) is int and value.bit_length() > _SHOWN_BITS:
        return f"an int of {value.bit_length()} bits"
    if value is None or type(value) in (bool, int, float):
        return repr(value)
    if type(value) in (str, bytes, bytearray, list):
        return f"{type(value).__name__} of length {len(cast(Sized, value))}"
    return type(value).__name__


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
