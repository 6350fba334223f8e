"""Reuses memory for decompressed batches.

New memory for each fetch response would take more time, for page faults and copies, than most
codecs take to decompress. Columns refer to the memory through memoryviews. Python refuses to resize
a bytearray while a view of it exists, so an attempt to resize tells whether the memory is still in
use.
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kproto.records import Codec

__all__ = ["MAX_SPARE_ARENAS", "Arena"]

# The most buffers that a process keeps for reuse, each at most as large as a chunk of columns. Two,
# because a reader usually still has one chunk while the next one is decoded.
MAX_SPARE_ARENAS: Final = 2

_LEAST_BYTES: Final = 1 << 16

_spare: deque[bytearray] = deque(maxlen=MAX_SPARE_ARENAS)


class Arena:
    """A buffer that is filled from its start, and grows to at most `capacity` bytes."""

    __slots__ = ("buffer", "capacity", "used")

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.used = 0
        self.buffer = _spare_buffer()

    def decompress(self, codec: Codec, data: bytes, limit: int) -> bool:
        """Appends decompressed data, and adds its size to `used`; returns True on success.

        Returns False if the result does not fit, exceeds `limit` bytes, or `decompress_into`
        refuses the data. The caller then uses `codec.decompress`, which checks the limit and raises
        the errors. Raises MissingCodecError if the codec is not installed.
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
        """Appends `data`; returns False, and appends nothing, if it does not fit."""
        end = self.used + len(data)
        if end > self.capacity:
            return False
        if end > len(self.buffer):
            self.buffer.extend(bytes(end - len(self.buffer)))
        self.buffer[self.used : end] = data
        self.used = end
        return True

    def restart(self) -> None:
        """Empties the arena, and gives it another buffer.

        The other buffer is a spare buffer to which no view refers, or a new buffer.
        """
        self.close()
        self.used = 0
        self.buffer = _spare_buffer()

    def close(self) -> None:
        """Makes the memory available to the next arena."""
        if self.buffer:
            _spare.append(self.buffer)
        self.buffer = bytearray()


def _spare_buffer() -> bytearray:
    """Returns a spare buffer without views; a new one if there is none."""
    for _ in range(MAX_SPARE_ARENAS):
        try:
            buffer = _spare.popleft()
        except IndexError:
            break
        try:
            buffer.append(buffer.pop())
        except BufferError:  # a view of it still exists
            _spare.append(buffer)
        else:
            return buffer
    return bytearray()
