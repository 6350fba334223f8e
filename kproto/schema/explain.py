"""Finds the field, the offset and the reason, after the generated codec failed.

For speed, the generated codec checks little and its errors name no field. If it fails, these
functions read the same bytes, or the same object, again with the layout of the message version.
"""

from __future__ import annotations

import operator
import struct
from collections.abc import Iterable, Iterator, Mapping, Sized
from contextlib import contextmanager
from typing import Any, Final, cast

from ..wire.errors import DecodeError, EncodeError
from ..wire.limits import MAX_STRING_BYTES, MAX_TAG
from ..wire.writing import BOOLS
from .layout import FORMATS, LayoutField, StructLayout, WireType, layout
from .naming import attribute_name, class_name
from .specs import FieldSpec, MessageSpec
from .wire_validation import SIZES, BytesFault, validate, versions_in_words

__all__ = ["explain_decode", "explain_encode", "is_default", "not_in_version"]

#: If an integer has more bits than this, errors show only its bit length, because Python refuses to
#: print huge integers.
_SHOWN_BITS: Final = 128


class _CannotEncodeError(Exception):
    """Says why the value at `path` cannot be encoded."""

    def __init__(self, reason: str, path: str) -> None:
        super().__init__(reason)
        self.reason = reason
        self.path = path


def explain_decode(
    message: MessageSpec, version: int, data: bytes, offset: int = 0, *, trailing: bool = False
) -> DecodeError | None:
    """Returns the error for the bytes of `message` from `offset` on; None if they are valid.

    The offset in the error counts from `offset`. With `trailing`, bytes may follow the message.
    """
    try:
        end = validate(layout(message, version), data, offset)
    except BytesFault as fault:
        return DecodeError(
            fault.reason,
            message=message.name,
            version=version,
            field=fault.path,
            offset=fault.offset - offset,
        )
    if end < len(data) and not trailing:
        return DecodeError(
            f"{len(data) - end} bytes follow the end of the message; "
            "decode_from reads a message with bytes after it",
            message=message.name,
            version=version,
            offset=end - offset,
        )
    return None


def explain_encode(message: MessageSpec, version: int, value: object) -> EncodeError | None:
    """Returns the error of encoding `value` as `message` at `version`; None if there is none."""
    try:
        _check_struct(layout(message, version), value, "")
    except _CannotEncodeError as fault:
        error = EncodeError(fault.reason, message=message.name, version=version, field=fault.path)
        error.__cause__ = fault.__cause__  # the exception that the inspected object raised
        return error
    return None


@contextmanager
def _inspecting(path: str) -> Iterator[None]:
    """Converts an exception of the encoded value to a fault at `path`.

    The value raises such an exception, for example, in a property that is read.
    """
    try:
        yield
    except (_CannotEncodeError, MemoryError):
        raise
    except Exception as error:
        kind = type(error).__name__
        raise _CannotEncodeError(f"an object that raises {kind} when it is read", path) from error


def _check_struct(shape: StructLayout, value: object, path: str) -> None:
    is_one = any(base.__name__ == shape.class_name for base in type(value).__mro__)

    def attribute_value(attribute: str, field_path: str) -> object:
        try:
            return getattr(value, attribute)
        except AttributeError:
            if is_one:
                raise _CannotEncodeError(
                    "the attribute was deleted, or never set", field_path
                ) from None
            raise _CannotEncodeError(
                f"a {shape.class_name} is wanted, not {_kind(value)}", path
            ) from None

    if not is_one:  # only structs have `_unknown_tags`; a str could have the other attributes too
        with _inspecting(path):
            attribute_value("_unknown_tags", path)
    for spec in shape.absent:
        attribute = attribute_name(spec.name, of_message=shape.is_message)
        if not spec.ignorable:
            field_path = _join(path, attribute)
            with _inspecting(field_path):
                _check_absent(spec, attribute_value(attribute, field_path), field_path)
    for field in shape.all_fields():
        field_path = _join(path, field.attribute)
        with _inspecting(field_path):
            _check_field(field, attribute_value(field.attribute, field_path), field_path)
    field_path = _join(path, "unknown_tagged_fields")
    with _inspecting(field_path):
        _check_unknown_tags(shape, attribute_value("_unknown_tags", field_path), field_path)


def _check_unknown_tags(shape: StructLayout, unknown: Any, field_path: str) -> None:
    if not unknown:
        return
    if not shape.flexible:
        raise _CannotEncodeError(
            "tagged fields cannot be written: this version is not flexible", field_path
        )
    elsewhere = shape.tags_of_other_versions()
    used = {field.tag for field in shape.tagged}
    try:
        numbers = [operator.index(tag) for tag, _ in unknown]
        for _, data in unknown:
            memoryview(data)
    except (TypeError, ValueError):
        raise _CannotEncodeError(
            "a list of RawTaggedField(tag, bytes) is wanted", field_path
        ) from None
    for tag in numbers:
        if not 0 <= tag <= MAX_TAG:
            reason = f"{_kind(tag)} is no tag number, which are from 0 to {MAX_TAG}"
            raise _CannotEncodeError(reason, field_path)
        if tag in elsewhere:
            raise _CannotEncodeError(
                f"tag {tag} is a field of {versions_in_words(elsewhere[tag])}", field_path
            )
        if tag in used:
            raise _CannotEncodeError(
                f"tag {tag} is a field of this version, or is there twice", field_path
            )
        used.add(tag)


def _check_absent(spec: FieldSpec, value: object, path: str) -> None:
    if not is_default(spec, value):
        raise _CannotEncodeError(f"{not_in_version(spec)}; leave it at its default", path)


def not_in_version(spec: FieldSpec) -> str:
    """Returns the error text for a field that has a value, but that the version lacks.

    The text names the versions that have the field.
    """
    attribute_value = spec.versions
    which = (
        f"{versions_in_words(attribute_value)} {'does' if len(attribute_value) == 1 else 'do'}"
        if attribute_value
        else "none does"
    )
    return f"this version does not have the field ({which})"


def is_default(spec: FieldSpec, value: Any) -> bool:
    """Returns True if `value` equals the default of the field, so that encoding may omit it."""
    default = spec.default_value()
    if default is None:
        return value is None
    if spec.is_struct:
        return _made_as(value) == class_name(spec.type) and _equals(value, value._generated()())
    return _equals(value, [] if spec.is_array else default)


def _equals(value: Any, default: Any) -> bool:
    """Returns True if `value` encodes to the bytes of `default`.

    A comparison by `==` is not enough: `1.0 == 1`, but an int field refuses 1.0.
    """
    if isinstance(default, bool):
        return _bool(value) is default
    if isinstance(default, int):
        try:
            return operator.index(value) == default
        except TypeError:
            return False
    if isinstance(default, list):
        return _is_array(value) and len(value) == 0 and not any(True for _ in value)
    if hasattr(default, "_unknown_tags"):  # a struct: compares its class, tags and fields
        if _made_as(value) != _made_as(default) or value._unknown_tags:
            return False
        names = default._names()
        return all(_equals(getattr(value, name), getattr(default, name)) for name in names)
    return bool(value == default)


def _made_as(value: Any) -> str | None:
    """Returns the name of the generated class of which `value` is an instance.

    The class of `value` may be a subclass of the generated class. Returns None if `value` is no
    struct.
    """
    made = getattr(type(value), "_generated", None)
    return None if made is None else made().__name__


def _bool(value: Any) -> bool | None:
    """Returns `value` as a bool field encodes it; None if the field refuses the value."""
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
        return  # a tagged field at its default is not encoded
    if value is None and field.type.kind not in FORMATS:
        if not field.type.nullable:
            raise _CannotEncodeError("null, which this version does not allow", path)
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
                raise _CannotEncodeError(f"bytes are wanted, not {_kind(value)}", path)
        case "uuid":
            if _octets(value) != 16:
                raise _CannotEncodeError(f"a Uuid of 16 bytes is wanted, not {_kind(value)}", path)
        case "bool":
            _check_bool(value, path)
        case fixed:
            _check_number(fixed, value, path)


def _check_array(kind: WireType, value: Any, path: str) -> None:
    assert kind.element is not None
    if not _is_array(value):
        raise _CannotEncodeError(f"a list is wanted, not {_kind(value)}", path)
    count = len(value)
    seen = 0
    for index, element in enumerate(value):
        seen += 1
        if seen > count:
            break
        field_path = f"{path}[{index}]"
        if element is None:
            raise _CannotEncodeError("null, which an element may not be", field_path)
        _check_value(kind.element, element, field_path)
    if seen != count:
        more = "more" if seen > count else str(seen)
        raise _CannotEncodeError(
            f"{_kind(value)}, whose len is {count}, but which yields {more}", path
        )


def _check_string(value: Any, path: str) -> None:
    try:
        raw = value.encode()
    except UnicodeEncodeError:
        raise _CannotEncodeError(
            "a str with a lone surrogate, which UTF-8 cannot carry", path
        ) from None
    except (AttributeError, TypeError):
        raw = None
    if not isinstance(raw, bytes):
        raise _CannotEncodeError(f"a str is wanted, not {_kind(value)}", path)
    size = len(raw)
    if size > MAX_STRING_BYTES:
        raise _CannotEncodeError(
            f"a str of {size} bytes; at most {MAX_STRING_BYTES} are allowed", path
        )


def _octets(value: Any) -> int | None:
    """Returns the number of bytes in a buffer; None if `value` is not a buffer."""
    try:
        return memoryview(value).nbytes
    except TypeError:
        return None


def _check_bool(value: object, path: str) -> None:
    if _bool(value) is None:
        raise _CannotEncodeError(f"{_kind(value)} is no bool", path)


def _check_number(kind: str, value: object, path: str) -> None:
    try:
        struct.pack(">" + FORMATS[kind], value)
    except (struct.error, TypeError, OverflowError):
        raise _CannotEncodeError(f"{_kind(value)} is no {kind}{_range_of(kind)}", path) from None


def _range_of(kind: str) -> str:
    """Returns the range of an integer type as error text; "" for other types."""
    if "int" not in kind:
        return ""
    values = 1 << 8 * SIZES[kind]
    low = 0 if kind.startswith("u") else -values // 2
    return f", a whole number from {low} to {low + values - 1}"


def _kind(value: object) -> str:
    """Describes a value in an error: a number or None as itself, any other value by its type.

    The description of a str, bytes or list includes the length. The description of a very large int
    has only the number of bits.
    """
    if type(value) is int and value.bit_length() > _SHOWN_BITS:
        return f"an int of {value.bit_length()} bits"
    if value is None or type(value) in (bool, int, float):
        return repr(value)
    if type(value) in (str, bytes, bytearray, list):
        return f"{type(value).__name__} of length {len(cast(Sized, value))}"
    return type(value).__name__


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
