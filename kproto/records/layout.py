"""The fixed part of stored batches and messages, and the meaning of their attribute bits.

Source: KIP-98 (record batches, magic 2), KIP-534 (the delete horizon), KIP-32 (messages of magic
1); Kafka's documentation, "Record Batch" and "Old Message Format".
"""

from __future__ import annotations

from struct import Struct
from typing import Final

#: base offset, batch length, partition leader epoch, magic, CRC, attributes, last offset delta,
#: base timestamp, max timestamp, producer id, producer epoch, base sequence, record count
HEADER: Final = Struct(">qiibIhiqqqhii")
HEADER_BYTES: Final = 61

#: The same in two parts: up to the CRC, and what the CRC covers.
HEADER_TO_CRC: Final = Struct(">qiibI")
HEADER_FROM_ATTRIBUTES: Final = Struct(">hiqqqhii")

#: base offset and batch length, which every magic has
LOG_OVERHEAD: Final = Struct(">qi")
LOG_OVERHEAD_BYTES: Final = 12
OFFSET_BYTES: Final = 8
MAGIC_AT: Final = 16

#: The shortest entry of any magic, behind its length: a message of magic 0, key and value null.
MIN_MESSAGE_BYTES: Final = 14

#: A message of a message set: offset, size, CRC, magic and attributes; from magic 1 on the
#: timestamp; then key and value, each with its length (int32, -1 for null) in front.
MESSAGE: Final = Struct(">qiIbb")
MESSAGE_BYTES: Final = 18
MESSAGE_TIMESTAMP: Final = Struct(">q")
MESSAGE_TIMESTAMP_BYTES: Final = 8
MESSAGE_FIELD_LENGTH: Final = Struct(">i")
MESSAGE_FIELD_LENGTH_BYTES: Final = 4

#: What a message takes beside key and value, by magic.
MESSAGE_OVERHEAD_BYTES: Final = (
    LOG_OVERHEAD_BYTES + MIN_MESSAGE_BYTES,
    LOG_OVERHEAD_BYTES + MIN_MESSAGE_BYTES + MESSAGE_TIMESTAMP_BYTES,
)

#: The CRC of a message covers everything from here.
MESSAGE_CRC_FROM: Final = 16

#: The CRC covers everything from here; base offset and leader epoch may change without it.
CRC_FROM: Final = 21

#: base offset, batch length, partition leader epoch: what stands before the magic
STAMP: Final = Struct(">qii")

#: Fields that a broker writes into a batch, and where they are.
CRC: Final = Struct(">I")
ATTRIBUTES: Final = Struct(">h")
MAX_TIMESTAMP: Final = Struct(">q")
CRC_AT: Final = 17
ATTRIBUTES_AT: Final = 21
MAX_TIMESTAMP_AT: Final = 35

CODEC_MASK: Final = 0x07
LOG_APPEND_TIME_FLAG: Final = 0x08
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

#: Timestamp types under Kafka's numbers.
NO_TIMESTAMP_TYPE: Final = -1
CREATE_TIME: Final = 0
LOG_APPEND_TIME: Final = 1

NO_TIMESTAMP: Final = -1
NO_PRODUCER_ID: Final = -1
NO_PRODUCER_EPOCH: Final = -1
NO_SEQUENCE: Final = -1
NO_PARTITION_LEADER_EPOCH: Final = -1

#: The smallest record: length, attributes, timestamp delta, offset delta, key, value and header
#: count, one byte each. A record count above the bytes left divided by this cannot be right.
MIN_RECORD_BYTES: Final = 7
