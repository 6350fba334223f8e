"""Implements zstd (RFC 8878) with the first available of three libraries.

They are `zstandard`, `compression.zstd` (Python 3.14) and cramjam.

`compression.Codec` documents `compress`, `decompress` and `decompress_into`.
"""

from __future__ import annotations

import threading
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from .bounded import (
    CHUNK_BYTES,
    copy_into,
    cramjam_for,
    decompress_growing,
    decompress_stream_into,
    decompress_streams,
    decompress_whole_into,
    too_large_error,
    trusted_bytes,
)
from .zstd_frame import frames_in, with_small_window

if TYPE_CHECKING:
    from .zstd_frame import Frame

__all__ = ["compress", "decompress", "decompress_into"]

#: The size of the first output buffer if the frame does not declare its decompressed size. So small
#: a buffer is allocated without a system call.
_FIRST_OUTPUT_BYTES: Final = 65536

#: zstandard's error text if the output buffer is too small for valid data.
_OUTPUT_IS_FULL: Final = "did not decompress full frame"

#: A frame that may decompress to more than this many times its size must be readable with a window
#: of 8 MiB.
_FAR_REFERENCE_TIMES: Final = 1000


@cache
def zstd_of_standard_library() -> Any | None:
    try:
        return import_module("compression.zstd")
    except ImportError:  # before Python 3.14, or Python was built without zstd
        return None


@cache
def zstandard_package() -> Any | None:
    try:
        return import_module("zstandard")
    except ImportError:
        return None


# A zstandard object reuses its working memory for the next batch; the other libraries allocate it
# for each batch. With a reused object a batch of 16 KB takes 0.4 of the time to decompress, and
# half of the time to compress. Threads must not share an object.
_thread_local = threading.local()


def _compressor(zstandard: Any, level: int) -> Any:
    compressors: dict[int, Any] | None = getattr(_thread_local, "compressors", None)
    if compressors is None:
        compressors = _thread_local.compressors = {}
    if level not in compressors:
        compressors.clear()  # each takes megabytes at high levels, and a producer has one level
        compressors[level] = zstandard.ZstdCompressor(level=level)
    return compressors[level]


def _decompressor(zstandard: Any) -> Any:
    decompressor = getattr(_thread_local, "decompressor", None)
    if decompressor is None:
        decompressor = _thread_local.decompressor = zstandard.ZstdDecompressor()
    return decompressor


def _content(zstandard: Any, data: bytes, frame: Frame, limit: int) -> bytes | None:
    """Returns the content of one frame in `data`; None if it has more than `limit` bytes.

    Raises zstandard's error, or ValueError, on corrupt data. May allocate `limit` bytes.
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
        # Java's producers do not declare the size: try a buffer that is usually large enough, then
        # buffers of 8 times the size.
        size = min(most, max(_FIRST_OUTPUT_BYTES, 8 * len(part)))
        while True:
            try:
                return bytes(decompressor.decompress(part, size))
            except zstandard.ZstdError as error:
                if _OUTPUT_IS_FULL not in str(error) or size == frame_most:
                    break
                if size == limit:
                    return None
                size = min(most, 8 * size)
    measured = _measured(zstandard, part, declared, frame_most, limit)
    return None if measured is None else _of_size(decompressor, part, measured)


def _contents(zstandard: Any, data: bytes, frames: list[Frame], limit: int) -> bytes | None:
    """Returns the content of all frames; None if it has more than `limit` bytes."""
    contents = []
    bytes_left = limit
    for frame in frames:
        content = _content(zstandard, data, frame, bytes_left)
        if content is None:
            return None
        contents.append(content)
        bytes_left -= len(content)
    return b"".join(contents)  # makes no copy if there is only one element


def _of_size(decompressor: Any, part: bytes, size: int) -> bytes:
    return bytes(decompressor.decompress(part, size)) if size else b""


def _contents_measured(
    zstandard: Any, data: bytes, frames: list[Frame], limit: int
) -> bytes | None:
    """Measures all frames, then allocates and returns their content.

    Returns None if the content has more than `limit` bytes.
    """
    parts = []
    bytes_left = limit
    for start, end, declared, frame_most in frames:
        part = data[start:end]
        size = _measured(zstandard, part, declared, frame_most, bytes_left)
        if size is None:
            return None
        parts.append((part, size))
        bytes_left -= size
    decompressor = _decompressor(zstandard)
    try:
        return b"".join([_of_size(decompressor, part, size) for part, size in parts])
    except zstandard.ZstdError as error:
        if _OUTPUT_IS_FULL in str(error):  # the size of one frame could not be measured
            return None
        raise


def _measured(
    zstandard: Any, frame: bytes, declared: int | None, frame_most: int, limit: int
) -> int | None:
    """Returns the decompressed size of a frame in bytes; None if it exceeds `limit`.

    Measures the size by decompressing the frame in small chunks. `declared` is the decompressed
    size that the frame declares, or None; `frame_most` is the largest decompressed size that the
    frame can have. If the frame declares a window above 8 MiB, decompresses it with a window of 8
    MiB. This decompression fails if the frame is corrupt, or refers to bytes further back than 8
    MiB. After such a failure, returns the smaller of `frame_most` and `limit`; if `frame_most` is
    more than `_FAR_REFERENCE_TIMES` times the size of the frame, treats the frame as corrupt.

    Raises zstandard's error, or ValueError, for a corrupt frame.
    """
    if declared is not None and declared > limit:
        return None
    read = with_small_window(frame)
    chunk = bytearray(CHUNK_BYTES)
    most = min(frame_most, limit)
    size = 0
    try:
        # A new decompressor, because the reused one would keep the large window.
        with zstandard.ZstdDecompressor().stream_reader(read) as reader:
            while count := reader.readinto(chunk):
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
        raise too_large_error(limit)
    if frames:
        data = data[: frames[-1][1]]  # without a last frame that is cut
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
            raise too_large_error(limit)
        return whole
    zstd = zstd_of_standard_library()
    if zstd is None:
        most = sum(frame_most for _, _, _, frame_most in frames)
        return decompress_growing(cramjam_for("zstd"), "zstd", data, limit, most)
    # The data may be several consecutive frames.
    return decompress_streams("zstd", data, limit, zstd.ZstdDecompressor, zstd.ZstdError)


def decompress_into(data: bytes, output: memoryview) -> int | None:
    if zstandard_package() is not None:
        try:
            return copy_into(decompress(data, len(output)), output)
        except ValueError:
            return None
    zstd = zstd_of_standard_library()
    if zstd is None:
        return decompress_whole_into(cramjam_for("zstd"), "zstd", data, output)
    return decompress_stream_into(data, output, zstd.ZstdDecompressor, zstd.ZstdError)
