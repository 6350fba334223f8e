"""The fixed part in front of a record batch (magic 2), and its attribute bits.

Knows where each field stands and not what it is good for. Source: KIP-98, KIP-534 (the delete
horizon); Kafka's documentation, "Record Batch".
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

#: Beside the bits that every magic has (`any_magic`).
TRANSACTIONAL_FLAG: Final = 0x10
CONTROL_FLAG: Final = 0x20
DELETE_HORIZON_FLAG: Final = 0x40

#: The smallest record: length, attributes, timestamp delta, offset delta, key, value and header
#: count, one byte each. A record count above the bytes left divided by this cannot be right.
MIN_RECORD_BYTES: Final = 7
