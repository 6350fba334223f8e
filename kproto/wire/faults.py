"""How generated code says that something is wrong: at once, and without saying what.

Checks that explain themselves cost most of the speed of a codec. So generated code reads and
writes straight on and lets Python's own errors escape, or raises a bare `WireFault`; whoever
called it then walks the same bytes or the same object again by the definition, to say which field
is at fault, where and why (`kproto.schema.explain`).
"""

from __future__ import annotations

import struct
from typing import Final

__all__ = ["READ_FAULTS", "WRITE_FAULTS", "WireFault"]


class WireFault(Exception):  # noqa: N818 - a signal inside the codec, never seen by a caller
    """Something about the bytes, or about the value, is wrong. Never leaves the codec."""


#: What reading broken bytes can raise.
READ_FAULTS: Final = (WireFault, struct.error, IndexError, UnicodeDecodeError)

#: What writing an object with wrong values can raise.
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
