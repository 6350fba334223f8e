"""The memory that compressed batches are decompressed into, one batch behind the other.

Owns that memory and when it may be written again: fresh memory for each fetch response costs more
in page faults and copies than most codecs do. What stands in it is `batches`' and `columnar`'s to
know.

Columns look at the memory through memoryviews, and a bytearray that is looked at refuses to be
resized. So Python itself says whether somebody may still read there; nothing is counted here.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kproto.records import Codec

__all__ = ["MAX_SPARE_ARENAS", "Arena"]

# How many buffers a process keeps to write into again, each at most as large as a chunk of columns.
# Two, since a reader mostly still holds one chunk while it asks for the next.
MAX_SPARE_ARENAS: Final = 2

_LEAST_BYTES: Final = 1 << 16

_spare: deque[bytearray] = deque(maxlen=MAX_SPARE_ARENAS)


class Arena:
    """A buffer that is filled from its start, and grows up to `capacity` bytes as it must."""

    __slots__ = ("buffer", "capacity", "used")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.buffer = _spare_buffer()

    def decompress(self, codec: Codec, data: bytes, limit: int) -> bool:
        """Decompress behind what stands there, and say whether it was done; `used` tells the end.

        False if the result does not fit, comes to more than `limit` bytes, or the data is
        anything out of the ordinary. `codec.decompress` then has the bound and the errors.

        Raises MissingCodecError.
        """
        most = min(self.capacity, self.used + limit)
        while True:
            with memoryview(self.buffer)[self.used : most] as room:
                written = codec.decompress_into(data, room) if room else None
            if written is not None:
                self.used += written
                return True
            size = len(self.buffer)
            if size >= most:
                return False
            larger = min(max(_LEAST_BYTES, 2 * size, size + 4 * len(data)), self.capacity)
            self.buffer.extend(bytes(larger - size))

    def add(self, data: bytes) -> bool:
        """Copy `data` behind what stands there, and say whether it fits."""
        end = self.used + len(data)
        if end > self.capacity:
            return False
        if end > len(self.buffer):
            self.buffer.extend(bytes(end - len(self.buffer)))
        self.buffer[self.used : end] = data
        self.used = end
        return True

    def restart(self) -> None:
        """Begin anew: in the same memory, or in other if somebody still reads in this."""
        self.close()
        self.used = 0
        self.buffer = _spare_buffer()

    def close(self) -> None:
        """Leave the memory to the next arena."""
        if self.buffer:
            _spare.append(self.buffer)
        self.buffer = bytearray()


def _spare_buffer() -> bytearray:
    """One that nobody looks at; an empty one if there is none."""
    for _ in range(MAX_SPARE_ARENAS):
        try:
            buffer = _spare.popleft()
        except IndexError:
            break
        try:
            buffer.append(buffer.pop())
        except BufferError:  # somebody looks at it
            _spare.append(buffer)
        else:
            return buffer
    return bytearray()
