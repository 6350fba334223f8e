"""Compares `SchemaIdCodec` with the serializers of another package: `schema_ids.py PACKAGE URL`.

Writes a record with each, compares bytes and headers, and reads each with the other.
"""

from __future__ import annotations

import sys
from typing import Any
from uuid import UUID

from kproto import Record
from kproto.codecs import DecodeContext, EncodeContext, FunctionCodec, SchemaIdCodec

SCHEMA = {"type": "record", "name": "Note", "fields": [{"name": "text", "type": "string"}]}
TEXT = '{"type": "record", "name": "Note", "fields": [{"name": "text", "type": "string"}]}'
VALUE = {"text": "two cups"}

#: Avro of a record with one short text: its length in zigzag form, and its bytes.
AVRO: FunctionCodec[dict[str, str]] = FunctionCodec(
    lambda value: bytes([2 * len(value["text"])]) + value["text"].encode(),
    lambda data: {"text": data[1:].decode()},
)


def confluent(url: str, *, in_header: bool) -> tuple[Any, Any]:
    """Returns the serializer and the deserializer of confluent-kafka."""
    from confluent_kafka.schema_registry import (
        SchemaRegistryClient,
        header_schema_id_serializer,
    )
    from confluent_kafka.schema_registry.avro import AvroDeserializer, AvroSerializer

    registry = SchemaRegistryClient({"url": url})
    conf = {"schema.id.serializer": header_schema_id_serializer} if in_header else {}
    return AvroSerializer(registry, TEXT, conf=conf), AvroDeserializer(registry)


def registry_client(url: str) -> tuple[Any, Any]:
    """Returns the functions of python-schema-registry-client, with the arguments of codecs."""
    from schema_registry.client import SchemaRegistryClient, schema
    from schema_registry.serializers import AvroMessageSerializer

    serializer = AvroMessageSerializer(SchemaRegistryClient(url))
    avro = schema.AvroSchema(SCHEMA)
    return (
        lambda value, context: serializer.encode_record_with_schema("notes-value", avro, value),
        lambda data, context: serializer.decode_message(data),
    )


def main() -> None:
    package, url = sys.argv[1:]
    in_header = package.endswith("_header")
    if package.startswith("confluent_kafka"):
        encode, decode = confluent(url, in_header=in_header)
    else:
        encode, decode = registry_client(url)
    theirs = EncodeContext("notes", "value")
    their_data = encode(VALUE, theirs)
    ours = EncodeContext("notes", "value")
    # The registry of the test gives its first schema this id, and this GUID.
    codec = SchemaIdCodec(AVRO, UUID(int=1) if in_header else 1, in_header=in_header)
    our_data = codec.encode(VALUE, ours)
    assert (our_data, ours.headers) == (their_data, theirs.headers), (their_data, theirs.headers)
    read = DecodeContext(Record(topic="notes", headers=ours.headers), "value")
    assert decode(our_data, read) == VALUE == codec.decode(their_data, read)
    print("equal")


if __name__ == "__main__":
    main()
