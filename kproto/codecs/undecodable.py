"""`Undecodable`: the record that a consumer yields, if asked to, in place of an undecodable one."""

from __future__ import annotations

from typing import Any, Self

from ..records import Record
from ..wire.errors import UndecodableRecordError

__all__ = ["Undecodable"]


class Undecodable(Record[bytes, bytes]):
    """A record whose key or value a codec of the consumer could not decode.

    Key and value are the bytes as the broker stores them. `error` names the field, and has the
    exception of the codec as its cause. In a share group, it is acknowledged as any other record.
    """

    __slots__ = ("error",)

    error: UndecodableRecordError

    @classmethod
    def of(cls, record: Record, error: UndecodableRecordError) -> Self:
        """Returns the fields of `record`, with the error of its codec."""
        undecodable = cls(record.offset, record.timestamp, record.key, record.value)
        undecodable._headers = record._headers
        undecodable._origin = record._origin
        undecodable.error = error
        return undecodable

    @property
    def delivery_count(self) -> int:
        """How often a member of the share group has acquired the record, counted from 1.

        0 for a record that no share group has delivered.
        """
        return getattr(self._origin, "delivery_count", 0)

    def __reduce__(self) -> tuple[Any, ...]:
        """Returns the fields for pickle and copy, also in pickle protocols 0 and 1."""
        restore, fields, attributes = super().__reduce__()
        return restore, fields, (attributes, {"error": self.error})

    def __repr__(self) -> str:
        return f"Undecodable({super().__repr__()}, {getattr(self, 'error', None)})"
