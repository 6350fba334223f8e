"""Frames: an int32 size in bytes, then that many bytes. Knows nothing of what is inside.

`FrameReader` hands out the memory that a socket shall read into, so that a large frame is read
straight into a buffer of its own and copied once, into the `bytes` that the decoder wants.
"""

from __future__ import annotations

import struct
from typing import Final

from ..wire.errors import EncodeError, ProtocolError
from ..wire.limits import MAX_LENGTH

__all__ = ["DEFAULT_MAX_FRAME_BYTES", "FrameReader", "frame"]

#: Largest frame that is accepted, in bytes. Kafka's brokers refuse requests over 100 MiB
#: (socket.request.max.bytes); a response may hold that much records too.
DEFAULT_MAX_FRAME_BYTES: Final = 104_857_600

#: Size in bytes of the buffer that small frames share: a few typical responses fit at once.
SHARED_BUFFER_BYTES: Final = 65_536

#: A frame that announces more than this is not allocated in one go, but as its bytes arrive.
FIRST_ALLOCATION_BYTES: Final = 16_777_216

_SIZE = struct.Struct(">i")


def frame(*pieces: bytes) -> bytes:
    """The pieces as one frame. Raises EncodeError when they are 2 GiB or more."""
    size = sum(map(len, pieces))
    if size > MAX_LENGTH:
        raise EncodeError(f"a frame of {size} bytes; an int32 can say no more than {MAX_LENGTH}")
    return b"".join((_SIZE.pack(size), *pieces))


class FrameReader:
    """Cuts a stream of bytes into frames.

    Either `feed` it with bytes, or read into the memory of `buffer()` and tell `advance()` how
    much came; both return the frames that are now complete, without their size. Raises
    ProtocolError on a frame over `max_frame_bytes` or of negative size, before any memory is
    taken for it; the stream can then no longer be cut, and frames that came with it are not given.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._shared = bytearray(SHARED_BUFFER_BYTES)
        self._start = 0  # of the bytes in `_shared` that no frame has taken yet
        self._end = 0
        self._large: bytearray | None = None
        self._large_size = 0
        self._filled = 0

    @property
    def pending(self) -> int:
        """How many bytes of an unfinished frame are here."""
        return self._filled if self._large is not None else self._end - self._start

    def buffer(self) -> memoryview:
        """Memory to read into; valid until the next call of any method."""
        if self._large is not None:
            if self._filled == len(self._large):
                # A new one: memory that somebody still has a view of cannot be extended.
                grown = bytearray(min(self._large_size, 2 * self._filled))
                grown[: self._filled] = self._large
                self._large = grown
            return memoryview(self._large)[self._filled :]
        return memoryview(self._shared)[self._end :]

    def advance(self, count: int) -> list[bytes]:
        """Take note that `count` bytes were read into the buffer."""
        if self._large is not None:
            self._filled += count
            if self._filled < self._large_size:
                return []
            done = bytes(self._large)
            self._large = None
            return [done]
        self._end += count
        return self._cut()

    def feed(self, data: bytes) -> list[bytes]:
        """Take bytes that were read elsewhere."""
        frames: list[bytes] = []
        view = memoryview(data)
        while view:
            room = self.buffer()
            count = min(len(room), len(view))
            room[:count] = view[:count]
            room.release()
            view = view[count:]
            frames += self.advance(count)
        return frames

    def _cut(self) -> list[bytes]:
        frames: list[bytes] = []
        shared, start, end = self._shared, self._start, self._end
        while end - start >= 4:
            (size,) = _SIZE.unpack_from(shared, start)
            if not 0 <= size <= self.max_frame_bytes:
                raise ProtocolError(_wrong_size(size, self.max_frame_bytes))
            stop = start + 4 + size
            if stop > end:
                if 4 + size > SHARED_BUFFER_BYTES:
                    self._begin_large(size, start + 4, end)
                    return frames
                break
            frames.append(bytes(shared[start + 4 : stop]))
            start = stop
        self._keep(start, end)
        return frames

    def _begin_large(self, size: int, start: int, end: int) -> None:
        """Give the frame whose first bytes stand in the shared buffer a buffer of its own."""
        self._large = bytearray(min(size, FIRST_ALLOCATION_BYTES))
        self._large_size = size
        self._filled = end - start
        self._large[: self._filled] = self._shared[start:end]
        self._start = self._end = 0

    def _keep(self, start: int, end: int) -> None:
        """Move what is left to the front, so that the next read has room."""
        left = end - start
        if start and left:
            self._shared[:left] = self._shared[start:end]
        self._start, self._end = 0, left


def _wrong_size(size: int, bound: int) -> str:
    if size < 0:
        return f"a frame announces {size} bytes: the peer does not speak Kafka's protocol"
    hint = ""
    if size >> 24 in (0x48, 0x15, 0x16):
        hint = "; the bytes look like HTTP or TLS, so this is no plain Kafka port"
    return f"a frame announces {size} bytes and at most {bound} are allowed (max_frame_bytes){hint}"
