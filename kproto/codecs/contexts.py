"""The contexts of codecs: the topic, the field, and the headers of the record.

The attributes `topic`, `field` and `headers` have the names and types of confluent-kafka's
SerializationContext, so its serializers and deserializers accept these contexts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from ..records import Record
from ..records.header_block import Header

if TYPE_CHECKING:
    from uuid import UUID

__all__ = ["KEY", "VALUE", "DecodeContext", "EncodeContext", "Field", "SchemaId"]

Field: TypeAlias = Literal["key", "value"]
"""The field of a record that a codec encodes or decodes."""

SchemaId: TypeAlias = "int | UUID"
"""The id of a schema in a schema registry: an int, or the GUID of the schema."""

KEY: Final = "key"
VALUE: Final = "value"


class EncodeContext:
    """The record that a codec encodes a key or value for.

    - `topic`: the topic of the record; `field`: "key" or "value";
    - `headers`: the headers of the record, a list; a codec may append headers to it;
    - `key`: the encoded key. The key is encoded before the value, and the codec of the value may
      replace the key;
    - `schema_id`: the id that `SchemaIdCodec` writes, if the codec inside of it has set one.
    """

    __slots__ = ("field", "headers", "key", "schema_id", "topic")

    def __init__(
        self,
        topic: str,
        field: Field,
        headers: list[Header] | None = None,
        key: bytes | None = None,
    ) -> None:
        self.topic = topic
        self.field: Field = field
        self.headers: list[Header] = [] if headers is None else headers
        self.key = key
        self.schema_id: SchemaId | None = None


class DecodeContext:
    """The record whose key or value a codec decodes.

    `field` is "key" or "value", and `record` is the record with its bytes. `schema_id` is the id
    that `SchemaIdCodec` has read; None outside of it.
    """

    __slots__ = ("field", "record", "schema_id")

    def __init__(
        self, record: Record[Any, Any], field: Field, schema_id: SchemaId | None = None
    ) -> None:
        self.record = record
        self.field: Field = field
        self.schema_id = schema_id

    @property
    def topic(self) -> str:
        """The topic of the record."""
        return self.record.topic

    @property
    def headers(self) -> list[Header]:
        """The headers of the record: (name, value or None), in order.

        They are decoded at the first access. Raises CorruptBatchError if they are corrupt.
        """
        return self.record.headers
