"""The protocols of codecs: `Encoder` for producers, `Decoder` for consumers, `Codec` for both."""

from __future__ import annotations

from collections.abc import Callable
from inspect import iscoroutinefunction
from types import CoroutineType
from typing import Any, Final, Protocol, TypeAlias, TypeVar

from ..wire.errors import ConfigurationError
from .contexts import DecodeContext, EncodeContext, Field

__all__ = [
    "AnyDecoder",
    "AnyEncoder",
    "Codec",
    "Decoder",
    "Encoder",
    "check_not_async",
    "decode_function",
    "encode_function",
    "raise_if_coroutine",
    "takes_null",
]

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
T_contra = TypeVar("T_contra", contravariant=True)


class Encoder(Protocol[T_contra]):
    """Encodes keys or values to bytes.

    A null key or value, None, is sent as null without a call of the encoder, unless the encoder has
    the attribute `takes_null` = True. Only such an encoder may return None for a key or value that
    is not None.
    """

    def encode(self, value: T_contra, context: EncodeContext, /) -> bytes | None:
        """Returns the bytes of `value`, or None for a null; raises any exception if it cannot."""
        ...


class Decoder(Protocol[T_co]):
    """Decodes the bytes of keys or values.

    A null key or value is None without a call of the decoder, unless the decoder has the attribute
    `takes_null` = True; `data` may then be None.
    """

    def decode(self, data: bytes, context: DecodeContext, /) -> T_co:
        """Returns the key or value of which `data` is the bytes; raises any exception if it cannot.

        The record is then undecodable.
        """
        ...


class Codec(Encoder[T], Decoder[T], Protocol[T]):
    """Encodes and decodes keys or values; Kafka's Serde."""


AnyEncoder: TypeAlias = Encoder[T] | Callable[[T, EncodeContext], bytes | None]
"""An encoder, or a function with the arguments of `Encoder.encode`."""

AnyDecoder: TypeAlias = Decoder[T] | Callable[[bytes, DecodeContext], T]
"""A decoder, or a function with the arguments of `Decoder.decode`."""

_HINTS: Final = {
    "encode": "pass an object with encode(value, context), or a function of these arguments",
    "decode": "pass an object with decode(data, context), or a function of these arguments",
}


def encode_function(encoder: AnyEncoder[Any], field: Field) -> Callable[[Any, EncodeContext], Any]:
    """Returns the function that encodes a key or value.

    Raises ConfigurationError for an object that is no encoder, and for an async function; the text
    names the `field`.
    """
    return _function(encoder, "encode", field)


def decode_function(
    decoder: AnyDecoder[Any], field: Field
) -> Callable[[bytes, DecodeContext], Any]:
    """Returns the function that decodes a key or value.

    Raises ConfigurationError for an object that is no decoder, and for an async function; the text
    names the `field`.
    """
    return _function(decoder, "decode", field)


def takes_null(codec: object) -> bool:
    """Returns True if the codec also encodes or decodes nulls."""
    return getattr(codec, "takes_null", False) is True


def _function(codec: object, name: str, field: Field) -> Callable[[Any, Any], Any]:
    if isinstance(codec, type):
        raise ConfigurationError(
            f"{field} is the class {codec.__name__}: pass a codec, such as {codec.__name__}()"
        )
    method = getattr(codec, name, None)
    if callable(method) and not isinstance(codec, str | bytes):  # these have methods of that name
        function: Callable[[Any, Any], Any] = method
    elif callable(codec):
        function = codec
    else:
        raise ConfigurationError(f"{field} is {codec!r:.80}, which is no codec: {_HINTS[name]}")
    check_not_async(function, field)
    return function


def check_not_async(function: Callable[..., Any], field: Field) -> None:
    """Raises ConfigurationError for an async function; the text names the `field`."""
    call = getattr(type(function), "__call__", None)  # noqa: B004 - its kind matters
    if iscoroutinefunction(function) or iscoroutinefunction(call):
        raise ConfigurationError(
            f"{field} has the async function {function!r:.80}: pass a plain function, because no "
            "codec is awaited"
        )


def raise_if_coroutine(result: object) -> None:
    """Raises TypeError if a codec has returned a coroutine, which it closes."""
    if isinstance(result, CoroutineType):
        result.close()
        raise TypeError("the codec returned coroutine: it is an async function, and is not awaited")
