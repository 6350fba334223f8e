"""Splits one direction of a connection into frames, and finds the next frame after a gap.

Unlike `kproto.protocol.framing` it returns unreadable bytes unchanged, so that a caller that
forwards them loses none. Knows sizes only; functions of the caller check the content of frames.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from typing import Final

from ..protocol.framing import DEFAULT_MAX_FRAME_BYTES

__all__ = ["FrameSplitter"]

_SIZE: Final = struct.Struct(">i")


class FrameSplitter:
    """Takes bytes by `feed`, returns frames with their size by `next_frame`.

    `lost` gives the reason if the stream can no longer be split; `take_unframed` then returns the
    remaining bytes.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.lost: str | None = None
        self._buffer = bytearray()
        # During a search: where it continues, and where a frame may begin that is not whole yet.
        self._searched = 0
        self._unfinished: list[int] = []

    @property
    def pending(self) -> int:
        """Returns how many buffered bytes are not in a frame yet."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Takes bytes of the stream, in their order."""
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Returns the next frame with its size; None until it is whole, or if `lost` is set."""
        buffer = self._buffer
        if self.lost is not None or len(buffer) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(buffer)
        if not 0 <= size <= self.max_frame_bytes:
            self.lost = (
                f"a frame announces {size} bytes, and 0 to {self.max_frame_bytes} are read "
                "(max_frame_bytes)"
            )
            return None
        end = _SIZE.size + size
        if len(buffer) < end:
            return None
        whole = bytes(memoryview(buffer)[:end])
        del buffer[:end]
        return whole

    def take_unframed(self) -> bytes:
        """Removes and returns all bytes that are in no frame."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._searched = 0
        self._unfinished.clear()
        return rest

    def seek(
        self,
        start: re.Pattern[bytes],
        may_start: Callable[[bytes], bool],
        is_frame: Callable[[bytes], bool],
    ) -> tuple[int, bool]:
        """Drops bytes until a frame is at the front; returns how many, and whether one is there.

        `start` must match the first 12 bytes of the frame, `may_start` gets up to 256 bytes of its
        content, and `is_frame` the whole content. A possible frame that is incomplete stays a
        candidate, and a later frame can still be found.
        """
        buffer = self._buffer
        unfinished, self._unfinished = self._unfinished, []
        for begin in unfinished:
            if self._is_complete_at(begin, is_frame):
                return self._drop(begin), True
        while (found := start.search(buffer, self._searched)) is not None:
            begin = found.start()
            self._searched = begin + 1
            (size,) = _SIZE.unpack_from(buffer, begin)
            content = begin + _SIZE.size
            head = bytes(buffer[content : content + min(size, _HEAD_BYTES)])
            if size > self.max_frame_bytes or not may_start(head):
                continue
            if self._is_complete_at(begin, is_frame):
                return self._drop(begin), True
        self._searched = max(self._searched, len(buffer) - _LONGEST_START + 1)
        return self._drop(min(self._unfinished, default=self._searched)), False

    def _is_complete_at(self, begin: int, is_frame: Callable[[bytes], bool]) -> bool:
        """Returns whether a complete frame begins at `begin`; remembers an incomplete one."""
        buffer = self._buffer
        content = begin + _SIZE.size
        end = content + _SIZE.unpack_from(buffer, begin)[0]
        if end <= len(buffer):
            found = is_frame(bytes(buffer[content:end]))
            if found:
                self._unfinished.clear()
                self._searched = begin
            return found
        if len(self._unfinished) < _MOST_UNFINISHED:
            self._unfinished.append(begin)
        return False

    def _drop(self, count: int) -> int:
        del self._buffer[:count]
        self._searched = max(0, self._searched - count)
        self._unfinished = [begin - count for begin in self._unfinished]
        return count


#: Positions of possible unfinished frames that are remembered, at most.
_MOST_UNFINISHED: Final = 100

#: Bytes of a frame's content that are checked before it is whole.
_HEAD_BYTES: Final = 256

#: Bytes that a pattern of `seek` matches; fewer bytes at the end may be the beginning of a frame.
_LONGEST_START: Final = 12
