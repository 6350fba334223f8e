"""Compares how Kafka's classes and kproto decode record batches and message sets.

`read` describes what Kafka's classes decode from a buffer, `describe` what kproto decodes, and
`judge` compares both descriptions. If kproto refuses bytes that Kafka's classes accept, STRICTER
must list the reason. kproto may never accept bytes that Kafka's classes refuse.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import Enum
from typing import Any, Final, NamedTuple
from zlib import crc32

from kproto.records import Record, RecordBatch, crc32c, read_batches
from kproto.records.header_block import decode_as_java
from kproto.wire.errors import KprotoError

from .process import JavaProgramOperation, KafkaJavaProgram, records_question

__all__ = [
    "STRICTER",
    "BatchesDescription",
    "Verdict",
    "build",
    "describe",
    "judge",
    "mutations",
    "read",
]

#: The attributes of `RecordBatch` in the description of a batch; Kafka's class has them, too.
FIELDS: Final = (
    "magic",
    "compression",
    "crc",
    "last_offset",
    "next_offset",
    "max_timestamp",
    "timestamp_type",
    "producer_id",
    "producer_epoch",
    "base_sequence",
    "partition_leader_epoch",
    "size_in_bytes",
    "is_transactional",
    "is_control",
    "delete_horizon",
)
FIELDS_OF_MAGIC_2: Final = ("base_offset", "record_count")


class BatchesDescription(NamedTuple):
    """The valid batches that kproto or Kafka reads, and the fault after them, or None."""

    batches: list[dict[str, Any]]
    error: str | None


class Verdict(Enum):
    """The results of comparing kproto with Kafka's classes on one buffer, with descriptions."""

    SAME = "both read the same batches and records to the end"
    NEITHER = "both read the same valid batches, and refuse the next bytes"
    STRICTER = "kproto refuses a batch that Kafka's classes read, for a listed reason"
    DISAGREEMENT = "they differ without a listed reason"


#: The reasons for which kproto may refuse bytes that Kafka's classes accept. Maps a pattern of
#: kproto's error text to the behavior of Kafka's classes.
STRICTER: Final[Mapping[str, str]] = {
    r"negative last offset delta": "Kafka's classes do not compare the offsets of a batch",
    r"offset delta: -?\d+ is outside of|but a last offset delta of": (
        "Kafka's classes do not compare the offsets of records with those of their batch"
    ),
    r"bytes after the last of 0 records": "Kafka's classes read no records if the count is 0",
    r"bytes after the value": "Kafka's classes ignore the remaining bytes of a message",
    r"message \d+ of the wrapper: (size \d+, but|\d+ bytes are too few)": (
        "Kafka's classes end a wrapper at a truncated message"
    ),
    r"magic -?\d+ is not \d, the wrapper's": "Kafka's classes accept messages of another magic",
    r"(gzip|snappy|lz4|zstd): ": "Kafka's classes do not decompress bytes after the last record",
}


def build(judge: KafkaJavaProgram, wanted: Iterable[Mapping[str, Any]]) -> list[bytes]:
    """Returns the batches and message sets that Kafka's MemoryRecordsBuilder builds.

    Each of `wanted` has `magic`, `compression` and `records`: (offset, timestamp, key, value,
    headers). Other fields of a batch default to -1, 0 or false.
    """
    questions = []
    for spec in wanted:
        described = {
            "base_offset": 0,
            "log_append_time": -1,
            "producer_id": -1,
            "producer_epoch": -1,
            "base_sequence": -1,
            "is_transactional": False,
            "partition_leader_epoch": -1,
            **spec,
            "records": [
                [offset, timestamp, _hex(key), _hex(value), [[n, _hex(v)] for n, v in headers]]
                for offset, timestamp, key, value, headers in spec["records"]
            ],
        }
        questions.append(
            records_question(JavaProgramOperation.BUILD_RECORDS, json.dumps(described).encode())
        )
    return [answer.data for answer in judge.ask(questions)]


def read(judge: KafkaJavaProgram, buffers: Iterable[bytes]) -> Iterator[BatchesDescription]:
    """Yields the description of each buffer by Kafka's MemoryRecords, with checksums verified."""
    questions = (records_question(JavaProgramOperation.READ_RECORDS, data) for data in buffers)
    for answer in judge.ask(questions):
        described = json.loads(answer.data)
        yield BatchesDescription(described["batches"], described["error"])


def describe(data: bytes) -> BatchesDescription:
    """Reads the batches in `data` with kproto; returns their description, and the error if any."""
    batches: list[dict[str, Any]] = []
    try:
        for batch in read_batches(data):
            described = _described(batch)
            batches.append(described)
    except KprotoError as error:
        return BatchesDescription(batches, str(error))
    return BatchesDescription(batches, None)


def judge(ours: BatchesDescription, theirs: BatchesDescription) -> tuple[Verdict, str]:
    """Returns the verdict on one buffer, and the reason for `Verdict.STRICTER`, else ""."""
    common = min(len(ours.batches), len(theirs.batches))
    if ours.batches[:common] != theirs.batches[:common]:
        return Verdict.DISAGREEMENT, ""
    if len(ours.batches) == len(theirs.batches) and (ours.error is None) == (theirs.error is None):
        return (Verdict.SAME if ours.error is None else Verdict.NEITHER), ""
    if ours.error is not None and common == len(ours.batches):
        for pattern, reason in STRICTER.items():
            if re.search(pattern, ours.error):
                return Verdict.STRICTER, reason
    return Verdict.DISAGREEMENT, ""


def mutations(seeds: Sequence[bytes], count: int, seed: int) -> Iterator[bytes]:
    """Yields `count` buffers with flipped, replaced, removed and inserted bytes.

    Most buffers have a valid checksum. Each of `seeds` is one batch or message. In some buffers the
    mutated batch follows a valid one.
    """
    rng = random.Random(seed)
    for _ in range(count):
        data = bytearray(rng.choice(seeds))
        for _ in range(rng.choice((1, 1, 1, 2, 4))):
            at = rng.randrange(len(data))
            match rng.randrange(6):
                case 0 | 1:
                    data[at] ^= 1 << rng.randrange(8)
                case 2:
                    data[at] = rng.choice((0, 1, 2, 0x7F, 0x80, 0xFF))
                case 3:
                    del data[at : at + rng.randint(1, 3)]
                case 4:
                    data[at:at] = rng.randbytes(rng.randint(1, 3))
                case _:
                    del data[max(at, 1) :]
            if not data:
                data = bytearray(b"\0")
        if rng.random() < 0.9:
            data = bytearray(_mended(bytes(data)))
        yield (rng.choice(seeds) if rng.random() < 0.3 else b"") + bytes(data)


def _mended(data: bytes) -> bytes:
    """Returns the bytes with a valid length and checksum of the batch or message."""
    if len(data) < 22:
        return data
    data = data[:8] + (len(data) - 12).to_bytes(4, "big") + data[12:]
    if data[16] >= 2:
        return data[:17] + crc32c(data[21:]).to_bytes(4, "big") + data[21:]
    return data[:12] + crc32(data[16:]).to_bytes(4, "big") + data[16:]


def _described(batch: RecordBatch) -> dict[str, Any]:
    fields = FIELDS if batch.magic < 2 else (*FIELDS, *FIELDS_OF_MAGIC_2)
    described = {field: getattr(batch, field) for field in fields}
    described["records"] = [_record(record) for record in batch.records(eager_headers=True)]
    return described


def _record(record: Record) -> list[Any]:
    return [
        record.offset,
        record.timestamp,
        record.timestamp_type,
        _hex(record.key),
        _hex(record.value),
        [[_java_name(name), _hex(value)] for name, value in record.headers],
    ]


def _java_name(name: str) -> str:
    """Returns a header name as Kafka's classes return it: U+FFFD for bytes that are not UTF-8."""
    return decode_as_java(name.encode("utf-8", "surrogateescape"))


def _hex(value: bytes | None) -> str | None:
    return None if value is None else value.hex()
