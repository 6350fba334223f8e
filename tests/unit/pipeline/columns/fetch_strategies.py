"""Draws the records of fetch responses: batches of every format, as bytes.

`record_bytes` or kproto encodes the batches.
"""

from __future__ import annotations

from hypothesis import strategies as st

from kproto.records import NewRecord, RecordBatch, encode_batch, encode_message_set, restamp
from tests.unit.pipeline.columns.record_bytes import (
    CONTROL,
    GZIP,
    LOG_APPEND_TIME,
    PlainRecord,
    batch_bytes,
)

__all__ = ["CODEC_NAMES", "T", "compressed", "fetches", "headers", "records", "stored"]

T = 1_767_225_600_000

CODEC_NAMES = ["gzip", "snappy", "lz4", "zstd"]

names = st.one_of(
    st.sampled_from([b"ce_id", b"ce_type", b"content-type"]), st.text(max_size=5).map(str.encode)
)
contents = st.one_of(st.none(), st.binary(max_size=8), st.binary(min_size=60, max_size=300))
headers = st.lists(st.tuples(names, contents), max_size=4).map(tuple)
text_headers = headers.map(lambda some: [(name.decode(), content) for name, content in some])


def compressed(codec: str, value: bytes, first: int, count: int = 3) -> bytes:
    """Returns a batch of `count` equal records from offset `first`."""
    rows: list[NewRecord] = [(b"k", value, [("h", value)], T)] * count
    batch = encode_batch(rows, compression=codec)
    return restamp(RecordBatch(batch), base_offset=first)


@st.composite
def records(draw: st.DrawFn, shared: bool) -> list[PlainRecord]:
    """Draws the records of one batch, with offset gaps; if `shared`, all have equal headers."""
    count = draw(st.integers(0, 6))
    same = draw(headers) if shared else None
    offset = -1
    found = []
    for _ in range(count):
        offset += draw(st.sampled_from([1, 1, 1, 7, 200]))
        found.append(
            PlainRecord(
                offset,
                draw(st.sampled_from([0, 1, -1, 70, 10_000, -(2**40), 2**33])),
                draw(contents),
                draw(contents),
                draw(headers) if same is None else same,
            )
        )
    return found


@st.composite
def fetches(draw: st.DrawFn, max_batches: int = 5) -> bytes:
    """Draws up to `max_batches` batches of magic 2; the last batch is sometimes truncated."""
    parts = []
    base = draw(st.sampled_from([0, 5, 2**40]))
    for _ in range(draw(st.integers(0, max_batches))):
        inside = draw(records(shared=draw(st.booleans())))
        last = max((record.offset for record in inside), default=0) + draw(st.integers(0, 2))
        parts.append(
            batch_bytes(
                inside,
                base_offset=base,
                attributes=draw(st.sampled_from([0, 0, LOG_APPEND_TIME, GZIP, CONTROL])),
                last_offset_delta=last,
            )
        )
        base += last + 1
    if draw(st.booleans()) and parts:
        parts[-1] = parts[-1][: draw(st.integers(0, len(parts[-1]) - 1))]
    return b"".join(parts)


@st.composite
def stored(draw: st.DrawFn) -> bytes:
    """Draws batches that kproto builds: every codec and magic, transactions, control batches."""
    parts = []
    offset = draw(st.sampled_from([0, 7, 2**33]))
    for _ in range(draw(st.integers(0, 5))):
        shared = draw(text_headers)
        count = draw(st.integers(1, 6))
        rows: list[NewRecord] = [
            (
                draw(contents),
                draw(contents),
                draw(st.sampled_from([shared, shared, [], draw(text_headers)])),
                draw(st.sampled_from([T, T + 1, T - 1, T + 100_000, -1, 0, 2**63 - 1])),
            )
            for _ in range(count)
        ]
        append_time = draw(st.sampled_from([None, T + 5]))
        if draw(st.booleans()):
            batch = encode_batch(
                rows,
                compression=draw(st.sampled_from(["none", "gzip", "snappy", "lz4", "zstd"])),
                is_transactional=draw(st.booleans()),
                is_control=draw(st.sampled_from([False, False, False, True])),
            )
            parts.append(
                restamp(RecordBatch(batch), base_offset=offset, log_append_time=append_time)
            )
        else:
            magic = draw(st.sampled_from([0, 1]))
            parts.append(
                encode_message_set(
                    [(key, value, (), timestamp) for key, value, _, timestamp in rows],
                    magic=magic,
                    compression=draw(st.sampled_from(["none", "gzip", "snappy", "lz4"])),
                    log_append_time=append_time if magic else None,
                    base_offset=offset,
                )
            )
        offset += count + draw(st.sampled_from([0, 0, 3]))
    if draw(st.booleans()) and parts:
        parts[-1] = parts[-1][: draw(st.integers(0, len(parts[-1]) - 1))]
    return b"".join(parts)
