"""What a Produce may hold; the errors are those that a 4.4.0 broker gave to the same bytes."""

from __future__ import annotations

import pytest

from kproto import BrokerResponseError
from kproto.broker.appending import Appended, append_records
from kproto.broker.topic_configs import TopicConfig
from kproto.broker.topics import Partition
from tests.support.batches import TIMESTAMP, batch_bytes, patched

NOW = TIMESTAMP + 1000
HOUR_MS = 3_600_000
LARGEST = 2000


def append(records: bytes | None, version: int = 9, config: TopicConfig | None = None) -> Appended:
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
    "an unknown codec": (patched(GOOD, 21, b"\0\x07"), "CORRUPT_MESSAGE"),
    "the future": (batch_bytes(timestamp=NOW + HOUR_MS + 1), "INVALID_TIMESTAMP"),
    "a transaction": (
        batch_bytes(producer_id=5, producer_epoch=0, base_sequence=0, is_transactional=True),
        "INVALID_TXN_STATE",
    ),
}


@pytest.mark.parametrize("what", REFUSED)
def test_refused(what: str) -> None:
    records, name = REFUSED[what]
    with pytest.raises(BrokerResponseError) as caught:
        append(records)
    assert caught.value.name == name


def test_refused_batches_leave_no_trace() -> None:
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
def test_taken(records: bytes) -> None:
    assert append(records) == (0, -1, 0)


def test_a_cut_second_batch_is_ignored() -> None:
    assert append(GOOD + GOOD[:-1]) == (0, -1, 0)


def test_zstd_came_with_version_7() -> None:
    records = batch_bytes(compression="zstd")
    with pytest.raises(BrokerResponseError, match="UNSUPPORTED_COMPRESSION_TYPE"):
        append(records, version=6)
    assert append(records, version=7) == (0, -1, 0)


@pytest.mark.parametrize("version", range(3))
def test_message_sets_are_not_taken(version: int) -> None:
    with pytest.raises(BrokerResponseError, match="UNSUPPORTED_FOR_MESSAGE_FORMAT"):
        append(GOOD, version=version)


def test_log_append_time_takes_the_future_too() -> None:
    config = TopicConfig({"message.timestamp.type": "LogAppendTime"}, LARGEST)
    assert append(batch_bytes(timestamp=NOW + 2 * HOUR_MS), config=config) == (0, NOW, 0)


def test_a_duplicate_gets_the_answer_of_the_first_time() -> None:
    partition = Partition(0)
    config = TopicConfig({}, LARGEST)
    batches = [
        batch_bytes(2, producer_id=5, producer_epoch=0, base_sequence=sequence)
        for sequence in (0, 2, 4)
    ]
    for records in batches:
        append_records(partition, config, records, 9, NOW)
    again = append_records(partition, config, batches[1], 9, NOW + 5)
    # The timestamp is what 4.4.0 and 3.9.2 give for a duplicate: the batch's largest.
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
