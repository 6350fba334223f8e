"""Draws records, and builds batches with any header fields."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from kproto.records import NewRecord, Record, crc32c
from kproto.records.magic2 import record_batch as batch_module
from kproto.records.magic2.batch_header import HEADER_FROM_ATTRIBUTES, HEADER_TO_CRC
from kproto.records.varints import encode_varint

#: True if mypyc has compiled the modules under test; compiled code checks types itself.
COMPILED = not str(batch_module.__file__).endswith(".py")

T = 1_767_225_600_000

small = st.binary(max_size=20)
sized = st.one_of(
    small,
    st.builds(
        lambda size, fill: bytes([fill]) * size,
        st.sampled_from([63, 64, 127, 128, 8191, 8192, 20_000]),
        st.integers(0, 255),
    ),
)
names = st.one_of(st.sampled_from(["ce_id", "ce_type", "", "é√😀"]), st.text(max_size=8))
headers = st.lists(st.tuples(names, st.none() | sized), max_size=7)
timestamps = st.one_of(
    st.integers(T - 200, T + 20_000), st.just(-1), st.integers(-1, 0x7FFFFFFFFFFFFFFF)
)
new_records = st.lists(
    st.tuples(st.none() | sized, st.none() | sized, headers, timestamps), min_size=1, max_size=20
)


def contents(records: list[Record]) -> list[NewRecord]:
    """Converts decoded records to `NewRecord`s with the same content."""
    return [(r.key, r.value, r.headers, r.timestamp) for r in records]


def record_bytes(
    *,
    timestamp_delta: bytes = b"\x00",
    offset_delta: bytes = b"\x00",
    key: bytes = b"\x02k",
    value: bytes = b"\x02v",
    header_block: bytes = b"\x00",
    length: int | None = None,
) -> bytes:
    """Returns an encoded record with these parts; `length` replaces the correct length."""
    body = b"".join((b"\x00", timestamp_delta, offset_delta, key, value, header_block))
    return encode_varint(len(body) if length is None else length) + body


def batch_bytes(payload: bytes, **fields: Any) -> bytes:
    """Returns a batch with `payload` as its records, and a correct checksum.

    `fields` are header fields with the names that RecordBatch has.
    """
    checked = HEADER_FROM_ATTRIBUTES.pack(
        fields.get("attributes", 0),
        fields.get("last_offset_delta", 0),
        fields.get("base_timestamp", T),
        fields.get("max_timestamp", T),
        fields.get("producer_id", -1),
        fields.get("producer_epoch", -1),
        fields.get("base_sequence", -1),
        fields.get("record_count", 1),
    )
    unchecked = HEADER_TO_CRC.pack(
        fields.get("base_offset", 0),
        fields.get("length", 49 + len(payload)),
        fields.get("partition_leader_epoch", -1),
        fields.get("magic", 2),
        fields.get("crc", crc32c(checked + payload)),
    )
    return unchecked + checked + payload
