"""The fixed-size header of a record batch (magic 2), and its attribute bits.

Source: KIP-98, KIP-534 (the delete horizon); Kafka's documentation, "Record Batch".
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ...wire.checks import check_whole_number
from ..log_format import LOG_OVERHEAD_BYTES, NO_PARTITION_LEADER_EPOCH
from ..new_record import MAX_INT32, MAX_INT64
from .crc import crc32c

#: Base offset, batch length, partition leader epoch, magic, CRC, attributes, last offset delta,
#: base timestamp, max timestamp, producer id, producer epoch, base sequence, record count.
HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = 61

#: The header in two parts: the fields up to the CRC, and the fields that the CRC covers.
HEADER_TO_CRC: Final = Struct(">qiibI")
HEADER_FROM_ATTRIBUTES: Final = Struct(">hiqqqhii")

#: The CRC covers the batch from this position on. Base offset and leader epoch are before it, so
#: that a broker can set them without a new CRC.
CRC_FROM: Final = 21

#: Base offset, batch length and partition leader epoch, the fields before the magic.
HEADER_TO_LEADER_EPOCH: Final = Struct(">qii")

#: The fields that a broker changes for log append time, and their positions.
CRC: Final = Struct(">I")
ATTRIBUTES: Final = Struct(">h")
MAX_TIMESTAMP: Final = Struct(">q")
CRC_OFFSET: Final = 17
ATTRIBUTES_OFFSET: Final = 21
MAX_TIMESTAMP_OFFSET: Final = 35

#: The attribute bits that only magic 2 has; `log_format` has the others.
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

#: The size of the smallest record: length, attributes, timestamp delta, offset delta, key length,
#: value length and header count, one byte each. It limits the record count that can be valid.
MIN_RECORD_BYTES: Final = 7

#: To copy a payload of this size takes less time than a second call of the checksum function.
_SMALL_PAYLOAD_BYTES: Final = 4_096

#: Least and largest value of each field that callers set. For most fields -1 means "none".
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
    """Raises ConfigurationError if `value` is not an int in the range of the field `name`."""
    least, most = BOUNDS[name]
    if type(value) is not int or not least <= value <= most:
        check_whole_number(name, value, least, most)


def check_offsets(base_offset: object, last_offset_delta: int, leader_epoch: object) -> None:
    """Raises ConfigurationError if an offset of the batch, or the leader epoch, is out of range.

    The largest offset is 2^63 - 1.
    """
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
    """Returns a batch of the encoded (and possibly compressed) records in `payload`.

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
    size = HEADER_BYTES - LOG_OVERHEAD_BYTES + len(payload)
    if len(payload) <= _SMALL_PAYLOAD_BYTES:
        small = checked + payload
        checksum = crc32c(small)
        return HEADER_TO_CRC.pack(base_offset, size, partition_leader_epoch, 2, checksum) + small
    checksum = crc32c(payload, crc32c(checked))
    unchecked = HEADER_TO_CRC.pack(base_offset, size, partition_leader_epoch, 2, checksum)
    return b"".join((unchecked, checked, payload))
