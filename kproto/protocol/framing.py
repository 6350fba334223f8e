"""Reads and writes frames. A frame is an int32 with a size in bytes, then as many bytes.

`FrameReader` provides the memory for reads from a socket. A frame that is larger than the shared
buffer is read into several buffers of its own, called pieces. The pieces are then joined to the
`bytes` for the decoder. A piece is allocated only when all previous pieces are full, and is no
larger than all previous pieces together. So the memory follows the received bytes, not the
announced size.

The first pieces, up to `REUSED_BYTES` in total, are kept for the next large frame. If they were
freed, the allocator would return them to the system, and each new allocation would cost a page
fault for every 4 KiB.
"""

from __future__ import annotations

import struct
from typing import Final

from ..wire.errors import EncodeError, ProtocolError
from ..wire.limits import MAX_LENGTH

__all__ = ["DEFAULT_MAX_FRAME_BYTES", "FrameReader", "frame"]

#: Largest frame that is accepted, in bytes. Kafka's brokers refuse requests over 100 MiB
#: (socket.request.max.bytes); a response may have as many bytes of records.
DEFAULT_MAX_FRAME_BYTES: Final = 104_857_600

#: Size in bytes of the buffer that small frames share: a few typical responses fit at once.
SHARED_BUFFER_BYTES: Final = 65_536

#: The pieces that are kept for the next frame have at most this size in bytes, all together: enough
#: for a fetch with the client's defaults.
REUSED_BYTES: Final = 1_048_576

#: glibc returns a freed block to the system if the block is larger than all blocks that were freed
#: before. Allocating such a block again costs page faults. So one block of this size is allocated
#: and freed once; the block takes no memory, because nothing is written to it. Afterwards glibc
#: keeps the blocks of a fetch, the frame and its pieces, for the next fetch.
_UNTOUCHED_BYTES: Final = 8 * REUSED_BYTES

_SIZE = struct.Struct(">i")


def frame(*pieces: bytes | memoryview) -> bytes:
    """Returns the pieces as one frame, with its size. Raises EncodeError for 2 GiB or more."""
    size = sum(map(len, pieces))
    if size > MAX_LENGTH:
        raise EncodeError(f"a frame of {size} bytes; an int32 can hold no more than {MAX_LENGTH}")
    return b"".join((_SIZE.pack(size), *pieces))


class FrameReader:
    """Splits a stream of bytes into frames.

    Either `feed` it with bytes, or read into the memory of `buffer()` and call `advance()` with the
    count; both return the frames that are now complete, without their size. Raises ProtocolError
    for a frame over `max_frame_bytes` or of negative size. The stream can then no longer be split,
    and complete frames that arrived in the same call are not returned.
    """

    def __init__(self, max_frame_bytes: int = DEFAULT_MAX_FRAME_BYTES) -> None:
        self.max_frame_bytes = max_frame_bytes
        self._shared = bytearray(SHARED_BUFFER_BYTES)
        # The bytes of `_shared` from `_start` to `_end` are in no frame yet.
        self._start = 0
        self._end = 0
        # A frame that is larger than the shared buffer: its size (0 if there is none), the number
        # of received bytes, and its pieces; the last piece is filled up to `_filled`, at most to
        # `_piece_limit`.
        self._large_size = 0
        self._received = 0
        self._pieces: list[bytes | bytearray] = []
        self._filled = 0
        self._piece_limit = 0
        self._is_used = False  # True after the first large frame
        self._reusable_pieces: list[bytearray] = []  # the second, third, … of a large frame

    @property
    def pending(self) -> int:
        """Returns how many bytes of an unfinished frame were received."""
        return self._received if self._large_size else self._end - self._start

    @property
    def first_bytes(self) -> bytes:
        """Returns up to eight bytes of the first frame that is not complete, for error messages.

        The bytes begin with the size of the frame, unless the frame is larger than the shared
        buffer: then they begin after the size.
        """
        first = self._pieces[0] if self._pieces else self._shared[self._start : self._end]
        return bytes(first[:8])

    def buffer(self) -> memoryview:
        """Returns the memory for the next read; valid until the next call of any method."""
        if not self._large_size:
            return memoryview(self._shared)[self._end :]
        if self._filled == self._piece_limit:
            self._add_piece()
        return memoryview(self._pieces[-1])[self._filled : self._piece_limit]

    def advance(self, count: int) -> list[bytes]:
        """Records that `count` bytes were read into the buffer; returns the complete frames."""
        if not self._large_size:
            self._end += count
            return self._split_frames()
        self._received += count
        self._filled += count
        if self._received < self._large_size:
            return []
        done = b"".join((*self._pieces[:-1], memoryview(self._pieces[-1])[: self._piece_limit]))
        self._pieces.clear()
        self._large_size = 0
        if not self._is_used:
            self._is_used = True
            bytes(_UNTOUCHED_BYTES)
        return [done]

    def feed(self, data: bytes) -> list[bytes]:
        """Adds received bytes; returns the frames that are complete now."""
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

    def _split_frames(self) -> list[bytes]:
        frames: list[bytes] = []
        shared, start, end = self._shared, self._start, self._end
        while end - start >= 4:
            (size,) = _SIZE.unpack_from(shared, start)
            if not 0 <= size <= self.max_frame_bytes:
                raise ProtocolError(_wrong_size(size, self.max_frame_bytes))
            stop = start + 4 + size
            if stop > end:
                if end - start == SHARED_BUFFER_BYTES:
                    self._start_large_frame(size)
                    return frames
                break
            frames.append(bytes(shared[start + 4 : stop]))
            start = stop
        self._keep_remaining(start, end)
        return frames

    def _start_large_frame(self, size: int) -> None:
        """Starts to collect a large frame; its first piece is the content of the shared buffer."""
        first = bytes(memoryview(self._shared)[4:])
        self._pieces.append(first)
        self._large_size = size
        self._received = self._filled = self._piece_limit = len(first)
        self._start = self._end = 0

    def _add_piece(self) -> None:
        """Adds a piece (a buffer) for the next bytes of a large frame.

        Takes a piece that was kept for reuse if there is one. Otherwise allocates a piece with as
        many bytes as the frame has received so far. If the piece cannot be kept for reuse, it is no
        larger than the rest of the frame.
        """
        left = self._large_size - self._received
        number = len(self._pieces) - 1
        if number < len(self._reusable_pieces):
            piece = self._reusable_pieces[number]
        elif 2 * self._received <= REUSED_BYTES:
            piece = bytearray(self._received)
            self._reusable_pieces.append(piece)
        else:
            piece = bytearray(min(left, self._received))
        self._pieces.append(piece)
        self._filled = 0
        self._piece_limit = min(left, len(piece))

    def _keep_remaining(self, start: int, end: int) -> None:
        """Moves the remaining bytes to the front, so that the next read has space."""
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
