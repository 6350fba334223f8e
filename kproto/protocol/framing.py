"""Frames: an int32 size in bytes, then that many bytes. Knows nothing of what is inside.

`FrameReader` hands out the memory that a socket shall read into, so that a large frame is read
straight into pieces of its own and copied once, into the `bytes` that the decoder wants. A piece is
taken only once those before it are full, and is no larger than all of them: memory follows the
bytes that came, not the size that was announced. The first pieces are kept for the next frame, as
memory of this size goes back to the system when it is freed, and costs a page fault for every 4 KiB
when it is taken again.
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

#: Pieces are kept up to this size in bytes, all of them together: those of a fetch as the client
#: makes it by default.
KEPT_BYTES: Final = 1_048_576

#: glibc takes blocks from the system and gives them back, page faults and all, if they are larger
#: than all it has freed so: one of this size, which is never written to and so takes no memory,
#: makes it keep the two of a fetch, the frame and the records in it, for the next one.
_UNTOUCHED_BYTES: Final = 4 * KEPT_BYTES

_SIZE = struct.Struct(">i")


def frame(*pieces: bytes | memoryview) -> bytes:
    """Returns the pieces as one frame. Raises EncodeError when they are 2 GiB or more."""
    size = sum(map(len, pieces))
    if size > MAX_LENGTH:
        raise EncodeError(f"a frame of {size} bytes; an int32 can say no more than {MAX_LENGTH}")
    return b"".join((_SIZE.pack(size), *pieces))


class FrameReader:
    """Cuts a stream of bytes into frames.

    Either `feed` it with bytes, or read into the memory of `buffer()` and tell `advance()` how
    much came; both return the frames that are now complete, without their size. Raises
    ProtocolError on a frame over `max_frame_bytes` or of negative size; the stream can then no
    longer be cut, and frames that came with it are not given.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._shared = bytearray(SHARED_BUFFER_BYTES)
        self._start = 0  # of the bytes in `_shared` that no frame has taken yet
        self._end = 0
        # Of a frame that the shared buffer cannot hold: the size, 0 while there is none; how much
        # is here; the pieces, of which the last is being filled; how far that one is, and how far
        # it may be.
        self._large_size = 0
        self._arrived = 0
        self._pieces: list[bytes | bytearray] = []
        self._filled = 0
        self._room = 0
        self._is_used = False  # for a large frame
        self._kept: list[bytearray] = []  # all but the first of a large frame

    @property
    def pending(self) -> int:
        """Returns how many bytes of an unfinished frame are here."""
        return self._arrived if self._large_size else self._end - self._start

    @property
    def begun(self) -> bytes:
        """Returns the first bytes of what no frame has taken, eight at most; for who asks what they
        are.
        """
        first = self._pieces[0] if self._pieces else self._shared[self._start : self._end]
        return bytes(first[:8])

    def buffer(self) -> memoryview:
        """Memory to read into; valid until the next call of any method."""
        if not self._large_size:
            return memoryview(self._shared)[self._end :]
        if self._filled == self._room:
            self._add_piece()
        return memoryview(self._pieces[-1])[self._filled : self._room]

    def advance(self, count: int) -> list[bytes]:
        """Takes note that `count` bytes were read into the buffer."""
        if not self._large_size:
            self._end += count
            return self._cut()
        self._arrived += count
        self._filled += count
        if self._arrived < self._large_size:
            return []
        done = b"".join((*self._pieces[:-1], memoryview(self._pieces[-1])[: self._room]))
        self._pieces.clear()
        self._large_size = 0
        if not self._is_used:
            self._is_used = True
            bytes(_UNTOUCHED_BYTES)
        return [done]

    def feed(self, data: bytes) -> list[bytes]:
        """Takes bytes that were read elsewhere."""
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
                if end - start == SHARED_BUFFER_BYTES:
                    self._begin_large(size)
                    return frames
                break
            frames.append(bytes(shared[start + 4 : stop]))
            start = stop
        self._keep(start, end)
        return frames

    def _begin_large(self, size: int) -> None:
        """Goes on elsewhere with the frame whose first bytes fill the shared buffer."""
        first = bytes(memoryview(self._shared)[4:])
        self._pieces.append(first)
        self._large_size = size
        self._arrived = self._filled = self._room = len(first)
        self._start = self._end = 0

    def _add_piece(self) -> None:
        """Goes on in the next piece; as many bytes as are here already, or what is left."""
        left = self._large_size - self._arrived
        number = len(self._pieces) - 1
        if number < len(self._kept):
            piece = self._kept[number]
        elif 2 * self._arrived <= KEPT_BYTES:
            piece = bytearray(self._arrived)
            self._kept.append(piece)
        else:
            piece = bytearray(min(left, self._arrived))
        self._pieces.append(piece)
        self._filled = 0
        self._room = min(left, len(piece))

    def _keep(self, start: int, end: int) -> None:
        """Moves what is left to the front, so that the next read has room."""
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
