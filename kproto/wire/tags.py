"""Defines `RawTaggedField`, a tagged field as raw bytes (KIP-482)."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["MAX_SHOWN_BYTES", "RawTaggedField"]

#: The repr of a message shows only the length of longer bytes, to keep logs readable.
MAX_SHOWN_BYTES: Final = 32


class RawTaggedField(NamedTuple):
    """A tagged field without a definition: its tag and its encoded value, without the length."""

    tag: int
    data: bytes

    def __repr__(self) -> str:
        """Shows only the length of long data."""
        shown = repr(self.data)
        if isinstance(self.data, bytes) and len(self.data) > MAX_SHOWN_BYTES:
            shown = f"<{len(self.data)} bytes>"
        return f"RawTaggedField(tag={self.tag!r}, data={shown})"
