"""Decompressing with a bound on what comes out: what several codecs share.

Owns the ways to keep a library to that bound, of streams and of buffers, and how far data is
trusted: what grows to much more than it is, is gone through once in a small buffer, and memory for
the result is taken when it is known to be sound. Knows no codec, and no library but `cramjam`,
which several of them take.
"""

from __future__ import annotations

import os
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final

from ...wire.errors import MissingCodecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "PIECE_BYTES",
    "copied",
    "cramjam_for",
    "decompress_growing",
    "decompress_stream_into",
    "decompress_streams",
    "decompress_whole_into",
    "room_of",
    "too_large",
    "trusted_bytes",
]

#: What cramjam says where a buffer was too small for sound data: Rust's words.
_BUFFER_IS_FULL: Final = "failed to write whole buffer"

#: A result is made in one go if it is no larger than this, or that many times the data.
_TRUSTED_BYTES: Final = 4_194_304
_TRUSTED_TIMES: Final = 64

#: Data that could come to this many times the bound is not decompressed for its size alone.
_MOST_MEASURED_TIMES: Final = 8

#: What is decompressed at a time where the whole would be too much.
PIECE_BYTES: Final = 131_072

#: What a stream gives at a time, behind the first `_TRUSTED_BYTES`.
_STREAM_PIECE_BYTES: Final = 1_048_576

#: What a stream is given of the data: one behind another at first, and later at most.
_LEAST_GIVEN_BYTES: Final = 256
_MOST_GIVEN_BYTES: Final = 65_536


def too_large(limit: int) -> ValueError:
    """Returns the error of data that comes to more than `limit` bytes."""
    return ValueError(f"decompresses to more than the bound of {limit} bytes")


def cramjam_for(codec: str) -> Any:
    """Returns the package `cramjam`, for the codec of that name. Raises MissingCodecError."""
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


def trusted_bytes(given: int) -> int:
    """Returns how much `given` bytes may become before they are gone through for faults."""
    return max(_TRUSTED_BYTES, _TRUSTED_TIMES * given)


def room_of(size: int) -> BytesIO:
    """`size` bytes to be written over; `getvalue` gives the bytes without a copy."""
    room = BytesIO()
    if size:
        room.seek(size - 1)
        room.write(b"\0")
        room.seek(0)
    return room


def decompress_stream_into(
    data: bytes, room: memoryview, begin: Callable[[], Any], broken: type[Exception]
) -> int | None:
    """Decompress streams into `room`, each with an object of `begin()`; None if that fails."""
    if not data or not room:
        return None
    size = len(room)
    try:
        stream = begin()
        piece = stream.decompress(data, min(size, _TRUSTED_BYTES))
        if stream.eof and not stream.unused_data:
            return copied(piece, room)
        written = 0
        for found in _pieces(data, begin, stream, piece):
            start = written
            written += len(found)
            if written > size:
                return None
            room[start:written] = found
    except (broken, _DataEndsError):
        return None
    return written


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
    """Decompress streams that stand one behind the other, each with an object of `begin()`."""
    if not data:
        raise ValueError(f"{codec}: no data")
    if limit < 0:  # one more, the most that is asked for below, would be 0: no bound at all
        raise too_large(limit)
    try:
        stream = begin()
        piece = stream.decompress(data, min(limit, _TRUSTED_BYTES) + 1)
        if stream.eof and not stream.unused_data and len(piece) <= limit:
            return bytes(piece)  # mostly it is all
        return _all_pieces(data, limit, begin, stream, piece)
    except broken as error:
        raise ValueError(f"{codec}: {error}") from None
    except _DataEndsError:
        raise ValueError(f"{codec}: the data ends before the stream does") from None


class _DataEndsError(Exception):
    """The data ends before the stream does."""


def _all_pieces(
    data: bytes, limit: int, begin: Callable[[], Any], stream: Any, piece: bytes
) -> bytes:
    """What the streams of `data` give, the first of which was given all and gave `piece`.

    Where that is much beside the data, memory is taken for it when all was seen to be sound.
    """
    trusted = trusted_bytes(len(data))
    size = 0
    kept = BytesIO()
    for found in _pieces(data, begin, stream, piece):
        size += len(found)
        if size > limit:
            raise too_large(limit)
        if size <= trusted:
            kept.write(found)
        elif kept.tell():  # from here on only counted
            kept = BytesIO()
    if size > trusted:
        kept = room_of(size)
        stream = begin()
        piece = stream.decompress(data, _STREAM_PIECE_BYTES)
        for found in _pieces(data, begin, stream, piece):
            kept.write(found)
    return kept.getvalue()


def _pieces(data: bytes, begin: Callable[[], Any], stream: Any, piece: bytes) -> Iterator[bytes]:
    """`piece`, which the first stream gave of all `data`, then what else it and later ones give.

    A later one gets a small part of the data, then larger ones: an object copies what lies behind
    its stream, and with all of the rest each time, the work for many small streams would grow with
    the square of their number. The same holds for zlib and the data that it has not come to.
    """
    given = data
    pos = 0
    step = _MOST_GIVEN_BYTES
    while True:
        if piece:
            yield piece
        # zlib gives back what it has not come to; zstd keeps it, and gives on for no more data.
        left = len(stream.unused_data) + len(getattr(stream, "unconsumed_tail", b""))
        pos += len(given) - left
        if stream.eof:
            if pos == len(data):
                return
            stream = begin()
            step = _LEAST_GIVEN_BYTES
        elif pos == len(data) and not piece:
            raise _DataEndsError
        given = data[pos : pos + step]
        piece = stream.decompress(given, _STREAM_PIECE_BYTES)
        step = min(2 * step, _MOST_GIVEN_BYTES)


def decompress_growing(cramjam: Any, codec: str, data: bytes, limit: int, most: int) -> bytes:
    """Decompress into a buffer that grows until the result fits.

    cramjam has no bound of its own, but does not write past a buffer, and says whether that was
    full. If so there may be more, up to the smaller of `limit` and `most`, which data of that form
    can stand for. So broken data takes some times the memory of what stands before the fault, or
    none if it would be much beside the data.
    """
    if not data:
        raise ValueError(f"{codec}: no data")
    if limit < 0:
        raise too_large(limit)
    could_be = most
    most = min(limit, most)
    size = min(most, max(65536, 4 * len(data)))
    trusted = trusted_bytes(len(data))
    while True:
        try:
            return _decompress_sized(cramjam, codec, data, size)
        except (cramjam.DecompressionError, OSError) as error:
            if size == most or _BUFFER_IS_FULL not in str(error):
                raise ValueError(
                    f"{codec}: {error} (broken, or more than the bound of {limit} bytes)"
                ) from None
        size = min(most, 8 * size)
        if size > trusted and could_be <= _MOST_MEASURED_TIMES * limit:
            most = min(most, _measured(cramjam, codec, data, limit, most))
            size = most


def _decompress_sized(cramjam: Any, codec: str, data: bytes, size: int) -> bytes:
    decompress_into = getattr(cramjam, codec).decompress_into
    if size <= _TRUSTED_BYTES:
        buffer = bytearray(size)
        written = decompress_into(data, buffer)
        # A copy, then all of the buffer freed: cut to size, it would leave a hole in memory
        # that the next one does not fit into.
        return bytes(memoryview(buffer)[:written])
    room = room_of(size)
    with room.getbuffer() as buffer_of_room:
        written = decompress_into(data, buffer_of_room)
    room.truncate(written)
    return room.getvalue()


def _measured(cramjam: Any, codec: str, data: bytes, limit: int, otherwise: int) -> int:
    """How much `data` decompresses to; `otherwise` where there is nothing to throw it into."""
    try:
        nowhere = cramjam.File(os.devnull)
    except OSError:
        return otherwise
    try:
        size = int(getattr(cramjam, codec).decompress_into(data, nowhere))
    except (cramjam.DecompressionError, OSError) as error:
        raise ValueError(f"{codec}: {error}") from None
    if size > limit:
        raise too_large(limit)
    return size
