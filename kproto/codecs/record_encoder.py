"""`RecordEncoder`: applies the codecs of a producer to the records that it sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeAlias

from ..records.header_block import Header
from ..records.type_variables import K, V
from ..wire.errors import EncodeError
from .basic import FunctionCodec
from .contexts import KEY, VALUE, EncodeContext, Field
from .protocols import AnyEncoder, encode_function, takes_null

__all__ = ["RecordEncoder"]

_EncodeField: TypeAlias = Callable[[Any, EncodeContext], bytes | None]


class RecordEncoder(Generic[K, V]):
    """Encodes keys by the codec `key` and values by the codec `value`, the key first.

    Without a codec, keys or values are sent as they are. Raises ConfigurationError for an object
    that is no codec.
    """

    __slots__ = ("_encode_key", "_encode_value", "_key_takes_null", "_value_takes_null")

    def __init__(self, key: AnyEncoder[K] | None, value: AnyEncoder[V] | None) -> None:
        self._encode_key = None if key is None else _field_function(key, KEY)
        self._encode_value = None if value is None else _field_function(value, VALUE)
        self._key_takes_null = takes_null(key)
        self._value_takes_null = takes_null(value)

    def encode(
        self,
        topic: str,
        key: Any,
        value: Any,
        headers: Sequence[Header],
        place: str = "",
    ) -> tuple[bytes | None, bytes | None, Sequence[Header]]:
        """Returns the key, value and headers of a record that is sent to `topic`.

        Codecs get a copy of `headers`, and may add headers to it. Raises EncodeError if a codec
        raises: the text begins with `place`, which names the record, and with the field; the cause
        is the exception of the codec.
        """
        encode_key, encode_value = self._encode_key, self._encode_value
        try:
            context = EncodeContext(topic, KEY, list(headers))
        except TypeError:
            raise EncodeError(
                f"headers of type {type(headers).__name__}: pass a list of (name, value)",
                field=f"{place}headers",
            ) from None
        field: Field = KEY
        given: Any = key
        try:
            if encode_key is not None and (key is not None or self._key_takes_null):
                key = _checked(encode_key(key, context))
            field, given = VALUE, value
            context.field, context.key = VALUE, key
            if encode_value is not None and (value is not None or self._value_takes_null):
                value = _checked(encode_value(value, context))
        except Exception as fault:
            raise EncodeError(
                f"a {field} of type {type(given).__name__} cannot be encoded by the codec: "
                f"{type(fault).__name__}: {fault}",
                field=f"{place}{field}",
            ) from fault
        return context.key, value, context.headers


def _checked(data: object) -> bytes | None:
    if data is None or isinstance(data, bytes):
        return data
    raise TypeError(f"the codec returned {type(data).__name__}, not bytes or None")


def _field_function(codec: AnyEncoder[Any], field: Field) -> _EncodeField:
    """Returns the function that encodes a field in a context."""
    if isinstance(codec, FunctionCodec) and type(codec).encode is FunctionCodec.encode:
        to_bytes: Callable[[Any], bytes] = codec.to_bytes
        return lambda value, context: to_bytes(value)
    return encode_function(codec, field)
