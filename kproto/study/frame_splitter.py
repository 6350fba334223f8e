"""Cuts one direction of a connection into frames, and finds the next one where bytes are missing.

Unlike `kproto.protocol.framing` it gives what it cannot read back as it came, so that one who
passes bytes on loses none. Knows sizes alone; what a frame holds is told to it by questions.
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
    """Bytes in by `feed`, frames with their size out by `next_frame`.

    `lost` says why the stream can no longer be cut; what is left is then had by `take_unframed`.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self.lost: str | None = None
        self._held = bytearray()
        # While a frame is sought: where to search on, and where one may begin that is not whole.
        self._searched = 0
        self._unfinished: list[int] = []

    @property
    def pending(self) -> int:
        """How many bytes are here of which no frame was made."""
        return len(self._held)

    def feed(self, data: bytes) -> None:
        """Take bytes of the stream, in their order."""
        self._held += data

    def next_frame(self) -> bytes | None:
        """The next frame, its size in front; None until it is whole, or where `lost` says why."""
        held = self._held
        if self.lost is not None or len(held) < _SIZE.size:
            return None
        (size,) = _SIZE.unpack_from(held)
        if not 0 <= size <= self.max_frame_bytes:
            self.lost = (
                f"a frame announces {size} bytes, and 0 to {self.max_frame_bytes} are read "
                "(max_frame_bytes)"
            )
            return None
        end = _SIZE.size + size
        if len(held) < end:
            return None
        whole = bytes(memoryview(held)[:end])
        del held[:end]
        return whole

    def take_unframed(self) -> bytes:
        """All bytes of which no frame was made; they are then no longer here."""
        rest = bytes(self._held)
        self._held.clear()
        self._searched = 0
        self._unfinished.clear()
        return rest

    def seek(
        self,
        start: re.Pattern[bytes],
        may_begin: Callable[[bytes], bool],
        is_frame: Callable[[bytes], bool],
    ) -> tuple[int, bool]:
        """Drop bytes until a frame is at the front: how many were dropped, and whether one is.

        A frame begins where `start` matches, which looks at its first 12 bytes; `may_begin` is
        asked about the first of its content, up to 256 bytes, and `is_frame` once it is whole.
        What is not whole yet is kept, and does not keep a later one from being found.
        """
        held = self._held
        unfinished, self._unfinished = self._unfinished, []
        for begin in unfinished:
            if self._is_whole_at(begin, is_frame):
                return self._drop(begin), True
        while (found := start.search(held, self._searched)) is not None:
            begin = found.start()
            self._searched = begin + 1
            (size,) = _SIZE.unpack_from(held, begin)
            content = begin + _SIZE.size
            head = bytes(held[content : content + min(size, _HEAD_BYTES)])
            if size > self.max_frame_bytes or not may_begin(head):
                continue
            if self._is_whole_at(begin, is_frame):
                return self._drop(begin), True
        self._searched = max(self._searched, len(held) - _LONGEST_START + 1)
        return self._drop(min(self._unfinished, default=self._searched)), False

    def _is_whole_at(self, begin: int, is_frame: Callable[[bytes], bool]) -> bool:
        """Whether a frame stands at a place; one that is not all there is noted."""
        held = self._held
        content = begin + _SIZE.size
        end = content + _SIZE.unpack_from(held, begin)[0]
        if end <= len(held):
            found = is_frame(bytes(held[content:end]))
            if found:
                self._unfinished.clear()
                self._searched = begin
            return found
        if len(self._unfinished) < _MOST_UNFINISHED:
            self._unfinished.append(begin)
        return False

    def _drop(self, count: int) -> int:
        del self._held[:count]
        self._searched = max(0, self._searched - count)
        self._unfinished = [begin - count for begin in self._unfinished]
        return count


#: Places at which a frame may begin that is not whole yet; more are not kept in mind.
_MOST_UNFINISHED: Final = 100

#: How much of a frame's content is looked at before it is whole.
_HEAD_BYTES: Final = 256

#: How many bytes a pattern of `seek` looks at; fewer at the end may yet be the begin of a frame.
_LONGEST_START: Final = 12
