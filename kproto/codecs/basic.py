"""Codecs of bytes, text, whole numbers, UUIDs and JSON; `FunctionCodec` for functions of your own.

All of them ignore topic and headers. Text, numbers and UUIDs have the forms of Kafka's serializers
of Java, so Java programs read them.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from struct import Struct
from typing import Any, Final, Generic, Literal, NoReturn, TypeVar, overload
from uuid import UUID

from ..wire.errors import ConfigurationError
from .contexts import DecodeContext, EncodeContext
from .protocols import takes_null

__all__ = [
    "BytesCodec",
    "FunctionCodec",
    "IntCodec",
    "JsonCodec",
    "StringCodec",
    "UuidCodec",
    "uses_no_context",
]

T = TypeVar("T")

_INTEGERS: Final = {2: Struct(">h"), 4: Struct(">i"), 8: Struct(">q")}
_UUID_BYTES: Final = 16


class FunctionCodec(Generic[T]):
    """Encodes by one function, and decodes by another; both see the key or value alone.

    `to_bytes` returns the bytes of a key or value, `from_bytes` the key or value of bytes. A null
    passes by both functions.
    """

    __slots__ = ("from_bytes", "to_bytes")

    def __init__(self, to_bytes: Callable[[T], bytes], from_bytes: Callable[[bytes], T]) -> None:
        self.to_bytes = to_bytes
        self.from_bytes = from_bytes

    def encode(self, value: T, context: EncodeContext, /) -> bytes:
        """Returns the bytes of `value`; raises the error of `to_bytes`."""
        return self.to_bytes(value)

    def decode(self, data: bytes, context: DecodeContext, /) -> T:
        """Returns the key or value of `data`; raises the error of `from_bytes`."""
        return self.from_bytes(data)


def uses_no_context(codec: object) -> bool:
    """Returns True for a `FunctionCodec` whose methods call its two functions and nothing else."""
    kind = type(codec)
    return (
        isinstance(codec, FunctionCodec)
        and kind.encode is FunctionCodec.encode  # type: ignore[attr-defined]
        and kind.decode is FunctionCodec.decode  # type: ignore[attr-defined]
        and not takes_null(codec)
    )


class BytesCodec(FunctionCodec[bytes]):
    """Leaves bytes as they are; encoding any other type raises TypeError."""

    __slots__ = ()

    def __init__(self) -> None:
        super().__init__(_checked_bytes, bytes)


class StringCodec(FunctionCodec[str]):
    """Encodes text, by default as UTF-8; bytes that are not in the encoding raise UnicodeError.

    Raises ConfigurationError for an unknown encoding. Java: StringSerializer.
    """

    __slots__ = ()

    def __init__(self, encoding: str = "utf-8") -> None:
        try:
            "".encode(encoding)
        except (LookupError, TypeError) as error:
            raise ConfigurationError(f"encoding is {encoding!r:.80}: {error}") from None
        if encoding == "utf-8":  # the frequent case, without further calls
            super().__init__(str.encode, bytes.decode)
        else:
            super().__init__(
                lambda text: str.encode(text, encoding), lambda data: str(data, encoding)
            )


class IntCodec(FunctionCodec[int]):
    """Encodes a signed big-endian whole number of `size` bytes: 2, 4 or 8.

    A number that is out of range, and data of another size, raise struct.error. Java:
    LongSerializer for 8 bytes, IntegerSerializer for 4, ShortSerializer for 2. Raises
    ConfigurationError for another size.
    """

    __slots__ = ()

    def __init__(self, size: Literal[2, 4, 8] = 8) -> None:
        form = _INTEGERS.get(size)
        if form is None:
            raise ConfigurationError(f"size is {size!r:.80}; it is 2, 4 or 8")
        unpack = form.unpack
        super().__init__(form.pack, lambda data: int(unpack(data)[0]))


class UuidCodec(FunctionCodec[UUID]):
    """Encodes a UUID as its text of 36 characters, as Java's UUIDSerializer does.

    With `binary`, encodes a UUID as its 16 bytes. Data of another form raise ValueError.
    """

    __slots__ = ()

    def __init__(self, *, binary: bool = False) -> None:
        if binary:
            super().__init__(_uuid_bytes, lambda data: UUID(bytes=data))
        else:
            super().__init__(_uuid_text, lambda data: UUID(str(data, "ascii")))


class JsonCodec(FunctionCodec[T]):
    """Encodes JSON in UTF-8, without spaces; NaN and infinity are refused, as JSON has none.

    `to_json` converts a key or value to what `json.dumps` accepts, and `from_json` converts what
    `json.loads` returns; by default they are left as they are. JSON's null is None, but None is
    sent as a null of Kafka, not as JSON.
    """

    __slots__ = ()

    @overload
    def __init__(self: JsonCodec[Any]) -> None: ...

    @overload
    def __init__(self, *, to_json: Callable[[T], Any], from_json: Callable[[Any], T]) -> None: ...

    def __init__(
        self,
        *,
        to_json: Callable[[T], Any] | None = None,
        from_json: Callable[[Any], T] | None = None,
    ) -> None:
        super().__init__(
            _json_bytes if to_json is None else lambda value: _json_bytes(to_json(value)),
            _json_value if from_json is None else lambda data: from_json(_json_value(data)),
        )


def _checked_bytes(value: bytes) -> bytes:
    if not isinstance(value, bytes):
        raise TypeError(f"{type(value).__name__} is not bytes")
    return value


def _uuid_text(value: UUID) -> bytes:
    return str(_checked_uuid(value)).encode()


def _uuid_bytes(value: UUID) -> bytes:
    return _checked_uuid(value).bytes


def _checked_uuid(value: UUID) -> UUID:
    if not isinstance(value, UUID):
        raise TypeError(f"{type(value).__name__} is not uuid.UUID")
    return value


_encode_json: Final = json.JSONEncoder(
    ensure_ascii=False, allow_nan=False, separators=(",", ":")
).encode


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")


_decode_json: Final = json.JSONDecoder(parse_constant=_refuse_constant).decode


def _json_bytes(value: object) -> bytes:
    return _encode_json(value).encode()


def _json_value(data: bytes) -> Any:
    return _decode_json(str(data, "utf-8"))
