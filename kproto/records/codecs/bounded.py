"""Decompressing with a bound on what comes out: what several codecs share.

Owns the ways to keep a library to that bound, of streams and of buffers. Knows no codec, and no
library but `cramjam`, which several of them take.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

from ...wire.errors import MissingCodecError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "copied",
    "cramjam_for",
    "decompress_growing",
    "decompress_stream_into",
    "decompress_streams",
    "decompress_whole_into",
    "too_large",
]

#: What cramjam says where a buffer was too small for sound data: Rust's words.
_BUFFER_IS_FULL: Final = "failed to write whole buffer"

#: What a stream behind another is given first of the data.
_FIRST_PIECE_BYTES: Final = 256


def too_large(limit: int) -> ValueError:
    """The error of data that comes to more than `limit` bytes."""
    return ValueError(f"decompresses to more than the bound of {limit} bytes")


def cramjam_for(codec: str) -> Any:
    """The package `cramjam`, for the codec of that name. Raises MissingCodecError."""
    try:
        return import_module("cramjam")
    except ImportError:
        raise MissingCodecError(
            f"compression {codec!r} needs a package that is not installed; "
            "install the extra kproto[compression]"
        ) from None


def copied(data: bytes, room: memoryview) -> int | None:
    """Put `data` at the start of `room`; its size in bytes, None if it does not fit."""
    if len(data) > len(room):
        return None
    room[: len(data)] = data
    return len(data)


def decompress_stream_into(
    stream: Any, broken: type[Exception], data: bytes, room: memoryview
) -> int | None:
    """Decompress the one stream that `data` is; None if something stands behind it."""
    if not data or not room:
        return None
    try:
        whole = stream.decompress(data, len(room))
    except broken:
        return None
    return copied(whole, room) if stream.eof and not stream.unused_data else None


def decompress_whole_into(cramjam: Any, codec: str, data: bytes, room: memoryview) -> int | None:
    """Decompress with cramjam, which does not write past a buffer."""
    if not data or not room:
        return None
    try:
        return int(getattr(cramjam, codec).decompress_into(data, room))
    except (cramjam.DecompressionError, OSError):
        return None


def decompress_streams(
    codec: str, data: bytes, limit: int, begin: Callable[[], Any], broken: type[Exception]
) -> bytes:
    """Decompress streams that stand one behind the other, each with an object of `begin()`.

    The first gets all of the data, since mostly there is no other. A later one gets a small piece,
    then larger ones: an object copies what lies behind its stream, and with all of the rest each
    time, the work for many small streams would grow with the square of their number.
    """
    if not data:
        raise ValueError(f"{codec}: no data")
    if limit < 0:  # one more, the most that is asked for below, would be 0: no bound at all
        raise too_large(limit)
    pieces = []
    room = limit
    pos = 0
    step = len(data)
    while pos < len(data):
        stream = begin()
        while not stream.eof:
            given = data[pos : pos + step]
            if not given:
                raise ValueError(f"{codec}: the data ends before the stream does")
            try:
                piece = stream.decompress(given, room + 1)
            except broken as error:
                raise ValueError(f"{codec}: {error}") from None
            room -= len(piece)
            if room < 0:
                raise too_large(limit)
            if piece:
                pieces.append(piece)
            pos += len(given) - len(stream.unused_data)
            step *= 2
        step = _FIRST_PIECE_BYTES
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def decompress_growing(cramjam: Any, codec: str, data: bytes, limit: int, most: int) -> bytes:
    """Decompress into a buffer that grows until the result fits.

    cramjam has no bound of its own, but does not write past a buffer, and says whether that was
    full. If so there may be more, up to the smaller of `limit` and `most`, which data of that form
    can stand for. So broken data takes some times the memory of what stands before the fault.
    """
    if not data:
        raise ValueError(f"{codec}: no data")
    if limit < 0:
        raise too_large(limit)
    most = min(limit, most)
    size = min(most, max(65536, 4 * len(data)))
    while True:
        buffer = bytearray(size)
        try:
            written = getattr(cramjam, codec).decompress_into(data, buffer)
        except (cramjam.DecompressionError, OSError) as error:
            if size == most or _BUFFER_IS_FULL not in str(error):
                raise ValueError(
                    f"{codec}: {error} (broken, or more than the bound of {limit} bytes)"
                ) from None
            del buffer  # before the next one is made
            size = min(most, 8 * size)
        else:
            # A copy, then all of the buffer freed: cut to size, it would leave a hole in memory
            # that the next one does not fit into.
            return bytes(memoryview(buffer)[:written])
