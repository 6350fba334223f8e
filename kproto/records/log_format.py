"""What the entries of a log have in common, whatever their magic.

Owns where offset, length and magic stand, the attribute bits that more than one magic has, and the
values for what a format lacks. What else is in front of a batch is `magic2.batch_header`'s, of a
message `legacy.message_header`'s. Source: KIP-98, KIP-32; Kafka's documentation, "Record Batch"
and "Old Message Format".
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ..wire.buffers import octets
from ..wire.errors import CorruptBatchError

#: base offset and length; the length counts what stands behind it
LOG_OVERHEAD: Final = Struct(">qi")
LOG_OVERHEAD_BYTES: Final = 12
OFFSET_BYTES: Final = 8
MAGIC_OFFSET: Final = 16

#: The shortest entry of any magic, behind its length: a message of magic 0, key and value null.
MIN_MESSAGE_BYTES: Final = 14

COMPRESSION_CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08

#: Timestamp types under Kafka's numbers.
NO_TIMESTAMP_TYPE: Final = -1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1


def as_buffer(data: bytes | bytearray | memoryview) -> bytes:
    """The bytes to be read; a number or a list, of which Python makes bytes too, is refused."""
    if isinstance(data, bytes):
        return data
    try:
        return octets(data)
    except (TypeError, ValueError) as error:
        raise CorruptBatchError(str(error), offset=0) from None


def bytes_left(data: bytes, position: int) -> int:
    """How many bytes there are from `position` on. Raises CorruptBatchError if it is negative."""
    if position < 0:
        raise CorruptBatchError(f"position {position} lies before the data", offset=position)
    return max(len(data) - position, 0)


def base_offset_at(data: bytes, position: int) -> int | None:
    """Returns the base offset of an entry that may be cut; None where not even that can be read."""
    end = position + OFFSET_BYTES
    return int.from_bytes(data[position:end], "big", signed=True) if end <= len(data) else None
