"""Codecs of keys and values: serializers for producers, deserializers for consumers.

`Client.producer`, `Client.consumer` and `Client.share_consumer` take a codec as `key` and as
`value`. This package imports no client, so the codecs can be used by themselves. A module is loaded
at the first use of one of its names, so that clients without codecs load none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
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

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "SCHEMA_ID_HEADERS": ".schema_id",
            "AnyDecoder": ".protocols",
            "AnyEncoder": ".protocols",
            "BytesCodec": ".basic",
            "Codec": ".protocols",
            "DecodeContext": ".contexts",
            "Decoder": ".protocols",
            "EncodeContext": ".contexts",
            "Encoder": ".protocols",
            "Field": ".contexts",
            "FunctionCodec": ".basic",
            "IntCodec": ".basic",
            "JsonCodec": ".basic",
            "SchemaId": ".contexts",
            "SchemaIdCodec": ".schema_id",
            "StringCodec": ".basic",
            "UuidCodec": ".basic",
            "read_schema_id": ".schema_id",
            "schema_id_bytes": ".schema_id",
        },
    )
