"""A tagged field that the definition does not have, kept as raw bytes (KIP-482)."""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["MAX_SHOWN_BYTES", "RawTaggedField"]

#: Longer bytes are printed as their length, to keep logs readable.
MAX_SHOWN_BYTES: Final = 32


class RawTaggedField(NamedTuple):
    """The tag number and the bytes of a value, without their length."""

    tag: int
    data: bytes

    def __repr__(self) -> str:
        """Shows long data as its length, as messages do."""
        shown = repr(self.data)
        if isinstance(self.data, bytes) and len(self.data) > MAX_SHOWN_BYTES:
            shown = f"<{len(self.data)} bytes>"
        return f"RawTaggedField(tag={self.tag!r}, data={shown})"
