"""zstd (RFC 8878): zstandard where it is installed, else of Python 3.14 on, else cramjam.

What `compress`, `decompress` and `decompress_into` do, `compression.Codec` says.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .bounded import (
    copied,
    cramjam_for,
    decompress_growing,
    decompress_stream_into,
    decompress_streams,
    decompress_whole_into,
    too_large,
)
from .zstd_frame import frames_in

if TYPE_CHECKING:
    from .zstd_frame import Frame

__all__ = ["compress", "decompress", "decompress_into"]

#: Room for a result of unknown size; the allocator has as much at hand without asking the system.
_FIRST_ROOM_BYTES: Final = 65536

#: What zstandard says where the room was too small for sound data; of anything else that it says
#: `_piece_by_piece` finds out what is the matter.
_ROOM_IS_FULL: Final = "did not decompress full frame"

#: A declared size is allocated in one go if it is no larger than this, or that many times the data.
_TRUSTED_BYTES: Final = 4_194_304
_TRUSTED_TIMES: Final = 64

_PIECE_BYTES: Final = 131_072


@cache
def zstd_of_standard_library() -> Any | None:
    try:
        return import_module("compression.zstd")
    except ImportError:  # before Python 3.14, or built without; each new look takes long
        return None


@cache
def zstandard_package() -> Any | None:
    try:
        return import_module("zstandard")
    except ImportError:
        return None


# zstandard's objects keep what zstd works with from one batch to the next. To make it anew, as the
# other libraries do, takes longer than a batch of 16 KB does: with it such a batch is decompressed
# in 0.4 of the time, and compressed in half. A thread must not share them with another.
_kept = threading.local()


def _compressor(zstandard: Any, level: int) -> Any:
    compressors: dict[int, Any] | None = getattr(_kept, "compressors", None)
    if compressors is None:
        compressors = _kept.compressors = {}
    if level not in compressors:
        compressors.clear()  # some megabytes each at high levels; a producer has one level
        compressors[level] = zstandard.ZstdCompressor(level=level)
    return compressors[level]


def _decompressor(zstandard: Any) -> Any:
    decompressor = getattr(_kept, "decompressor", None)
    if decompressor is None:
        decompressor = _kept.decompressor = zstandard.ZstdDecompressor()
    return decompressor


def _content(zstandard: Any, data: bytes, frame: Frame, limit: int) -> bytes | None:
    """What one frame in `data` decompresses to, by zstandard; None if that is over `limit` bytes.

    Raises ValueError on broken data, which takes no more memory than a small first room, or some
    times what stands before the fault.
    """
    start, end, declared, frame_most = frame
    if end - start < len(data):
        data = data[start:end]
    if declared is not None and declared > limit:
        return None
    decompressor = _decompressor(zstandard)
    most = min(frame_most, limit)
    try:
        if declared is None and most:
            # Java's producers do not declare it: as much room as mostly is enough, else more.
            room = min(most, max(_FIRST_ROOM_BYTES, 8 * len(data)))
            while True:
                try:
                    return bytes(decompressor.decompress(data, room))
                except zstandard.ZstdError as error:
                    if _ROOM_IS_FULL not in str(error) or room == frame_most:
                        break
                    if room == limit:
                        return None
                    room = min(most, 8 * room)
        elif declared and declared <= max(_TRUSTED_BYTES, _TRUSTED_TIMES * len(data)):
            return bytes(decompressor.decompress(data))
        whole = _piece_by_piece(decompressor, data, most)
    except zstandard.ZstdError as error:
        raise ValueError(f"zstd: {error}") from None
    if whole is None and most == frame_most:
        raise ValueError(f"zstd: a frame of {most} bytes at most holds more")
    return whole


def _piece_by_piece(decompressor: Any, data: bytes, limit: int) -> bytes | None:
    """Decompress what declares much beside its size, or nothing, or is broken; as `_content`."""
    pieces = []
    with decompressor.stream_reader(data) as reader:
        while piece := reader.read(_PIECE_BYTES):
            pieces.append(piece)
            limit -= len(piece)
            if limit < 0:
                return None
    return b"".join(pieces)


def compress(data: bytes, level: int) -> bytes:
    zstandard = zstandard_package()
    if zstandard is not None:
        return bytes(_compressor(zstandard, level).compress(data))
    zstd = zstd_of_standard_library()
    if zstd is not None:
        return bytes(zstd.compress(data, level))
    return bytes(cramjam_for("zstd").zstd.compress(data, level))


def decompress(data: bytes, limit: int) -> bytes:
    frames = frames_in(data)
    if limit < 0:
        raise too_large(limit)
    zstandard = zstandard_package()
    if zstandard is not None:
        contents = []
        room = limit
        for frame in frames:
            content = _content(zstandard, data, frame, room)
            if content is None:
                raise too_large(limit)
            contents.append(content)
            room -= len(content)
        return b"".join(contents)  # of one it makes no copy
    zstd = zstd_of_standard_library()
    if zstd is None:
        most = sum(frame_most for _, _, _, frame_most in frames)
        return decompress_growing(cramjam_for("zstd"), "zstd", data, limit, most)
    # There may be several frames, one behind the other.
    return decompress_streams("zstd", data, limit, zstd.ZstdDecompressor, zstd.ZstdError)


def decompress_into(data: bytes, room: memoryview) -> int | None:
    if zstandard_package() is not None:
        try:
            return copied(decompress(data, len(room)), room)
        except ValueError:
            return None
    zstd = zstd_of_standard_library()
    if zstd is None:
        return decompress_whole_into(cramjam_for("zstd"), "zstd", data, room)
    return decompress_stream_into(zstd.ZstdDecompressor(), zstd.ZstdError, data, room)
