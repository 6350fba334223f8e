"""Codecs of keys and values: serializers for producers, deserializers for consumers.

`Client.producer`, `Client.consumer` and `Client.share_consumer` take a codec as `key` and as
`value`. This package imports no client, so the codecs can be used by themselves. A module is loaded
at the first use of one of its names, so that clients without codecs load none of them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

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

#: The modules of the names that are not in `basic`.
_MODULES: Final = {
    **dict.fromkeys(("DecodeContext", "EncodeContext", "Field", "SchemaId"), "contexts"),
    **dict.fromkeys(("AnyDecoder", "AnyEncoder", "Codec", "Decoder", "Encoder"), "protocols"),
    **dict.fromkeys(
        ("SCHEMA_ID_HEADERS", "SchemaIdCodec", "read_schema_id", "schema_id_bytes"), "schema_id"
    ),
}


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"{__name__} has no public name {name!r}")
    found = getattr(import_module(f".{_MODULES.get(name, 'basic')}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
