"""The fixed part in front of a message of magic 0 or 1.

Knows where each field stands and not what it is good for. Source: KIP-32 (timestamps); Kafka's
documentation, "Old Message Format".
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ..log_format import LOG_OVERHEAD_BYTES, MIN_MESSAGE_BYTES

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
