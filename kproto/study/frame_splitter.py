"""Splits one direction of a connection into frames, and finds the next frame after a gap.

Unlike `kproto.protocol.framing` it returns unreadable bytes unchanged, so that a proxy can forward
them. It reads only the size of a frame; functions of the caller check the content.
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
    """Splits bytes from `feed` into frames, which `next_frame` returns with their size field.

    If a size is invalid, `lost` is set to the reason, and the rest of the stream cannot be split.
    `take_unframed` then returns the buffered bytes.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.lost: str | None = None
        self._buffer = bytearray()
        # For `seek`: the position at which it continues, and the starts of incomplete candidates.
        self._searched = 0
        self._unfinished: list[int] = []

    @property
    def pending(self) -> int:
        """Returns the number of buffered bytes: the bytes after the latest frame."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Adds the next bytes of the stream."""
        self._buffer += data

    def next_frame(self) -> bytes | None:
        """Returns the next frame with its size field; None if it is incomplete or `lost` is set."""
        buffer = self._buffer
        if self.lost is not None or len(buffer) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(buffer)
        if not 0 <= size <= self.max_frame_bytes:
            self.lost = (
                f"a frame has the size {size}; valid sizes are 0 to {self.max_frame_bytes} "
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
        """Removes and returns all buffered bytes."""
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
        """Drops the bytes before the next frame.

        Returns the number of dropped bytes, and True if a frame was found. `start` must match the
        first bytes of the frame: up to 12 bytes, including the size field. `may_start` gets the
        first 256 bytes of the frame's content, and `is_frame` gets the whole content. If the rest
        of a possible frame has not arrived yet, its bytes are not dropped, and the next call tries
        it again.
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
        """Returns True if a complete frame begins at `begin`.

        If the bytes up to the end of the frame have not arrived yet, remembers `begin`.
        """
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


#: Maximum number of positions that are remembered because a frame may begin there that has not
#: arrived completely.
_MOST_UNFINISHED: Final = 100

#: How many bytes of the content of a possible frame `may_start` gets.
_HEAD_BYTES: Final = 256

#: Maximum number of bytes that the pattern `start` of `seek` matches. If fewer bytes than this are
#: left at the end of the buffer, a frame may begin in them, so they are kept.
_LONGEST_START: Final = 12
