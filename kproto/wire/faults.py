"""The exceptions that generated code raises for a fault, before the fault is explained.

If generated code itself looked for the name of the faulty field, this check would take most of the
time of a codec. So generated code raises Python's own errors, or a `WireFault` without text. The
caller of the generated code then calls `kproto.schema.explain`, which reads the same bytes or
object again and names the field, the offset and the reason.
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["READ_FAULTS", "WRITE_FAULTS", "WireFault"]


class WireFault(Exception):  # noqa: N818 - internal to the codec, never raised to a user
    """The bytes or the value are wrong. The codec raises DecodeError or EncodeError instead."""


#: The exceptions that generated code raises for invalid bytes.
READ_FAULTS: Final = (WireFault, struct.error, IndexError, UnicodeDecodeError)

#: The exceptions that generated code raises for an object with invalid values.
WRITE_FAULTS: Final = (
    WireFault,
    struct.error,
    AttributeError,
    KeyError,
    TypeError,
    ValueError,
    OverflowError,
    BufferError,
)
