"""The fixed-size header of a message of magic 0 or 1.

Source: KIP-32 (timestamps); Kafka's documentation, "Old Message Format".
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ..log_format import LOG_OVERHEAD_BYTES, MIN_MESSAGE_BYTES

#: The header of a message: offset, size, CRC, magic, attributes. With magic 1 a timestamp follows.
#: Then come key and value, each after its length (int32, -1 for null).
MESSAGE: Final = Struct(">qiIbb")
MESSAGE_BYTES: Final = 18
MESSAGE_TIMESTAMP: Final = Struct(">q")
MESSAGE_TIMESTAMP_BYTES: Final = 8
MESSAGE_FIELD_LENGTH: Final = Struct(">i")
MESSAGE_FIELD_LENGTH_BYTES: Final = 4

#: The size of a message without key and value, by magic.
MESSAGE_OVERHEAD_BYTES: Final = (
    LOG_OVERHEAD_BYTES + MIN_MESSAGE_BYTES,
    LOG_OVERHEAD_BYTES + MIN_MESSAGE_BYTES + MESSAGE_TIMESTAMP_BYTES,
)

#: The CRC covers the message from this position, that of the magic byte, to the end.
MESSAGE_CRC_FROM: Final = 16
