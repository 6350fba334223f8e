"""`RecordEncoder`: applies the codecs of a producer to the records that it sends."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Generic

from ..records.header_block import Header
from ..records.type_variables import K, V
from ..wire.errors import EncodeError
from .basic import FunctionCodec, uses_no_context
from .contexts import KEY, VALUE, EncodeContext, Field
from .protocols import AnyEncoder, check_not_async, encode_function, raise_if_coroutine, takes_null

__all__ = ["RecordEncoder"]


class RecordEncoder(Generic[K, V]):
    """Encodes keys by the codec `key` and values by the codec `value`, the key first.

    Without a codec, keys or values are sent as they are. Raises ConfigurationError for an object
    that is no codec.
    """

    __slots__ = (
        "_encode_key",
        "_encode_value",
        "_is_plain",
        "_key_takes_null",
        "_value_takes_null",
    )

    def __init__(self, key: AnyEncoder[K] | None, value: AnyEncoder[V] | None) -> None:
        # Codecs that use no context are called without one, in a third of the time.
        self._is_plain = all(each is None or uses_no_context(each) for each in (key, value))
        self._encode_key = self._function(key, KEY)
        self._encode_value = self._function(value, VALUE)
        self._key_takes_null = takes_null(key)
        self._value_takes_null = takes_null(value)

    def _function(
        self, codec: AnyEncoder[Any] | None, field: Field
    ) -> Callable[..., bytes | None] | None:
        if codec is None:
            return None
        if self._is_plain and isinstance(codec, FunctionCodec):
            to_bytes: Callable[[Any], bytes] = codec.to_bytes
            check_not_async(to_bytes, field)
            return to_bytes
        return encode_function(codec, field)

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
        field: Field = KEY
        given: Any = key
        try:
            if self._is_plain:
                if key is not None and self._encode_key is not None:
                    key = _checked(self._encode_key(key))
                field, given = VALUE, value
                if value is not None and self._encode_value is not None:
                    value = _checked(self._encode_value(value))
                return key, value, headers
            context = EncodeContext(topic, KEY, _as_list(headers, place), key)
            encode: Any = self._encode_key
            if encode is not None and (key is not None or self._key_takes_null):
                context.key = None
                context.key = _checked(encode(key, context), self._key_takes_null)
            field, given = VALUE, value
            context.field = VALUE
            encode = self._encode_value
            if encode is not None and (value is not None or self._value_takes_null):
                value = _checked(encode(value, context), self._value_takes_null)
        except EncodeError:
            raise
        except Exception as fault:
            raise EncodeError(
                f"a {field} of type {type(given).__name__} cannot be encoded by the codec: "
                f"{type(fault).__name__}: {fault}",
                field=f"{place}{field}",
            ) from fault
        return context.key, value, context.headers


def _as_list(headers: Any, place: str) -> list[Header]:
    """Returns a copy of `headers`. Raises EncodeError if they cannot be iterated."""
    try:
        return list(headers)
    except TypeError:
        raise EncodeError(
            f"headers of type {type(headers).__name__}: pass a list of (name, value)",
            field=f"{place}headers",
        ) from None


def _checked(data: object, may_be_null: bool = False) -> bytes | None:
    if isinstance(data, bytes):
        return data
    if data is None:
        if may_be_null:
            return None
        raise TypeError(
            "the codec returned None, which would make a null, for a value that is not None: a "
            "codec that makes nulls has the attribute takes_null = True"
        )
    raise_if_coroutine(data)
    raise TypeError(f"the codec returned {type(data).__name__}, not bytes or None")
