"""The fixed-size header of a record batch (magic 2), and its attribute bits.

Has the position and the range of each field, and does not interpret it. Source: KIP-98, KIP-534
(the delete horizon); Kafka's documentation, "Record Batch".
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ...wire.checks import check_whole_number
from ..log_format import LOG_OVERHEAD_BYTES, NO_PARTITION_LEADER_EPOCH
from ..new_record import MAX_INT32, MAX_INT64
from .crc import crc32c

#: base offset, batch length, partition leader epoch, magic, CRC, attributes, last offset delta,
#: base timestamp, max timestamp, producer id, producer epoch, base sequence, record count
HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = 61

#: The same in two parts: the fields up to the CRC, and the fields that the CRC covers.
HEADER_TO_CRC: Final = Struct(">qiibI")
HEADER_FROM_ATTRIBUTES: Final = Struct(">hiqqqhii")

#: The CRC covers everything from this position; base offset and leader epoch may change without it.
CRC_FROM: Final = 21

#: base offset, batch length, partition leader epoch: the fields before the magic
HEADER_TO_LEADER_EPOCH: Final = Struct(">qii")

#: The fields that a broker writes into a batch, and their positions.
CRC: Final = Struct(">I")
ATTRIBUTES: Final = Struct(">h")
MAX_TIMESTAMP: Final = Struct(">q")
CRC_OFFSET: Final = 17
ATTRIBUTES_OFFSET: Final = 21
MAX_TIMESTAMP_OFFSET: Final = 35

#: The attribute bits of magic 2 only; `log_format` has the bits that every magic has.
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

#: The smallest record: length, attributes, timestamp delta, offset delta, key, value and header
#: count, one byte each. More records than the bytes left divided by this cannot be right.
MIN_RECORD_BYTES: Final = 7

#: The range of each field that callers set; -1 is Kafka's "none".
BOUNDS: Final = {
    "partition_leader_epoch": (-1, MAX_INT32),
    "last_offset_delta": (0, MAX_INT32),
    "log_append_time": (-1, MAX_INT64),
    "max_timestamp": (-1, MAX_INT64),
    "delete_horizon": (0, MAX_INT64),
    "base_timestamp": (-MAX_INT64 - 1, MAX_INT64),
    "producer_id": (-1, MAX_INT64),
    "producer_epoch": (-1, 0x7FFF),
    "base_sequence": (-1, MAX_INT32),
}


def check_field(name: str, value: object) -> None:
    """Checks that the field called `name` can hold `value`. Raises ConfigurationError."""
    least, most = BOUNDS[name]
    if type(value) is not int or not least <= value <= most:
        check_whole_number(name, value, least, most)


def check_offsets(base_offset: object, last_offset_delta: int, leader_epoch: object) -> None:
    """Checks that the offsets end at 2^63 - 1 or before. Raises ConfigurationError."""
    most = MAX_INT64 - last_offset_delta
    if type(base_offset) is not int or not 0 <= base_offset <= most:
        check_whole_number("base_offset", base_offset, 0, most)
    if leader_epoch != NO_PARTITION_LEADER_EPOCH:
        check_field("partition_leader_epoch", leader_epoch)


def pack_batch(
    payload: bytes,
    attributes: int,
    last_offset_delta: int,
    base_timestamp: int,
    max_timestamp: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    record_count: int,
    base_offset: int = 0,
    partition_leader_epoch: int = NO_PARTITION_LEADER_EPOCH,
) -> bytes:
    """Returns the batch with the encoded (and possibly compressed) records in `payload`.

    Raises struct.error for a number that does not fit its field.
    """
    checked = HEADER_FROM_ATTRIBUTES.pack(
        attributes,
        last_offset_delta,
        base_timestamp,
        max_timestamp,
        producer_id,
        producer_epoch,
        base_sequence,
        record_count,
    )
    unchecked = HEADER_TO_CRC.pack(
        base_offset,
        HEADER_BYTES - LOG_OVERHEAD_BYTES + len(payload),
        partition_leader_epoch,
        2,
        crc32c(payload, crc32c(checked)),
    )
    return b"".join((unchecked, checked, payload))
