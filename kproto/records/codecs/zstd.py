"""zstd (RFC 8878): zstandard where it is installed, else of Python 3.14 on, else cramjam.

What `compress`, `decompress` and `decompress_into` do, `compression.Codec` says.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .bounded import (
    PIECE_BYTES,
    copied,
    cramjam_for,
    decompress_growing,
    decompress_stream_into,
    decompress_streams,
    decompress_whole_into,
    too_large,
    trusted_bytes,
)
from .zstd_frame import frames_in, with_small_window

if TYPE_CHECKING:
    from .zstd_frame import Frame

__all__ = ["compress", "decompress", "decompress_into"]

#: Room for a result of unknown size; the allocator has as much at hand without asking the system.
_FIRST_ROOM_BYTES: Final = 65536

#: What zstandard says where the room was too small for sound data; of anything else that it says
#: `_measured` finds out what is the matter.
_ROOM_IS_FULL: Final = "did not decompress full frame"

#: A frame that says it becomes more than this many times itself must not refer back beyond 8 MiB.
_FAR_REFERENCE_TIMES: Final = 1000


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

    Raises zstandard's error, or ValueError, on broken data. Room for `limit` bytes may be taken.
    """
    start, end, declared, frame_most = frame
    if declared is not None and declared > limit:
        return None
    part = data[start:end]
    decompressor = _decompressor(zstandard)
    if declared:
        return bytes(decompressor.decompress(part))
    most = min(frame_most, limit)
    if declared is None and most:
        # Java's producers do not declare it: as much room as mostly is enough, else more.
        room = min(most, max(_FIRST_ROOM_BYTES, 8 * len(part)))
        while True:
            try:
                return bytes(decompressor.decompress(part, room))
            except zstandard.ZstdError as error:
                if _ROOM_IS_FULL not in str(error) or room == frame_most:
                    break
                if room == limit:
                    return None
                room = min(most, 8 * room)
    size = _measured(zstandard, part, declared, frame_most, limit)
    return None if size is None else _of_size(decompressor, part, size)


def _contents(zstandard: Any, data: bytes, frames: list[Frame], limit: int) -> bytes | None:
    """What the frames decompress to; None if that is over `limit` bytes."""
    contents = []
    room = limit
    for frame in frames:
        content = _content(zstandard, data, frame, room)
        if content is None:
            return None
        contents.append(content)
        room -= len(content)
    return b"".join(contents)  # of one it makes no copy


def _of_size(decompressor: Any, part: bytes, size: int) -> bytes:
    return bytes(decompressor.decompress(part, size)) if size else b""


def _contents_measured(
    zstandard: Any, data: bytes, frames: list[Frame], limit: int
) -> bytes | None:
    """What the frames decompress to, all gone through before memory is taken for any of it."""
    parts = []
    room = limit
    for start, end, declared, frame_most in frames:
        part = data[start:end]
        size = _measured(zstandard, part, declared, frame_most, room)
        if size is None:
            return None
        parts.append((part, size))
        room -= size
    decompressor = _decompressor(zstandard)
    try:
        return b"".join([_of_size(decompressor, part, size) for part, size in parts])
    except zstandard.ZstdError as error:
        if _ROOM_IS_FULL in str(error):  # the size of one could not be found out
            return None
        raise


def _measured(
    zstandard: Any, frame: bytes, declared: int | None, frame_most: int, limit: int
) -> int | None:
    """How much a frame decompresses to, found out in a small buffer; None if over `limit` bytes.

    One that would need a larger window is read with a small one. Where that fails, the frame may
    refer back further: then it is as much as it says at most, or `limit`.
    """
    if declared is not None and declared > limit:
        return None
    read = with_small_window(frame)
    piece = bytearray(PIECE_BYTES)
    most = min(frame_most, limit)
    size = 0
    try:
        # Not the one that is kept: it would keep the window.
        with zstandard.ZstdDecompressor().stream_reader(read) as reader:
            while count := reader.readinto(piece):
                size += count
                if size > most:
                    break
    except zstandard.ZstdError:
        if read is frame or frame_most > _FAR_REFERENCE_TIMES * len(frame):
            raise
        return most
    if size > frame_most or (declared is not None and size < declared):
        raise ValueError(f"zstd: a frame of {frame_most} bytes at most holds {size} or more")
    return None if size > limit else size


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
        trusted = trusted_bytes(len(data))
        try:
            whole = _contents(zstandard, data, frames, min(limit, trusted))
            if whole is None and limit > trusted:
                whole = _contents_measured(zstandard, data, frames, limit)
        except zstandard.ZstdError as error:
            raise ValueError(f"zstd: {error}") from None
        if whole is None:
            raise too_large(limit)
        return whole
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
    return decompress_stream_into(data, room, zstd.ZstdDecompressor, zstd.ZstdError)
