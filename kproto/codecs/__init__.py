"""Codecs of keys and values: serializers for producers, deserializers for consumers.

`Client.producer` and `Client.consumer` take a codec as `key` and as `value`. This package imports
no client, so the codecs can be used by themselves.
"""

from .basic import BytesCodec, FunctionCodec, IntCodec, JsonCodec, StringCodec, UuidCodec
from .contexts import DecodeContext, EncodeContext, Field, SchemaId
from .protocols import AnyDecoder, AnyEncoder, Codec, Decoder, Encoder
from .schema_id import SCHEMA_ID_HEADERS, SchemaIdCodec, read_schema_id, schema_id_bytes

__all__ = [
    "SCHEMA_ID_HEADERS",
    "AnyDecoder",
    "AnyEncoder",
    "BytesCodec",
    "Codec",
    "DecodeContext",
    "Decoder",
    "EncodeContext",
    "Encoder",
    "Field",
    "FunctionCodec",
    "IntCodec",
    "JsonCodec",
    "SchemaId",
    "SchemaIdCodec",
    "StringCodec",
    "UuidCodec",
    "read_schema_id",
    "schema_id_bytes",
]
