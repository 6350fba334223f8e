"""The part of the log format that magic 0, 1 and 2 share.

This module has the positions of offset, length and magic, the attribute bits that several magics
have, and the values that mean "none", such as -1 for a missing producer id. `magic2.batch_header`
and `legacy.message_header` have the rest of the headers. Source: KIP-98, KIP-32; Kafka's
documentation, "Record Batch" and "Old Message Format".
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ..wire.buffers import octets
from ..wire.errors import CorruptBatchError

#: Base offset and length. The length counts the bytes after the length field.
LOG_OVERHEAD: Final = Struct(">qi")
LOG_OVERHEAD_BYTES: Final = 12
OFFSET_BYTES: Final = 8
MAGIC_OFFSET: Final = 16

#: The smallest valid value of the length field: that of a magic 0 message with null key and value.
MIN_MESSAGE_BYTES: Final = 14

COMPRESSION_CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08

#: Kafka's numbers for timestamp types.
NO_TIMESTAMP_TYPE: Final = -1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1


def as_buffer(data: bytes | bytearray | memoryview) -> bytes:
    """Returns bytes-like `data` as bytes. Raises CorruptBatchError for any other value.

    Refuses numbers and lists, which `bytes()` would accept.
    """
    if isinstance(data, bytes):
        return data
    try:
        return octets(data)
    except (TypeError, ValueError) as error:
        raise CorruptBatchError(str(error), offset=0) from None


def bytes_left(data: bytes, position: int) -> int:
    """Returns the number of bytes from `position` to the end of `data`, at least 0.

    Raises CorruptBatchError if `position` is negative.
    """
    if position < 0:
        raise CorruptBatchError(f"position {position} lies before the data", offset=position)
    return max(len(data) - position, 0)


def base_offset_at(data: bytes, position: int) -> int | None:
    """Returns the base offset at `position`; None if fewer than 8 bytes are left."""
    end = position + OFFSET_BYTES
    return int.from_bytes(data[position:end], "big", signed=True) if end <= len(data) else None
