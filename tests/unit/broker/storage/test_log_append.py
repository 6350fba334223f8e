"""Tests how the records of a Produce request are checked and stored.

The expected errors are those that Kafka 4.4.0 returned for the same bytes. For message sets, the
expected errors are those of Kafka 3.9.2.
"""

from __future__ import annotations

import gzip

import pytest

from kproto import BrokerResponseError
from kproto.broker.storage.log_append import InvalidRecordsError, LogAppendInfo, append_records
from kproto.broker.storage.partition import Partition
from kproto.broker.topic_configs import TopicConfig
from kproto.records import CREATE_TIME, RecordBatch, encode_batch
from tests.support.batches import TIMESTAMP, batch_bytes, patched
from tests.support.message_sets import message, message_set, wrapped
from tests.unit.records.batches import batch_bytes as with_payload
from tests.unit.records.batches import record_bytes

NOW = TIMESTAMP + 1000
HOUR_MS = 3_600_000
LARGEST = 2000


def append(
    records: bytes | None, version: int = 9, config: TopicConfig | None = None
) -> LogAppendInfo:
    used = config or TopicConfig({}, LARGEST)
    return append_records(Partition(0), used, records, version, NOW)


GOOD = batch_bytes(2)
BROKEN = GOOD[:-1] + bytes([GOOD[-1] ^ 1])

REFUSED = {
    "null": (None, "INVALID_RECORD"),
    "nothing": (b"", "INVALID_RECORD"),
    "a few bytes": (b"xx", "INVALID_RECORD"),
    "two batches": (GOOD + GOOD, "INVALID_RECORD"),
    "a cut batch": (GOOD[:-1], "INVALID_RECORD"),
    "a wrong checksum": (BROKEN, "CORRUPT_MESSAGE"),
    "magic 1": (GOOD[:16] + b"\x01" + GOOD[17:], "INVALID_RECORD"),
    "magic 7": (GOOD[:16] + b"\x07" + GOOD[17:], "CORRUPT_MESSAGE"),
    "a length below the header": (GOOD[:8] + b"\0\0\0\x14" + GOOD[12:], "CORRUPT_MESSAGE"),
    "a base offset": (batch_bytes(base_offset=5), "INVALID_RECORD"),
    "a large batch": (batch_bytes(value=bytes(LARGEST)), "MESSAGE_TOO_LARGE"),
    "a control batch": (batch_bytes(is_control=True), "INVALID_RECORD"),
    "a producer without sequence": (
        batch_bytes(producer_id=5, producer_epoch=0),
        "INVALID_RECORD",
    ),
    "no records": (patched(GOOD, 57, b"\0\0\0\0"), "INVALID_RECORD"),
    "a wrong count": (patched(GOOD, 57, b"\0\0\0\x03"), "INVALID_RECORD"),
    "a wrong last offset": (patched(GOOD, 23, b"\0\0\0\x05"), "INVALID_RECORD"),
    "a negative last offset": (patched(GOOD, 23, b"\xff" * 4), "INVALID_RECORD"),
    "a negative count": (patched(GOOD, 57, b"\xff" * 4), "INVALID_RECORD"),
    "a negative count and a wrong checksum": (
        GOOD[:57] + b"\xff" * 4 + GOOD[61:],
        "CORRUPT_MESSAGE",
    ),
    "more records than bytes": (
        patched(patched(GOOD, 57, b"\0\0\x10\0"), 23, b"\0\0\x0f\xff"),
        "INVALID_RECORD",
    ),
    "an unknown codec": (patched(GOOD, 21, b"\0\x07"), "CORRUPT_MESSAGE"),
    "the future": (batch_bytes(timestamp=NOW + HOUR_MS + 1), "INVALID_TIMESTAMP"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_invalid_batches_are_rejected(what: str) -> None:
    records, name = REFUSED[what]
    with pytest.raises(BrokerResponseError) as caught:
        append(records)
    assert caught.value.name == name


def test_rejected_batches_change_nothing() -> None:
    partition = Partition(0)
    for records, _ in REFUSED.values():
        with pytest.raises(BrokerResponseError):
            append_records(partition, TopicConfig({}, LARGEST), records, 9, NOW)
    assert partition.log.end_offset == 0
    assert append_records(partition, TopicConfig({}, LARGEST), GOOD, 9, NOW) == (0, -1, 0)


@pytest.mark.parametrize(
    "records",
    [GOOD, batch_bytes(timestamp=0), batch_bytes(timestamp=-1), batch_bytes(timestamp=NOW + 1000)],
    ids=["plain", "1970", "no timestamp", "soon"],
)
def test_valid_batches_are_appended(records: bytes) -> None:
    assert append(records) == (0, -1, 0)


def stored(records: bytes, **configs: str) -> RecordBatch:
    """Returns the batch that the log has after the append of `records`."""
    partition = Partition(0)
    settings = {name.replace("_", "."): value for name, value in configs.items()}
    append_records(partition, TopicConfig(settings, LARGEST), records, 9, NOW)
    (batch,) = partition.log
    batch.check()
    return batch


@pytest.mark.parametrize("wrong", [-2, -1, 0, TIMESTAMP - 1, NOW + 2 * HOUR_MS, 2**63 - 1])
def test_wrong_largest_timestamp_is_corrected(wrong: int) -> None:
    """As in Kafka, the largest timestamp is computed from the records, not read from the header."""
    batch = stored(patched(GOOD, 35, wrong.to_bytes(8, signed=True)))
    assert batch.max_timestamp == TIMESTAMP + 1
    assert [record.timestamp for record in batch.records()] == [TIMESTAMP, TIMESTAMP + 1]


def test_log_append_time_of_a_producer_is_stored_as_create_time() -> None:
    assert stored(patched(GOOD, 21, b"\0\x08")).timestamp_type == CREATE_TIME
    batch = stored(patched(GOOD, 21, b"\0\x88"))
    assert batch.attributes == 0x80  # an unused bit stays


def test_log_append_time_of_the_topic_clears_unused_attributes() -> None:
    batch = stored(patched(GOOD, 21, b"\x7f\x80"), message_timestamp_type="LogAppendTime")
    assert (batch.attributes, batch.max_timestamp) == (8, NOW)


def test_producer_fields_below_their_range_are_recompressed_unchanged() -> None:
    sent = patched(GOOD, 43, (-2).to_bytes(8, signed=True) + b"\0\7" + b"\xff\xff\xff\xfe")
    batch = stored(sent, compression_type="gzip")
    assert (batch.producer_id, batch.producer_epoch, batch.base_sequence) == (-2, 7, -2)
    assert [record.value for record in batch.records()] == [b"v", b"v"]


BOUNDED = {"message.timestamp.before.max.ms": "60000", "message.timestamp.after.max.ms": "120000"}


@pytest.mark.parametrize(
    ("start", "step", "guilty"),
    [
        (-60_000, 60_000, set()),
        (-60_001, 1, {0}),
        (-90_000, 60_000, {0}),
        (0, 60_001, {2}),
        (-60_001, 90_001, {0, 2}),
        (120_001, 1, {0, 1, 2}),
    ],
)
def test_timestamps_outside_the_bounds_of_the_topic_are_named(
    start: int, step: int, guilty: set[int]
) -> None:
    sent = batch_bytes(3, timestamp=NOW + start, step_ms=step)
    if not guilty:
        assert append(sent, config=TopicConfig(BOUNDED, LARGEST)).base_offset == 0
        return
    with pytest.raises(InvalidRecordsError) as caught:
        append(sent, config=TopicConfig(BOUNDED, LARGEST))
    assert caught.value.name == "INVALID_TIMESTAMP"
    assert set(caught.value.record_errors) == guilty


def test_records_without_timestamps_are_within_all_bounds() -> None:
    sent = batch_bytes(3, timestamp=-1, step_ms=0)
    assert append(sent, config=TopicConfig(BOUNDED, LARGEST)).base_offset == 0


def test_truncated_second_batch_is_ignored() -> None:
    assert append(GOOD + GOOD[:-1]) == (0, -1, 0)


def test_zstd_needs_version_7() -> None:
    records = batch_bytes(compression="zstd")
    with pytest.raises(BrokerResponseError, match="UNSUPPORTED_COMPRESSION_TYPE"):
        append(records, version=6)
    assert append(records, version=7) == (0, -1, 0)


FIRST = message_set(1)
SECOND = message_set(1, magic=0)
PACKED = message_set(2, compression="gzip")

#: The error and base offset that Kafka 3.9.2 returned for the same bytes in Produce v0, v1 and v2;
#: the offset is -1 if Kafka stored nothing. In the last rows, the embedded broker differs from
#: Kafka, as the comments of these rows say.
MESSAGE_SETS: dict[str, tuple[bytes | None, str, int]] = {
    "nothing": (b"", "NONE", -1),
    "a few bytes": (b"xx", "NONE", -1),
    "a cut message": (FIRST[:-1], "NONE", -1),
    "a cut second message": (FIRST + FIRST[:-1], "NONE", 0),
    "offsets of its own": (message_set(3, base_offset=70), "NONE", 0),
    "a wrapper with offsets": (message_set(3, base_offset=70, compression="gzip"), "NONE", 0),
    "a wrapper of magic 0": (message_set(2, magic=0, compression="lz4"), "NONE", 0),
    "log append time": (message_set(1, log_append_time=NOW), "NONE", 0),
    "no timestamp": (message_set(1, timestamp=-1), "NONE", 0),
    "more messages than one batch may have bytes": (message_set(80), "NONE", 0),
    "a batch": (GOOD, "NONE", 0),
    "two batches": (GOOD + GOOD, "INVALID_RECORD", -1),
    "a wrong checksum": (FIRST[:-1] + b"?", "CORRUPT_MESSAGE", -1),
    "a wrong checksum before a good message": (FIRST[:-1] + b"?" + FIRST, "CORRUPT_MESSAGE", -1),
    "mixed magics": (FIRST + SECOND, "INVALID_RECORD", -1),
    "two wrappers": (PACKED + PACKED, "INVALID_RECORD", -1),
    "a message and a wrapper": (FIRST + PACKED, "INVALID_RECORD", -1),
    "a wrapper and a message": (PACKED + FIRST, "INVALID_RECORD", -1),
    "zstd": (message(codec=4), "INVALID_RECORD", -1),
    "magic 7": (FIRST[:16] + b"\x07" + FIRST[17:], "CORRUPT_MESSAGE", -1),
    "a wrapper in a wrapper": (wrapped(wrapped(FIRST)), "INVALID_RECORD", -1),
    "magic 0 in magic 1": (wrapped(SECOND), "INVALID_RECORD", -1),
    "magic 1 in magic 0": (wrapped(FIRST, magic=0), "INVALID_RECORD", -1),
    "an empty wrapper": (wrapped(b""), "INVALID_RECORD", -1),
    "a null wrapper": (message(codec=1, value=None), "INVALID_RECORD", -1),
    "inner offsets that are all 0": (wrapped(FIRST + FIRST), "NONE", 0),
    "a wrapper offset too small": (wrapped(message_set(5), offset=2), "INVALID_RECORD", -1),
    "a large message": (message_set(1, value=bytes(LARGEST)), "MESSAGE_TOO_LARGE", -1),
    "a large second message": (
        FIRST + message_set(1, value=bytes(LARGEST)),
        "MESSAGE_TOO_LARGE",
        -1,
    ),
    # Kafka drops the cut message and stores the other messages.
    "a cut message in a wrapper": (wrapped(FIRST + FIRST[:-1]), "INVALID_RECORD", -1),
    "bytes behind the value": (message(more=b"xyz"), "INVALID_RECORD", -1),
    "a length of -2": (message(key_length=-2), "NONE", 0),
    # Kafka returns CORRUPT_MESSAGE, which makes a producer send the same bytes again.
    "a wrong checksum in a wrapper": (wrapped(FIRST[:-1] + b"?"), "INVALID_RECORD", -1),
    # Kafka returns UNKNOWN_SERVER_ERROR.
    "an unknown codec": (message(codec=7), "CORRUPT_MESSAGE", -1),
    "a negative time": (message(timestamp=-5), "INVALID_TIMESTAMP", -1),
    "no gzip": (message(codec=1, value=b"xx"), "INVALID_RECORD", -1),
    "a length beyond the message": (message(key_length=100), "INVALID_RECORD", -1),
    # Kafka 3.9 accepts any timestamp by default, 4.x at most an hour ahead.
    "the future": (message_set(1, timestamp=NOW + HOUR_MS + 1), "INVALID_TIMESTAMP", -1),
}


@pytest.mark.parametrize("version", range(3))
@pytest.mark.parametrize("what", MESSAGE_SETS)
def test_message_sets_get_the_response_of_kafka(what: str, version: int) -> None:
    records, name, offset = MESSAGE_SETS[what]
    if name == "NONE":
        assert append(records, version=version) == (offset, -1, 0)
        return
    with pytest.raises(BrokerResponseError) as caught:
        append(records, version=version)
    assert caught.value.name == name


@pytest.mark.parametrize("magic", [0, 1])
@pytest.mark.parametrize("codec", ["none", "gzip", "snappy", "lz4"])
def test_a_message_set_is_stored_as_one_batch_with_its_codec(magic: int, codec: str) -> None:
    partition = Partition(0)
    config = TopicConfig({}, LARGEST)
    sent = message_set(3, magic=magic, compression=codec)
    for offset in (0, 3):
        assert append_records(partition, config, sent, 2, NOW).base_offset == offset
    batches = list(partition.log)
    assert [(batch.magic, batch.compression) for batch in batches] == [(2, codec)] * 2
    stored = [record for batch in batches for record in batch.records()]
    assert [(r.offset, r.key, r.value, r.headers) for r in stored] == [
        (n, b"k", b"v", []) for n in range(6)
    ]
    times = [TIMESTAMP, TIMESTAMP + 1, TIMESTAMP + 2] if magic else [-1, -1, -1]
    assert [record.timestamp for record in stored] == times + times


def test_message_sets_get_the_log_append_time() -> None:
    config = TopicConfig({"message.timestamp.type": "LogAppendTime"}, LARGEST)
    for magic in (0, 1):
        assert append(message_set(2, magic=magic), version=2, config=config) == (0, NOW, 0)
    for version, records in (
        (2, message_set(1, log_append_time=5)),
        (9, patched(GOOD, 21, b"\0\x08")),
    ):
        with pytest.raises(BrokerResponseError, match="INVALID_TIMESTAMP"):
            append(records, version=version, config=config)


def test_log_append_time_accepts_future_timestamps() -> None:
    config = TopicConfig({"message.timestamp.type": "LogAppendTime"}, LARGEST)
    assert append(batch_bytes(timestamp=NOW + 2 * HOUR_MS), config=config) == (0, NOW, 0)


def test_duplicate_gets_result_of_first_append() -> None:
    partition = Partition(0)
    config = TopicConfig({}, LARGEST)
    batches = [
        batch_bytes(2, producer_id=5, producer_epoch=0, base_sequence=sequence)
        for sequence in (0, 2, 4)
    ]
    for records in batches:
        append_records(partition, config, records, 9, NOW)
    again = append_records(partition, config, batches[1], 9, NOW + 5)
    # For a duplicate, 4.4.0 and 3.9.2 return the largest timestamp of the batch.
    assert again == (2, TIMESTAMP + 1, 0)
    assert partition.log.end_offset == 6
    with pytest.raises(BrokerResponseError, match="OUT_OF_ORDER_SEQUENCE_NUMBER"):
        append_records(
            partition,
            config,
            batch_bytes(producer_id=5, producer_epoch=0, base_sequence=9),
            9,
            NOW,
        )


def test_producer_expires_a_day_after_its_last_batch() -> None:
    partition = Partition(0)
    config = TopicConfig({}, LARGEST)
    day = config.producer_id_expiration_ms
    sent = batch_bytes(producer_id=5, producer_epoch=0, base_sequence=0)
    append_records(partition, config, sent, 9, NOW)
    append_records(partition, config, sent, 9, NOW + day - 1)
    assert partition.log.end_offset == 1
    append_records(partition, config, sent, 9, NOW + day)
    assert partition.log.end_offset == 2


def test_batches_are_stored_without_compressing_them_again() -> None:
    """The broker also stores bytes after the gzip data; a new compression would drop them."""
    sent = with_payload(
        gzip.compress(record_bytes()) + b"rest",
        attributes=1,
        base_timestamp=TIMESTAMP,
        max_timestamp=TIMESTAMP,
    )
    for settings in ({}, {"message.timestamp.type": "LogAppendTime"}, {"compression.type": "gzip"}):
        partition = Partition(0)
        config = TopicConfig(settings, LARGEST)
        log_append_time = NOW if config.log_append_time else -1
        assert append_records(partition, config, sent, 9, NOW) == (0, log_append_time, 0)
        [stored] = partition.log
        assert stored.raw[61:] == sent[61:]
        assert partition.log.read(0, 1000, at_least_one=True).join() == stored.raw


#: By records and attributes of a batch: the error, as real brokers answer.
RECORDS_OF_ONE_BATCH: dict[str, tuple[bytes, int, str]] = {
    "a negative header count": (record_bytes(header_block=b"\x01"), 0, "INVALID_RECORD"),
    "a null header name": (record_bytes(header_block=b"\x02\x01\x00"), 0, "INVALID_RECORD"),
    "a byte after the records": (record_bytes() + b"\0", 0, "INVALID_RECORD"),
    "a wrong length": (record_bytes(length=3), 0, "INVALID_RECORD"),
    "a compressed wrong length": (gzip.compress(record_bytes(length=3)), 1, "NONE"),
    "a compressed null header name": (
        gzip.compress(record_bytes(header_block=b"\x02\x01\x00")),
        1,
        "INVALID_RECORD",
    ),
    "lengths below -1": (
        record_bytes(key=b"\x03", value=b"\x05", header_block=b"\x02\x02h\x07"),
        0,
        "NONE",
    ),
    "a header name that is no UTF-8": (
        record_bytes(header_block=b"\x02\x04\xff\xfe\x00"),
        0,
        "NONE",
    ),
    "bytes after gzip": (gzip.compress(record_bytes()) + b"rest", 1, "NONE"),
    "no gzip": (b"noise", 1, "UNKNOWN_SERVER_ERROR"),
}


@pytest.mark.parametrize("what", RECORDS_OF_ONE_BATCH)
def test_records_get_the_response_of_kafka(what: str) -> None:
    payload, attributes, name = RECORDS_OF_ONE_BATCH[what]
    sent = with_payload(
        payload, attributes=attributes, base_timestamp=TIMESTAMP, max_timestamp=TIMESTAMP
    )
    if name == "NONE":
        assert append(sent).base_offset == 0
        return
    with pytest.raises(BrokerResponseError, match=name):
        append(sent)


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "snappy", "lz4", "zstd"])
@pytest.mark.parametrize("codec", ["none", "gzip", "zstd"])
def test_topic_codec_recompresses_batches(codec: str, wanted: str) -> None:
    partition = Partition(0)
    config = TopicConfig({"compression.type": wanted}, LARGEST)
    expected = "none" if wanted == "uncompressed" else wanted
    for sequence in (0, 3, 3):  # the third batch is a duplicate
        sent = batch_bytes(
            3, compression=codec, producer_id=7, producer_epoch=2, base_sequence=sequence
        )
        assert append_records(partition, config, sent, 9, NOW).base_offset == sequence
    assert append_records(partition, config, message_set(2), 2, NOW).base_offset == 6
    batches = list(partition.log)
    assert [batch.compression for batch in batches] == [expected] * 3
    assert [(batch.producer_id, batch.producer_epoch) for batch in batches[:2]] == [(7, 2)] * 2
    assert [batch.base_sequence for batch in batches[:2]] == [0, 3]
    records = [record for batch in batches for record in batch.records()]
    assert [(record.offset, record.key, record.value) for record in records] == [
        (n, b"k", b"v") for n in range(8)
    ]
    assert [record.timestamp - TIMESTAMP for record in records] == [0, 1, 2, 0, 1, 2, 0, 1]


def test_batch_too_large_after_recompression_is_rejected() -> None:
    sent = batch_bytes(value=bytes(LARGEST), compression="gzip")
    assert append(sent) == (0, -1, 0)
    with pytest.raises(BrokerResponseError, match="MESSAGE_TOO_LARGE"):
        append(sent, config=TopicConfig({"compression.type": "uncompressed"}, LARGEST))


@pytest.mark.parametrize("policy", ["compact", "compact,delete", "delete, compact"])
def test_compacted_topic_requires_keys(policy: str) -> None:
    config = TopicConfig({"cleanup.policy": policy}, LARGEST)
    for codec in ("none", "gzip"):
        keyless = encode_batch(
            [(b"k", b"v", (), TIMESTAMP), (None, b"v", (), TIMESTAMP)], compression=codec
        )
        with pytest.raises(BrokerResponseError, match="record 1 of the batch has no key"):
            append(keyless, config=config)
        assert append(keyless) == (0, -1, 0)
        empty = encode_batch([(b"", None, (), TIMESTAMP)], compression=codec)
        assert append(empty, config=config) == (0, -1, 0)
    with pytest.raises(BrokerResponseError, match="INVALID_RECORD"):
        append(message(value=b"v"), version=2, config=config)
