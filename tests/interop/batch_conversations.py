"""Produces batches with odd headers to a real and to the embedded broker, for comparison.

The result of a batch is the response. If the broker accepts the batch, the result also has the
header that the broker has stored.
"""

from __future__ import annotations

import struct
import time
from typing import Final

from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.records import RecordBatch, read_batches
from tests.support.batches import batch_bytes, patched

from .conversations import Said
from .talk import Talk, error

__all__ = ["NO_EPOCH", "producing_odd_batches"]

DAY_MS: Final = 86_400_000

_FETCH: Final = 11
_LARGEST: Final = 9_223_372_036_854_775_807

#: Fields of a batch header: position and format.
_FIELDS: Final = {
    "base_offset": (0, ">q"),
    "length": (8, ">i"),
    "partition_leader_epoch": (12, ">i"),
    "magic": (16, ">b"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}


def changed(batch: bytes, **fields: int) -> bytes:
    """Returns the batch with the header fields `fields` changed, and with a correct checksum."""
    for name, value in fields.items():
        at, form = _FIELDS[name]
        batch = patched(batch, at, struct.pack(form, value))
    return batch


#: A producer id with a sequence, and without an epoch.
NO_EPOCH: Final = {"producer_id": 5, "producer_epoch": -1, "base_sequence": 0}

#: The changes of the header of a batch of three records.
_CASES: Final[tuple[dict[str, int], ...]] = (
    *({"last_offset_delta": it} for it in (-(2**31), -2, -1, 0, 1, 3, 2**31 - 1)),
    *({"record_count": it} for it in (-(2**31), -1, 0, 1, 2, 4, 2**31 - 1)),
    *({"record_count": it, "last_offset_delta": it - 1} for it in (-1, 0, 1, 2, 4, 2**31 - 1)),
    *({"base_offset": it} for it in (-1, 1, 2**62)),
    *({"magic": it} for it in (-128, -1, 0, 1, 3, 127)),
    *({"partition_leader_epoch": it} for it in (-1, 0, 5, 2**31 - 1)),
    *({"attributes": it} for it in (0x08, 0x20, 0x28, 0x40, 0x80, 0x7F80, -0x8000)),
    {"producer_id": 5, "producer_epoch": 0, "base_sequence": -1},
    {"producer_id": 5, "producer_epoch": 0, "base_sequence": -2},
    NO_EPOCH,
    {"producer_id": 5, "producer_epoch": -1, "base_sequence": -1},
    {"producer_id": -1, "producer_epoch": 0, "base_sequence": 0},
    {"producer_id": -2, "producer_epoch": 0, "base_sequence": 0},
    {"base_sequence": -2},
    {"producer_epoch": 5},
)

#: The changes of timestamps in ms; `_absolute` adds the time of the test to some of them.
_TIMES: Final = (
    {"max_timestamp": -2},
    {"max_timestamp": -1},
    {"max_timestamp": 0},
    {"max_timestamp": 7_200_000},
    {"max_timestamp": _LARGEST},
    {"base_timestamp": -1},
    {"base_timestamp": -10_000},
    {"base_timestamp": 7_200_000},
    {"base_timestamp": _LARGEST},
)


def _show(talk: Talk, name: str, records: bytes, now: int) -> object:
    answer = talk.append(name, records)
    refused = sorted(each.batch_index for each in answer.record_errors)
    if answer.error_code:
        return error(answer.error_code), refused
    return error(answer.error_code), refused, _stored(talk, name, answer.base_offset, now)


def _stored(talk: Talk, name: str, offset: int, now: int) -> object:
    partition = FetchPartition(partition=0, fetch_offset=offset, partition_max_bytes=10_000)
    topic = FetchTopic(topic=name, partitions=[partition])
    request = FetchRequest(max_wait_ms=1000, min_bytes=1, max_bytes=10_000, topics=[topic])
    found = talk.ask(request, _FETCH).responses[0].partitions[0]
    batch: RecordBatch = next(read_batches(found.records))
    return {
        "offset": batch.base_offset - offset,
        "last_offset_delta": batch.last_offset_delta,
        "record_count": batch.record_count,
        "attributes": batch.attributes,
        "base_timestamp": _relative(batch.base_timestamp, now),
        "max_timestamp": "now" if batch.timestamp_type else _relative(batch.max_timestamp, now),
        "producer": (batch.producer_id, batch.producer_epoch, batch.base_sequence),
    }


def producing_odd_batches(talk: Talk) -> Said:
    now = int(time.time() * 1000)
    hour = "3600000"  # the default of Kafka 4
    plain = talk.create("odd", message_timestamp_after_max_ms=hour)
    stamped = talk.create("stamped", message_timestamp_type="LogAppendTime")
    compressed = talk.create(
        "compressed", compression_type="gzip", message_timestamp_after_max_ms=hour
    )
    for what, name, compression in (
        ("plain", plain, "none"),
        ("gzip", plain, "gzip"),
        ("stamped", stamped, "none"),
        ("recompressed", compressed, "none"),
    ):
        good = batch_bytes(3, timestamp=now, compression=compression)
        yield what, _show(talk, name, good, now)
        for case in _CASES:
            fields = dict(case)
            if "attributes" in fields and compression == "gzip":
                fields["attributes"] |= 1
            yield (what, str(case)), _show(talk, name, changed(good, **fields), now)
        for case in _TIMES:
            relative = {key: _absolute(value, now) for key, value in case.items()}
            yield (what, str(case)), _show(talk, name, changed(good, **relative), now)
    bounded = talk.create(
        "bounded", message_timestamp_before_max_ms="60000", message_timestamp_after_max_ms="120000"
    )
    for start, step in ((-90_000, 1), (-90_000, 60_000), (0, 90_000), (150_000, 1), (-30_000, 1)):
        batch = batch_bytes(3, timestamp=now + start, step_ms=step)
        yield ("bounded", start, step), _show(talk, bounded, batch, now)
    yield "no time", _show(talk, bounded, batch_bytes(3, timestamp=-1, step_ms=0), now)


def _absolute(value: int, now: int) -> int:
    """Returns a timestamp in ms: `value`, plus `now` if |`value`| is from 10 ms to a day."""
    return value + now if 9 < abs(value) <= DAY_MS else value


def _relative(value: int, now: int) -> int:
    return value - now if abs(value - now) <= DAY_MS else value
