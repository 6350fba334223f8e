"""Compares the columnar decoder with a plain loop: a whole fetch response into Arrow arrays.

    python -m tools.bench.columnar [--records 50000] [--rounds 9]

The plain loop is the usual code: it reads the batches, decodes record by record with headers,
collects one list per column, and passes the lists to `pa.array`. Both sides verify the CRC of each
batch with the same function, and a check ensures that they produce the same Arrow record batch.
Batches have 16 KB before compression, the default of Kafka's producer, unless the table names
another size. The sides alternate; the result is the median of the ratios of neighboring rounds.

Both sides decompress by the same library calls. For compressed batches, the table also has the time
of the decompression alone, measured in the same rounds with one output buffer, and the ratio of
both sides without the time of the decompression.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

import pyarrow as pa
from kproto_pipeline.columns import RECORD_SCHEMA, arrow_batches, records_as_arrow

from kproto.records import RecordBatch, encode_batches, read_batches, restamp
from kproto.records.codecs.compression import codec_for_name
from kproto.records.magic2.batch_header import HEADER_BYTES
from kproto.records.magic2.crc import CRC32C_IMPLEMENTATION

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from kproto.records import Codec, NewRecord

TIMESTAMP: Final = 1_767_225_600_000
BATCH_BYTES: Final = 16_384
LARGE_BATCH_BYTES: Final = 1 << 20
TOPIC: Final = "flights"
PARTITION: Final = 3
WANTED: Final = 8.0


class EncodedFetchResponse(NamedTuple):
    """A fetch response to decode, and the name of its row in the table."""

    name: str
    data: bytes


def cloudevents_headers(number: int, rng: random.Random) -> list[tuple[str, bytes]]:
    """Returns the six headers of a CloudEvent in binary mode."""
    return [
        ("ce_specversion", b"1.0"),
        ("ce_id", f"{number:08x}-{rng.getrandbits(32):08x}".encode()),
        ("ce_source", b"https://example.com/airports/EWR"),
        ("ce_type", b"com.example.flight.departed"),
        ("ce_time", f"2026-01-01T05:{number // 60 % 60:02}:{number % 60:02}Z".encode()),
        ("content-type", b"application/json"),
    ]


def plain_records(count: int) -> Iterator[NewRecord]:
    """Yields records with 8-byte keys and 100-byte values, without headers."""
    rng = random.Random(1)
    for number in range(count):
        yield b"%08d" % number, rng.randbytes(100), (), TIMESTAMP + number // 4


def event_records(count: int) -> Iterator[NewRecord]:
    """Yields CloudEvents with six headers, and values that compress like JSON."""
    rng = random.Random(2)
    for number in range(count):
        value = b'{"number":%09d,"tail":"N%05d","text":"%s"}' % (
            number,
            rng.randrange(100_000),
            b"departed " * 7,
        )
        yield b"%08d" % number, value, cloudevents_headers(number, rng), TIMESTAMP + number // 4


def null_records(count: int) -> Iterator[NewRecord]:
    """Yields records in which every second key, third value and fourth header `trace` is null."""
    rng = random.Random(3)
    for number in range(count):
        key = None if number % 2 else b"%08d" % number
        value = None if number % 3 == 0 else rng.randbytes(100)
        trace = None if number % 4 == 0 else rng.randbytes(16)
        yield key, value, [("trace", trace), ("retries", b"0")], TIMESTAMP + number // 4


def mixed_records(count: int) -> Iterator[NewRecord]:
    """Yields records with zero to seven headers of different lengths."""
    rng = random.Random(4)
    for number in range(count):
        headers = cloudevents_headers(number, rng)[: rng.randrange(7)]
        if rng.random() < 0.5:
            headers.insert(0, ("trace", rng.randbytes(rng.randrange(40))))
        yield b"%08d" % number, rng.randbytes(100), headers, TIMESTAMP + number // 4


def fetch_bytes(
    records: Iterable[NewRecord], compression: str = "none", batch_bytes: int = BATCH_BYTES
) -> bytes:
    """Returns consecutive batches with the records, with offsets as a broker assigns them."""
    parts = []
    offset = 0
    for batch, count in encode_batches(records, max_bytes=batch_bytes, compression=compression):
        parts.append(restamp(RecordBatch(batch), base_offset=offset))
        offset += count
    return b"".join(parts)


def fetches(count: int) -> Iterator[EncodedFetchResponse]:
    """Yields the fetch response of each row of the table, with `count` records."""
    yield EncodedFetchResponse("no headers", fetch_bytes(plain_records(count)))
    yield EncodedFetchResponse("six headers", fetch_bytes(event_records(count)))
    large = fetch_bytes(event_records(count), batch_bytes=LARGE_BATCH_BYTES)
    yield EncodedFetchResponse("six headers, 1 MB batches", large)
    yield EncodedFetchResponse("two headers, nulls", fetch_bytes(null_records(count)))
    yield EncodedFetchResponse("mixed header sets", fetch_bytes(mixed_records(count)))
    for codec in ("gzip", "snappy", "lz4", "zstd"):
        yield EncodedFetchResponse(
            f"six headers, {codec}", fetch_bytes(event_records(count), codec)
        )


def by_columns(data: bytes) -> pa.Table:
    """Returns the records as an Arrow table: decodes them with the columnar decoder."""
    convert = partial(records_as_arrow, topic=TOPIC, partition=PARTITION)
    return pa.Table.from_batches(arrow_batches(data, convert))


def by_records(data: bytes) -> pa.Table:
    """Returns the records as an Arrow table: decodes them one by one, as usual code does."""
    keys, values, offsets, timestamps, types, headers = [], [], [], [], [], []
    for batch in read_batches(data):
        for record in batch.records(eager_headers=True):
            keys.append(record.key)
            values.append(record.value)
            offsets.append(record.offset)
            timestamps.append(record.timestamp * 1000)
            types.append(record.timestamp_type)
            headers.append(record.headers or None)  # no headers are null, as in the connector
    columns = {
        "key": keys,
        "value": values,
        "topic": pa.repeat(TOPIC, len(offsets)),
        "partition": pa.repeat(pa.scalar(PARTITION, pa.int32()), len(offsets)),
        "offset": offsets,
        "timestamp": timestamps,
        "timestampType": types,
        "headers": headers,
    }
    arrays = [
        column if isinstance(column, pa.Array) else pa.array(column, kind)
        for column, kind in zip(columns.values(), RECORD_SCHEMA.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=RECORD_SCHEMA)


def packed_batches(data: bytes) -> list[tuple[Codec, bytes]]:
    """Returns the codec and the compressed data of each compressed batch."""
    return [
        (codec_for_name(batch.compression), batch.raw[HEADER_BYTES:])
        for batch in read_batches(data)
        if batch.compression != "none"
    ]


def decompress_alone(packed: list[tuple[Codec, bytes]], room: memoryview) -> None:
    """Decompresses each batch into the same buffer, without decoding it."""
    for codec, data in packed:
        assert codec.decompress_into(data, room) is not None, codec.name


def seconds(side: Callable[[], object]) -> float:
    """Returns the CPU seconds of one call."""
    began = time.process_time()
    side()
    return time.process_time() - began


def main() -> int:
    """Measures and prints every row."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--records", type=int, default=50_000)
    parser.add_argument("--rounds", type=int, default=9, help="rounds of each side per row")
    options = parser.parse_args()
    pa.set_cpu_count(1)
    print(f"{options.records} records; CRC-32C by {CRC32C_IMPLEMENTATION}; target: {WANTED:.0f}x")
    print(
        f"{'fetch response':30} {'MB':>6} {'columnar ns/record':>19} {'plain':>7} {'ratio':>7} "
        f"{'decompression':>14} {'ratio without':>14}"
    )
    room = memoryview(bytearray(2 * BATCH_BYTES))
    for fetch in fetches(options.records):
        ours, theirs = partial(by_columns, fetch.data), partial(by_records, fetch.data)
        assert ours().combine_chunks().equals(theirs().combine_chunks()), fetch.name
        packed = packed_batches(fetch.data)
        bare = partial(decompress_alone, packed, room)
        turns = [(seconds(ours), seconds(theirs), seconds(bare)) for _ in range(options.rounds)]
        ratio = statistics.median(plain / columnar for columnar, plain, _ in turns)
        shown = [
            statistics.median(side) / options.records * 1e9 for side in zip(*turns, strict=True)
        ]
        line = (
            f"{fetch.name:30} {len(fetch.data) / 1e6:6.1f} {shown[0]:19.0f} {shown[1]:7.0f} "
            f"{ratio:6.1f}x"
        )
        if packed:
            without = statistics.median(
                (plain - b) / (columnar - b) for columnar, plain, b in turns
            )
            line += f" {shown[2]:14.0f} {without:13.1f}x"
        print(line, flush=True)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
