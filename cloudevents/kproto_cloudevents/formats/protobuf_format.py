"""The protobuf event format: an event as one message `io.cloudevents.v1.CloudEvent`.

Register `PROTOBUF_FORMAT`, or pass it to `to_kafka`. The format needs the package protobuf, which
the extra `cloudevents-protobuf` installs. This module declares the message by its field numbers in
a separate descriptor pool, so that it does not collide with the official generated classes in the
same process. This module imports no binding, such as `kafka`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any, Final, NamedTuple

from ..errors import CloudEventError, quoted
from ..event.cloud_event import CloudEvent
from ..event.data import (
    Data,
    JsonText,
    TextOrBase64,
    as_bytes,
    as_json_text,
    declares_json,
    unmarked_error,
)
from ..values.media_type import parse_media_type
from ..values.types import AttributeValue, Timestamp, Uri, UriReference, canonical, type_of, utf8
from ..versions.version_tables import V1_0
from .registry import EventFormat
from .typed_attributes import attributes_to_write, event_of, missing_package_error

__all__ = ["PROTOBUF_FORMAT", "from_protobuf", "to_protobuf"]

_ATTRIBUTES: Final = ("Protobuf format 2",)
_TYPES: Final = ("Protobuf format 2.1",)
_DATA: Final = ("Protobuf format 3",)

#: The attributes that are fields of the message; all others are entries of its map.
_FIELDS: Final = {"id": "id", "source": "source", "specversion": "spec_version", "type": "type"}
#: The field of the oneof for each CloudEvents type.
_MEMBERS: Final = {
    "Boolean": "ce_boolean",
    "Integer": "ce_integer",
    "String": "ce_string",
    "Binary": "ce_bytes",
    "URI": "ce_uri",
    "URI-reference": "ce_uri_ref",
    "Timestamp": "ce_timestamp",
}

_JSON: Final = "application/json"
_PROTOBUF: Final = "application/protobuf"
#: The scheme of a type URL without a scheme (google.protobuf.Any).
_ASSUMED_SCHEME: Final = "https://"
_TYPE_HOST: Final = "https://type.googleapis.com/"

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_FIRST_SECOND: Final = -62_135_596_800  # 0001-01-01T00:00:00Z
_LAST_SECOND: Final = 253_402_300_799  # 9999-12-31T23:59:59Z
_FRACTION: Final = re.compile(r"\.([0-9]+)")


class _ProtobufLibrary(NamedTuple):
    """The message class, and the exception that protobuf raises for invalid bytes."""

    message: Any
    decode_error: type[Exception]


def from_protobuf(document: bytes) -> CloudEvent:
    """Reads an event from a document of `application/cloudevents+protobuf`.

    If `datacontenttype` is a JSON type, `text_data` becomes a JSON value, or bytes if the text is
    not JSON or has whitespace around it. A message in `proto_data` becomes its bytes. The default
    of `datacontenttype` is then application/protobuf, and the default of `dataschema` is the type
    URL. Raises CloudEventError for an invalid document, and if protobuf is missing. Raises
    UnknownVersionError for a specversion other than 1.0.
    """
    protobuf = _protobuf()
    try:
        message = protobuf.message.FromString(bytes(document))
    except protobuf.decode_error:
        raise CloudEventError("not an event in protobuf", clauses=_ATTRIBUTES) from None
    attributes = list(_read_attributes(message))
    by_name = dict(attributes)
    data: Data = None
    kind = message.WhichOneof("data")
    if kind == "binary_data":
        data = message.binary_data
    elif kind == "text_data":
        data = _text_data(message.text_data, by_name.get("datacontenttype"))
    elif kind == "proto_data":
        data = message.proto_data.value
        attributes = _typed_by(message.proto_data.type_url, attributes)
    return event_of(attributes, data, _TYPES)


def to_protobuf(event: CloudEvent) -> bytes:
    """Writes an event as a document of `application/cloudevents+protobuf`.

    Text and JSON go into `text_data`; JSON always gets a `datacontenttype`. Bytes go into
    `binary_data`, or into `proto_data` if they are application/protobuf with a `dataschema` under
    `https://type.googleapis.com/`. A time loses its UTC offset: it is read back in UTC. Raises
    CloudEventError for an event whose version is not 1.0, for a time that the message cannot
    represent, for text with an unpaired surrogate, and if protobuf is missing.
    """
    protobuf = _protobuf()
    message = protobuf.message()
    for name, value in attributes_to_write(event, _ATTRIBUTES).items():
        field = _FIELDS.get(name)
        if field is not None:
            setattr(message, field, value)
        else:
            _write_value(message.attributes[name], name, value)
    _write_data(message, event)
    written: bytes = message.SerializeToString(deterministic=True)
    return written


PROTOBUF_FORMAT: Final = EventFormat("application/cloudevents+protobuf", from_protobuf, to_protobuf)


# --- attributes ---------------------------------------------------------------------------------


def _read_attributes(message: Any) -> Iterator[tuple[str, AttributeValue | None]]:
    for name, field in _FIELDS.items():
        # A missing field of proto3 reads as empty.
        yield name, getattr(message, field) or None
    for name in sorted(message.attributes):
        yield name, _read_value(name, message.attributes[name])


def _read_value(name: str, value: Any) -> AttributeValue | None:
    """Returns the typed value of an attribute; None if the oneof is empty."""
    member = value.WhichOneof("attr")
    if member is None:
        return None
    raw = getattr(value, member)
    if member == "ce_timestamp":
        return _read_time(name, raw)
    typed = V1_0.attributes.get(name) is None
    if member == "ce_uri" and typed:
        return Uri(raw)
    if member == "ce_uri_ref" and typed:
        return UriReference(raw)
    plain: AttributeValue = raw
    return plain


def _write_value(into: Any, name: str, value: AttributeValue) -> None:
    spec = V1_0.attributes.get(name)
    member = _MEMBERS[(type_of(value) if spec is None else spec.type).name]
    if member == "ce_timestamp":
        _write_time(into.ce_timestamp, name, canonical(value))
    else:
        setattr(into, member, value)


def _read_time(name: str, timestamp: Any) -> Timestamp:
    if not (_FIRST_SECOND <= timestamp.seconds <= _LAST_SECOND and 0 <= timestamp.nanos < 10**9):
        raise CloudEventError(
            "the timestamp is beyond the years 1 to 9999, or its nanoseconds are out of range",
            where=name,
            clauses=_TYPES,
        )
    text = (_EPOCH + timedelta(seconds=timestamp.seconds)).isoformat().removesuffix("+00:00")
    return Timestamp(f"{text}{_fraction(timestamp.nanos)}Z")


def _fraction(nanos: int) -> str:
    """Returns the fraction of a second with no, three, six or nine digits."""
    digits = f"{nanos:09}"
    while digits.endswith("000"):
        digits = digits[:-3]
    return f".{digits}" if digits else ""


def _write_time(into: Any, name: str, text: str) -> None:
    time = Timestamp(text).datetime
    seconds = (time - _EPOCH) // timedelta(seconds=1)
    fraction = _FRACTION.search(text)
    digits = "" if fraction is None else fraction[1]
    if text[17:19] == "60" or digits[9:].strip("0") or not _FIRST_SECOND <= seconds <= _LAST_SECOND:
        raise CloudEventError(
            f"protobuf cannot represent the time {quoted(text)}: its timestamps have the years 1 "
            "to 9999 in UTC, at most nine digits of a second, and no leap seconds",
            where=name,
            clauses=_TYPES,
        )
    into.seconds = seconds
    into.nanos = int(digits[:9].ljust(9, "0"))


# --- data ---------------------------------------------------------------------------------------


def _text_data(text: str, content_type: AttributeValue | None) -> Data:
    """Returns text of a JSON type as JSON, and other text unchanged.

    The charset of the type does not apply to JSON, because the field is already decoded text. If
    the type is a JSON type, but the text is not JSON or has whitespace around it, the text becomes
    bytes in the charset of the type.
    """
    if not isinstance(content_type, str) or not declares_json(content_type):
        return text
    if as_json_text(text.encode(), _JSON) == text:
        return JsonText(text)
    return as_bytes(text, content_type)


def _typed_by(
    type_url: str, attributes: list[tuple[str, AttributeValue | None]]
) -> list[tuple[str, AttributeValue | None]]:
    """Returns the attributes of an event whose data is a message of the type `type_url`.

    Sets the datacontenttype and the dataschema if the attributes lack them.
    """
    whole_url = type_url if "://" in type_url else _ASSUMED_SCHEME + type_url
    found = dict(attributes)
    if found.get("datacontenttype") is None:
        found["datacontenttype"] = _PROTOBUF
    if found.get("dataschema") in (None, type_url) and type_url:
        found["dataschema"] = whole_url
    return list(found.items())


def _write_data(message: Any, event: CloudEvent) -> None:
    data = event._data
    if isinstance(data, JsonText):
        message.text_data = data.text
    elif isinstance(data, TextOrBase64):
        raise unmarked_error()
    elif isinstance(data, str):
        utf8(data, where="data", clauses=_DATA)
        message.text_data = data
    elif isinstance(data, bytes):
        schema = event.dataschema or ""
        media_type = parse_media_type(event.datacontenttype or "")
        is_message = media_type is not None and media_type.essence == _PROTOBUF
        if is_message and schema.startswith(_TYPE_HOST):
            message.proto_data.type_url = schema.removeprefix(_ASSUMED_SCHEME)
            message.proto_data.value = data
        else:
            message.binary_data = data


# --- the message --------------------------------------------------------------------------------


@cache
def _protobuf() -> _ProtobufLibrary:
    """Declares the message class with the field numbers of cloudevents.proto.

    Returns the class and protobuf's DecodeError. Raises CloudEventError if the package protobuf is
    not installed.
    """
    try:
        from google.protobuf import (
            any_pb2,
            descriptor_pb2,
            descriptor_pool,
            message_factory,
            timestamp_pb2,
        )
        from google.protobuf.message import DecodeError
    except ImportError:
        raise missing_package_error("protobuf", "cloudevents-protobuf") from None
    field = descriptor_pb2.FieldDescriptorProto
    strings = [("id", 1), ("source", 2), ("spec_version", 3), ("type", 4)]
    union = [
        ("ce_boolean", 1, field.TYPE_BOOL, None),
        ("ce_integer", 2, field.TYPE_INT32, None),
        ("ce_string", 3, field.TYPE_STRING, None),
        ("ce_bytes", 4, field.TYPE_BYTES, None),
        ("ce_uri", 5, field.TYPE_STRING, None),
        ("ce_uri_ref", 6, field.TYPE_STRING, None),
        ("ce_timestamp", 7, field.TYPE_MESSAGE, ".google.protobuf.Timestamp"),
    ]
    data = [
        ("binary_data", 6, field.TYPE_BYTES, None),
        ("text_data", 7, field.TYPE_STRING, None),
        ("proto_data", 8, field.TYPE_MESSAGE, ".google.protobuf.Any"),
    ]
    event_name = ".io.cloudevents.v1.CloudEvent"
    file = descriptor_pb2.FileDescriptorProto(
        name="cloudevents.proto",
        package="io.cloudevents.v1",
        syntax="proto3",
        dependency=[any_pb2.DESCRIPTOR.name, timestamp_pb2.DESCRIPTOR.name],
    )
    event = file.message_type.add(name="CloudEvent")
    for name, number in strings:
        event.field.add(
            name=name, number=number, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL
        )
    event.field.add(
        name="attributes",
        number=5,
        type=field.TYPE_MESSAGE,
        label=field.LABEL_REPEATED,
        type_name=f"{event_name}.AttributesEntry",
    )
    event.oneof_decl.add(name="data")
    _add_members(event, data, field)
    value = event.nested_type.add(name="CloudEventAttributeValue")
    value.oneof_decl.add(name="attr")
    _add_members(value, union, field)
    entry = event.nested_type.add(name="AttributesEntry")
    entry.options.map_entry = True
    entry.field.add(name="key", number=1, type=field.TYPE_STRING, label=field.LABEL_OPTIONAL)
    entry.field.add(
        name="value",
        number=2,
        type=field.TYPE_MESSAGE,
        label=field.LABEL_OPTIONAL,
        type_name=f"{event_name}.CloudEventAttributeValue",
    )
    pool = descriptor_pool.DescriptorPool()
    for needed in (any_pb2, timestamp_pb2):
        pool.AddSerializedFile(needed.DESCRIPTOR.serialized_pb)
    pool.AddSerializedFile(file.SerializeToString())
    described = pool.FindMessageTypeByName(event_name[1:])
    return _ProtobufLibrary(message_factory.GetMessageClass(described), DecodeError)


def _add_members(into: Any, members: list[tuple[str, int, Any, str | None]], field: Any) -> None:
    """Adds fields as members of the first `oneof` of a message."""
    for name, number, kind, type_name in members:
        into.field.add(
            name=name,
            number=number,
            type=kind,
            label=field.LABEL_OPTIONAL,
            type_name=type_name,
            oneof_index=0,
        )
