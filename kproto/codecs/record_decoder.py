"""`RecordDecoder`: applies the codecs of a consumer to its records."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from types import CoroutineType
from typing import Any, Generic, cast

from ..records import Record
from ..records.type_variables import K, U, V
from ..wire.errors import ConfigurationError, UndecodableRecordError
from .basic import FunctionCodec, uses_no_context
from .contexts import KEY, VALUE, DecodeContext, Field
from .protocols import AnyDecoder, check_not_async, decode_function, raise_if_coroutine, takes_null
from .undecodable import Undecodable

__all__ = ["RecordDecoder"]


class RecordDecoder(Generic[K, V, U]):
    """Decodes keys by the codec `key` and values by the codec `value`.

    Without a codec, keys or values stay bytes. `undecodable` is the class of the records that
    `decode` returns for undecodable records; if it is None, `decode` raises
    UndecodableRecordError. Raises ConfigurationError for an object that is no codec, and for a
    class that is not `Undecodable` or derived from it.
    """

    __slots__ = (
        "_decode_key",
        "_decode_value",
        "_is_plain_key",
        "_is_plain_value",
        "_key_takes_null",
        "_undecodable",
        "_value_takes_null",
    )

    def __init__(
        self,
        key: AnyDecoder[K] | None,
        value: AnyDecoder[V] | None,
        undecodable: type[U] | None = None,
    ) -> None:
        if undecodable is not None and not (
            isinstance(undecodable, type) and issubclass(undecodable, Undecodable)
        ):
            raise ConfigurationError(
                f"undecodable is {undecodable!r:.80}; it is kproto.Undecodable, or None to raise "
                "UndecodableRecordError"
            )
        # Codecs that use no context are called without one, in half of the time.
        self._is_plain_key = uses_no_context(key)
        self._is_plain_value = uses_no_context(value)
        self._decode_key = _function(key, KEY)
        self._decode_value = _function(value, VALUE)
        self._key_takes_null = takes_null(key)
        self._value_takes_null = takes_null(value)
        self._undecodable = undecodable

    def decode(self, record: Record) -> Record[K, V] | U:
        """Returns the decoded record, or the `Undecodable` in its place.

        Without `undecodable`, raises UndecodableRecordError for an undecodable record.
        """
        found, error = self._try(record)
        if error is None:
            return found
        if self._undecodable is None:
            raise error
        return self._replacement(record, error)

    def decode_or_raise(self, record: Record) -> Record[K, V]:
        """Returns the decoded record; raises UndecodableRecordError for an undecodable record."""
        found, error = self._try(record)
        if error is not None:
            raise error
        return found

    def decode_list(
        self, records: Sequence[Record]
    ) -> tuple[list[Record[K, V] | U], UndecodableRecordError | None]:
        """Returns the decoded records, up to the first undecodable one, and the error of that one.

        The error is None if all records are decoded. With `undecodable`, this is always the case.
        """
        decoded: list[Record[K, V] | U] = []
        for record in records:
            found, error = self._try(record)
            if error is None:
                decoded.append(found)
            elif self._undecodable is None:
                return decoded, error
            else:
                decoded.append(self._replacement(record, error))
        return decoded, None

    def _try(self, record: Record) -> tuple[Record[K, V], UndecodableRecordError | None]:
        key: Any = record.key
        value: Any = record.value
        field: Field = KEY
        try:
            if self._decode_key is not None and (key is not None or self._key_takes_null):
                if self._is_plain_key:
                    key = self._decode_key(key)
                else:
                    key = self._decode_key(key, DecodeContext(record, KEY))
                if type(key) is CoroutineType:
                    raise_if_coroutine(key)
            field = VALUE
            if self._decode_value is not None and (value is not None or self._value_takes_null):
                if self._is_plain_value:
                    value = self._decode_value(value)
                else:
                    value = self._decode_value(value, DecodeContext(record, VALUE))
                if type(value) is CoroutineType:
                    raise_if_coroutine(value)
        except Exception as fault:  # noqa: BLE001 - a codec may raise anything
            error = UndecodableRecordError(
                f"{type(fault).__name__}: {fault}",
                topic=record.topic,
                partition=record.partition,
                record_offset=record.offset,
                field=field,
                raw=record.key if field == KEY else record.value,
            )
            error.__cause__ = fault
            return cast("Record[K, V]", record), error
        return cast("Record[K, V]", record.converted(key, value)), None

    def _replacement(self, record: Record, error: UndecodableRecordError) -> U:
        kind = cast("type[Undecodable]", self._undecodable)
        undecodable = kind.of(record, error)
        return cast("U", undecodable)


def _function(codec: AnyDecoder[Any] | None, field: Field) -> Callable[..., Any] | None:
    if codec is None:
        return None
    if isinstance(codec, FunctionCodec) and uses_no_context(codec):
        from_bytes: Callable[[bytes], Any] = codec.from_bytes
        check_not_async(from_bytes, field)
        return from_bytes
    return decode_function(codec, field)
