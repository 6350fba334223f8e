"""Tests the rows of a layout table against the bytes that the classes write."""

from __future__ import annotations

import struct

import pytest

from kproto import messages
from kproto.schema.definitions import union
from kproto.schema.layout import FORMATS
from kproto.schema.layout_table import LayoutRow, least_size, message_rows
from kproto.schema.naming import attribute_name, class_name
from kproto.schema.unknown_names import UnknownNameError
from kproto.wire.errors import EncodeError

PAIRS = [(spec.name, version) for spec in union().values() for version in spec.valid_versions]


def test_a_number_is_at_the_offset_of_its_row() -> None:
    looked = 0
    for name, version in PAIRS:
        cls = getattr(messages, class_name(name))
        for row in message_rows(name, version):
            if row.depth or row.offset is None or row.type not in {"int16", "int32", "int64"}:
                continue
            attribute = attribute_name(row.field, of_message=True)
            data = cls(**{attribute: 0x0102}).encode(version)
            assert row.size is not None
            found = data[row.offset : row.offset + row.size]
            assert found == (0x0102).to_bytes(row.size, "big"), (name, version, row.field)
            looked += 1
    assert looked > 800


def test_no_message_is_shorter_than_its_minimum_size() -> None:
    reached = 0
    for name, version in PAIRS:
        size, least = least_size(name, version)
        try:
            written = len(getattr(messages, class_name(name))().encode(version))
        except EncodeError:  # the version cannot encode the field's default
            continue
        assert written >= least, (name, version)
        if size is not None:
            assert written == size == least, (name, version)
        reached += written == least
    assert reached > len(PAIRS) // 2


def rows(name: str, version: int) -> dict[str, LayoutRow]:
    return {row.field: row for row in message_rows(name, version)}


def test_offsets_in_an_element_start_at_the_element() -> None:
    found = rows("FetchResponse", 4)
    assert [found[name].offset for name in ("ThrottleTimeMs", "Responses")] == [0, 4]
    partition = found["Responses.Partitions.LastStableOffset"]
    assert (partition.offset, partition.counts_from) == (14, "Responses.Partitions")
    assert partition.size == struct.calcsize(f">{FORMATS['int64']}")
    assert found["Responses.Partitions.Records"].offset is None
    assert found["Responses.Partitions.AbortedTransactions"].nullable


def test_rows_have_tags_types_and_defaults() -> None:
    found = rows("FetchRequest", 18)
    assert (found["ClusterId"].tag, found["ClusterId"].default) == (0, "null")
    assert (found["ClusterId"].offset, found["ClusterId"].type) == (None, "compact string")
    assert found["ReplicaState"].type == "ReplicaState"
    assert found["ReplicaState.ReplicaEpoch"].counts_from == "ReplicaState"
    assert found["MaxBytes"].default == "2147483647"
    assert found["Topics"].type == "compact []FetchTopic"
    assert found["Topics.TopicId"].default == "zero"
    assert (found["RackId"].least, found["RackId"].size) == (1, None)
    assert all(row.meaning for row in found.values())


def test_a_version_without_fields_has_no_rows() -> None:
    assert message_rows("ApiVersionsRequest", 0) == ()
    assert least_size("ApiVersionsRequest", 0) == (0, 0)


def test_unknown_messages_and_versions_raise_an_error() -> None:
    with pytest.raises(UnknownNameError, match="FetchRequest has no version 99: it has 0-18"):
        message_rows("FetchRequest", 99)
