"""`SchemaIdCodec`: the id of a schema before the data, or in a header, as schema registries use it.

The forms are those of Confluent's serializers: the five-byte frame, magic byte 0 and the id as a
big-endian int32 before the data; or the header `__key_schema_id` or `__value_schema_id`, whose
value is magic byte 1 and the 16 bytes of the schema's GUID.
"""

from __future__ import annotations

from struct import Struct
from typing import Final, Generic, TypeVar
from uuid import UUID

from ..wire.errors import ConfigurationError
from .contexts import DecodeContext, EncodeContext, Field, SchemaId
from .protocols import Codec, decode_function, encode_function

__all__ = ["SCHEMA_ID_HEADERS", "SchemaIdCodec", "read_schema_id", "schema_id_bytes"]

T = TypeVar("T")

#: The names of the headers with a schema id, by the field of the record.
SCHEMA_ID_HEADERS: Final[dict[Field, str]] = {
    "key": "__key_schema_id",
    "value": "__value_schema_id",
}

_MAGIC_ID: Final = 0
_MAGIC_GUID: Final = 1
_ID_FRAME: Final = Struct(">BI")
_GUID_BYTES: Final = 16
_MAX_ID: Final = 0x7FFFFFFF

_NO_PLACE: Final = "the schema id is a UUID, which the five-byte frame cannot hold: set in_header"


class SchemaIdCodec(Generic[T]):
    """Adds the id of a schema to the data of the codec `inner`, and reads it.

    Encoding writes `schema_id`, or the id that `inner` has set as `context.schema_id`: an int
    before the data, or with `in_header` a GUID (UUID) or an int into the header of the field.
    Decoding takes the id from the header if there is one, otherwise from the first five bytes;
    `inner` decodes the rest of the data, and finds the id as `context.schema_id`. `inner` chooses
    the schema by the id: this codec asks no registry.

    Raises ConfigurationError for an id that is no int from 0 to 2**31 - 1 and no UUID, and for a
    UUID without `in_header`, because the five-byte frame has no place for it. Encoding without an
    id, and decoding data without one, raise ValueError.
    """

    __slots__ = ("_decode", "_encode", "_in_header", "_schema_id")

    def __init__(
        self,
        inner: Codec[T],
        schema_id: SchemaId | None = None,
        *,
        in_header: bool = False,
    ) -> None:
        if schema_id is not None:
            try:
                schema_id_bytes(schema_id)
            except ValueError as error:
                raise ConfigurationError(str(error)) from None
            if isinstance(schema_id, UUID) and not in_header:
                raise ConfigurationError(_NO_PLACE)
        self._encode = encode_function(inner, "value")
        self._decode = decode_function(inner, "value")
        self._schema_id = schema_id
        self._in_header = in_header

    def encode(self, value: T, context: EncodeContext, /) -> bytes | None:
        """Returns the data of `inner`, with the id before it, or in the header of the field."""
        context.schema_id = None
        data: bytes | None = self._encode(value, context)
        schema_id = context.schema_id
        if schema_id is None:
            schema_id = self._schema_id
        if schema_id is None:
            raise ValueError("no schema id: pass schema_id, or set context.schema_id")
        if data is None:
            return None
        id_bytes = schema_id_bytes(schema_id)
        if self._in_header:
            context.headers.append((SCHEMA_ID_HEADERS[context.field], id_bytes))
            return data
        if len(id_bytes) > _ID_FRAME.size:
            raise ValueError(_NO_PLACE)
        return id_bytes + data

    def decode(self, data: bytes, context: DecodeContext, /) -> T:
        """Returns what `inner` decodes from the data after the id."""
        name = SCHEMA_ID_HEADERS[context.field]
        # The last header counts, as in Java's client.
        in_header = [value for each, value in context.headers if each == name and value is not None]
        if in_header:
            schema_id, left = read_schema_id(in_header[-1])
            if left:
                raise ValueError(f"the header {name} has {len(left)} bytes after the schema id")
        else:
            schema_id, data = read_schema_id(data)
        found: T = self._decode(data, DecodeContext(context.record, context.field, schema_id))
        return found


def schema_id_bytes(schema_id: SchemaId) -> bytes:
    """Returns magic byte and id: 5 bytes for an int, 17 bytes for a GUID.

    Raises ValueError for another type, and for an int that is no id.
    """
    if isinstance(schema_id, UUID):
        return bytes((_MAGIC_GUID,)) + schema_id.bytes
    if type(schema_id) is not int or not 0 <= schema_id <= _MAX_ID:
        raise ValueError(
            f"the schema id is {schema_id!r:.80}; it is an int from 0 to {_MAX_ID}, or a UUID"
        )
    return _ID_FRAME.pack(_MAGIC_ID, schema_id)


def read_schema_id(data: bytes) -> tuple[SchemaId, bytes]:
    """Returns the id at the begin of `data`, and the bytes after it.

    Raises ValueError for bytes that do not begin with magic byte 0 or 1 and a whole id.
    """
    magic = data[0] if data else None
    if magic == _MAGIC_ID and len(data) >= _ID_FRAME.size:
        return _ID_FRAME.unpack_from(data)[1], data[_ID_FRAME.size :]
    if magic == _MAGIC_GUID and len(data) > _GUID_BYTES:
        return UUID(bytes=data[1 : 1 + _GUID_BYTES]), data[1 + _GUID_BYTES :]
    raise ValueError(
        f"no schema id: the data begin with {data[:5]!r}, not with a magic byte and id"
    )
