"""The signals by which generated code reports a fault without explaining it.

Checks that explain themselves would cost most of a codec's speed. Generated code therefore reads
and writes without them: it lets Python's own errors escape, or raises a bare `WireFault`. Its
caller then reads the same bytes or object again by the definition, to name the field at fault,
where and why (`kproto.schema.explain`).
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["READ_FAULTS", "WRITE_FAULTS", "WireFault"]


class WireFault(Exception):  # noqa: N818 - a signal inside the codec, never seen by a caller
    """The bytes or the value are wrong. Never leaves the codec."""


#: The exceptions of reading invalid bytes.
READ_FAULTS: Final = (WireFault, struct.error, IndexError, UnicodeDecodeError)

#: The exceptions of writing an object with invalid values.
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
