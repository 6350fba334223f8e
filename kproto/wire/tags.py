"""A tagged field that the definition does not know, kept as it came (KIP-482)."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["MAX_SHOWN_BYTES", "RawTaggedField"]

#: Longer bytes are printed as their length, in fields and in unknown ones: a log is for reading.
MAX_SHOWN_BYTES: Final = 32


class RawTaggedField(NamedTuple):
    """A tag number and the bytes of its value, without their length."""

    tag: int
    data: bytes

    def __repr__(self) -> str:
        """Long data as its length, as messages print it."""
        shown = repr(self.data)
        if isinstance(self.data, bytes) and len(self.data) > MAX_SHOWN_BYTES:
            shown = f"<{len(self.data)} bytes>"
        return f"RawTaggedField(tag={self.tag!r}, data={shown})"
