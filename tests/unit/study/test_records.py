"""Tests trees of record batches and message sets: they show every record and every fault."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kproto.messages import FetchResponse, ProduceRequest
from kproto.messages.fetch_response import FetchableTopicResponse, PartitionData
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.records import (
    NO_TIMESTAMP,
    Record,
    encode_batch,
    encode_message_set,
    read_batches,
)
from kproto.study import Node, annotate, annotate_records, faults, nodes
from kproto.testing.strategies import record_batches
from kproto.wire.errors import CorruptBatchError
from tests.support.environment import ROOT
from tests.support.examples import examples
from tests.support.selection import rest_slow
from tests.unit.messages.test_broken_bytes import mutations

from .agreement import check_every_byte

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
GOLDEN = ROOT / "tests" / "unit" / "records"


def some_records(count: int = 3) -> list[tuple[bytes | None, bytes | None, list[object], int]]:
    return [
        (
            b"key" if index % 2 else None,
            b"v" * index * 40,
            [("h", b"1"), ("n", None)],
            1_700_000_000_000 + index,
        )
        for index in range(count)
    ]


def batch(compression: str = "none", count: int = 3, **more: object) -> bytes:
    return encode_batch(some_records(count), compression=compression, **more)  # type: ignore[arg-type]


def shown(root: Node) -> list[tuple[object, ...]]:
    """Returns offset, key, value and headers of each magic 2 record that the tree shows."""
    found: list[tuple[object, ...]] = []
    for node in nodes(root):
        if node.kind == "record":
            headers = [
                (header.child("key").value, header.child("value").value)
                for header in node.child("headers").children
            ]
            key, value = node.child("key").value, node.child("value").value
            found.append((node.value, key, value, headers))
    return found


def decoded(data: bytes) -> list[tuple[object, ...]]:
    return [
        (record.offset, record.key, record.value, record.headers)
        for one in read_batches(data)
        for record in one.records(eager_headers=True)
    ]


def is_broken(data: bytes) -> bool:
    """Returns whether the classes of kproto.records refuse the bytes."""
    try:
        for one in read_batches(data):
            one.records(eager_headers=True)
    except CorruptBatchError:
        return True
    return False


def broken_records(data: bytes, source: random.Random, count: int) -> Iterator[bytes]:
    """Yields mutations of the bytes, some with a corrected checksum."""
    from kproto.records import crc32c

    for changed in mutations(data, source, count):
        yield changed
        if len(changed) > 61 and changed[16] == 2:
            length = int.from_bytes(changed[8:12], "big", signed=True)
            end = 12 + length
            if 61 <= end <= len(changed):
                right = crc32c(changed[21:end]).to_bytes(4, "big")
                yield changed[:17] + right + changed[21:]


@pytest.mark.parametrize("compression", CODECS)
def test_every_record_is_there(compression: str) -> None:
    data = batch(compression) + batch(compression, 20, base_offset=3)
    root = annotate_records(data)
    assert faults(root) == []
    assert shown(root) == decoded(data)
    check_every_byte(root, data)
    compressed = [node for node in nodes(root) if node.buffer]
    assert bool(compressed) == (compression != "none")
    for node in compressed:
        assert node.buffer in ("records[0].records", "records[1].records")


@settings(max_examples=examples(60), deadline=None)
@given(record_batches())
def test_any_batch(data: bytes) -> None:
    root = annotate_records(data)
    assert shown(root) == decoded(data)
    assert faults(root) == []
    check_every_byte(root, data)


def test_golden_batches() -> None:
    for case in json.loads((GOLDEN / "golden.json").read_text(encoding="utf-8"))["cases"]:
        data = bytes.fromhex(case["hex"])
        root = annotate_records(data)
        assert faults(root) == []
        assert len(root.children) == len(case["batches"]) > 0
        check_every_byte(root, data)


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("compression", CODECS[:4])
def test_message_sets(magic: int, compression: str) -> None:
    records = [(b"k", b"v" * index, (), NO_TIMESTAMP) for index in range(5)]
    data = encode_message_set(records, magic=magic, compression=compression)
    root = annotate_records(data)
    assert faults(root) == []
    leaves = [node for node in nodes(root) if node.kind == "message"]
    assert [node.child("value").value for node in leaves] == [b"v" * index for index in range(5)]
    check_every_byte(root, data)


@pytest.mark.parametrize("compression", rest_slow(CODECS, 1))
def test_a_fault_is_found_where_the_records_are_refused(compression: str) -> None:
    source = random.Random(compression)
    sets = [batch(compression, 4)]
    if compression != "zstd":
        some = [(b"k", b"value", (), NO_TIMESTAMP)] * 4
        sets += [encode_message_set(some, magic=magic, compression=compression) for magic in (0, 1)]
    for data in sets:
        for changed in broken_records(data, source, 250):
            root = annotate_records(changed)
            assert bool(faults(root)) == is_broken(changed), changed.hex()
            check_every_byte(root, changed)


def test_records_out_of_their_place_are_faults() -> None:
    data = bytearray(batch("none", 4))
    data[26] -= 1  # the last offset delta allows one record less
    (fault,) = (each for each in faults(annotate_records(bytes(data))) if "CRC" not in each.reason)
    assert fault.reason.startswith("4 records, but a last offset delta of")


def test_a_wrong_checksum_does_not_hide_the_records() -> None:
    data = bytearray(batch())
    data[17] ^= 1
    root = annotate_records(bytes(data))
    (fault,) = faults(root)
    assert fault.path == "records[0].crc"
    assert fault.offset == 17
    assert fault.reason.startswith("CRC is 0x")
    assert len(shown(root)) == 3


def test_a_cut_batch_is_a_fault_in_a_request_alone() -> None:
    whole = batch()
    fetched = FetchResponse(
        responses=[
            FetchableTopicResponse(
                topic="t", partitions=[PartitionData(records=whole + whole[:-1])]
            )
        ]
    )
    root = annotate(fetched.encode(12), FetchResponse, 12)
    assert faults(root) == []
    assert [node.kind for node in nodes(root) if node.kind == "cut batch"] == ["cut batch"]
    sent = ProduceRequest(
        topic_data=[
            TopicProduceData(
                name="t", partition_data=[PartitionProduceData(records=whole + whole[:-1])]
            )
        ]
    )
    (fault,) = faults(annotate(sent.encode(9), ProduceRequest, 9))
    assert fault.layer == "records"
    assert fault.path == "topic_data[0].partition_data[0].records[1]"


def test_decompression_is_bounded() -> None:
    large = encode_batch([(None, bytes(1_000_000), (), 0)], compression="gzip")
    root = annotate_records(large * 3, max_decompressed_bytes=1_500_000)
    found = faults(root)
    assert len(found) == 2
    assert all("bound" in fault.reason for fault in found)


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=120))
def test_any_bytes_are_records_or_have_a_fault(data: bytes) -> None:
    root = annotate_records(data)
    assert bool(faults(root)) == is_broken(data)
    check_every_byte(root, data)


def test_meanings_of_a_batch() -> None:
    root = annotate_records(batch("gzip", base_offset=7))
    first = root.children[0]
    assert first.child("attributes").meaning == "compression gzip"
    assert first.child("base_timestamp").meaning == "2023-11-14T22:13:20.000Z"
    assert first.child("producer_id").meaning == "none"
    record = first.child("records").children[2]
    assert record.child("offset_delta").meaning == "offset 9"
    assert record.child("timestamp_delta").meaning == "2023-11-14T22:13:20.002Z"


def test_a_record_of_the_tree_is_one_of_kproto() -> None:
    (one,) = read_batches(batch())
    record: Record = one.records()[1]
    node = annotate_records(batch()).children[0].child("records").children[1]
    assert (node.value, node.child("key").value) == (record.offset, record.key)
