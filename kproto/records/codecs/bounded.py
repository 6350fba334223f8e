"""Decompresses with a bound on the decompressed size; the codec modules share these functions.

The functions also limit the memory that hostile data can claim. If the result is far larger than
the data, the data is first decompressed in small chunks that are only counted. Memory for the
result is allocated only after all data proved valid.
"""

from __future__ import annotations

import os
from importlib import import_module
from io import BytesIO
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...wire.errors import MissingCodecError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = [
    "CHUNK_BYTES",
    "NextStream",
    "copy_into",
    "cramjam_for",
    "decompress_growing",
    "decompress_stream_into",
    "decompress_streams",
    "decompress_whole_into",
    "sized_output",
    "too_large_error",
    "trusted_bytes",
]

#: The position of the next stream in the data, and header bytes to decompress before the stream.
NextStream: TypeAlias = "tuple[int, bytes]"
#: Returns the stream that begins at a position of the data; None if no stream begins there.
FindStream: TypeAlias = "Callable[[bytes, int], NextStream | None]"

#: cramjam's error text (from Rust's standard library) if the buffer is too small for valid data.
_BUFFER_IS_FULL: Final = "failed to write whole buffer"

#: A result of at most this many bytes, or of at most this many times the size of the data, is
#: allocated without a check of the data.
_TRUSTED_BYTES: Final = 4_194_304
_TRUSTED_TIMES: Final = 64

#: If the largest possible result is more than this many times the bound, the result is decompressed
#: without a measurement of its size.
_MOST_MEASURED_TIMES: Final = 8

#: The size in bytes of the buffer that measures a decompressed size.
CHUNK_BYTES: Final = 131_072

#: The maximum number of bytes that a decompressor returns in a call. Only the first call for the
#: first stream can return more, about `_TRUSTED_BYTES`.
_STREAM_CHUNK_BYTES: Final = 1_048_576

#: The number of compressed bytes that a decompressor gets in a call, for all streams except the
#: first. The first call passes the least number, each later call twice as many, up to the most.
_LEAST_GIVEN_BYTES: Final = 256
_MOST_GIVEN_BYTES: Final = 65_536


def too_large_error(limit: int) -> ValueError:
    """Returns the error for data that decompresses to more than `limit` bytes."""
    return ValueError(f"decompresses to more than the bound of {limit} bytes")


def cramjam_for(codec: str) -> Any:
    """Imports and returns `cramjam`. If it is missing, raises MissingCodecError for `codec`."""
    try:
        return import_module("cramjam")
    except ImportError:
        raise MissingCodecError(
            f"compression {codec!r} needs a package that is not installed; "
            "install the extra kproto[compression]"
        ) from None


def copy_into(data: bytes, output: memoryview) -> int | None:
    """Copies `data` to the start of `output`; returns its size, or None if `output` is smaller."""
    if len(data) > len(output):
        return None
    output[: len(data)] = data
    return len(data)


def trusted_bytes(given: int) -> int:
    """Returns how many bytes may be allocated for the result before the data is checked.

    `given` is the size of the compressed data in bytes.
    """
    return max(_TRUSTED_BYTES, _TRUSTED_TIMES * given)


def sized_output(size: int) -> BytesIO:
    """Returns a writable file of `size` bytes whose `getvalue` makes no copy."""
    output = BytesIO()
    if size:
        output.seek(size - 1)
        output.write(b"\0")
        output.seek(0)
    return output


def _always(data: bytes, pos: int) -> NextStream:
    return pos, b""


def decompress_stream_into(
    data: bytes,
    output: memoryview,
    begin: Callable[[], Any],
    broken: type[Exception],
    next_stream: FindStream = _always,
) -> int | None:
    """Decompresses the streams that follow one another in `data` into `output`.

    `begin()` is called for each stream and returns a new decompressor; `broken` is the exception of
    the decompressor. `next_stream` is called with the data and the end of each stream; if it
    returns None, all later bytes are ignored. Returns the number of bytes written; None if the
    data is broken or empty, or if `output` is too small.
    """
    if not data or not output:
        return None
    size = len(output)
    try:
        stream = begin()
        chunk = stream.decompress(data, min(size, _TRUSTED_BYTES))
        if stream.eof and not stream.unused_data:
            return copy_into(chunk, output)
        written = 0
        for found in _chunks(data, begin, next_stream, stream, chunk):
            start = written
            written += len(found)
            if written > size:
                return None
            output[start:written] = found
    except (broken, _DataEndsError):
        return None
    return written


def decompress_whole_into(cramjam: Any, codec: str, data: bytes, output: memoryview) -> int | None:
    """Decompresses with cramjam into `output`; returns the number of bytes written.

    Returns None if the data is broken or empty, or if `output` is too small.
    """
    if not data or not output:
        return None
    try:
        return int(getattr(cramjam, codec).decompress_into(data, output))
    except (cramjam.DecompressionError, OSError):
        return None


def decompress_streams(
    codec: str,
    data: bytes,
    limit: int,
    begin: Callable[[], Any],
    broken: type[Exception],
    next_stream: FindStream = _always,
) -> bytes:
    """Returns the decompressed content of the streams that follow one another in `data`.

    `begin()` is called for each stream and returns a new decompressor; `broken` is the exception
    that the decompressor raises for broken data. `next_stream` is called with the data and the end
    of each stream; if it returns None, all later bytes are ignored. Raises ValueError if the data
    is broken, or decompresses to more than `limit` bytes.
    """
    if not data:
        raise ValueError(f"{codec}: no data")
    if limit < 0:  # the decompressor would take the maximum length, limit + 1 = 0, for no bound
        raise too_large_error(limit)
    try:
        stream = begin()
        chunk = stream.decompress(data, min(limit, _TRUSTED_BYTES) + 1)
        if stream.eof and not stream.unused_data and len(chunk) <= limit:
            return bytes(chunk)  # usually the first call returns the whole result
        return _all_chunks(data, limit, begin, next_stream, stream, chunk)
    except broken as error:
        raise ValueError(f"{codec}: {error}") from None
    except _DataEndsError:
        raise ValueError(f"{codec}: the data ends before the stream does") from None


class _DataEndsError(Exception):
    """Raised if the compressed data ends in the middle of a stream."""


def _all_chunks(
    data: bytes,
    limit: int,
    begin: Callable[[], Any],
    next_stream: FindStream,
    stream: Any,
    chunk: bytes,
) -> bytes:
    """Returns the decompressed content of all streams in `data`.

    `stream` is the decompressor of the first stream; it was called with all data and returned
    `chunk`. If the result is far larger than the data, its memory is allocated only after all data
    proved valid.
    """
    trusted = trusted_bytes(len(data))
    size = 0
    output = BytesIO()
    for found in _chunks(data, begin, next_stream, stream, chunk):
        size += len(found)
        if size > limit:
            raise too_large_error(limit)
        if size <= trusted:
            output.write(found)
        elif output.tell():  # the result is not trusted: count the later chunks only
            output = BytesIO()
    if size > trusted:
        output = sized_output(size)
        stream = begin()
        chunk = stream.decompress(data, _STREAM_CHUNK_BYTES)
        for found in _chunks(data, begin, next_stream, stream, chunk):
            output.write(found)
    return output.getvalue()


def _chunks(
    data: bytes,
    begin: Callable[[], Any],
    next_stream: FindStream,
    stream: Any,
    chunk: bytes,
) -> Iterator[bytes]:
    """Yields `chunk`, which `stream` has returned, then the later chunks of all streams.

    Each of the later streams gets a small part of the data first, then larger parts. A decompressor
    copies the data that it does not consume (`unused_data`, zlib's `unconsumed_tail`). If a
    decompressor got all remaining data in each call, the time for many small streams would be
    quadratic. Raises _DataEndsError if the data ends inside a stream.
    """
    given = data
    pos = 0
    step = _MOST_GIVEN_BYTES
    while True:
        if chunk:
            yield chunk
        # zlib returns the data that it did not consume; zstd keeps it and continues with empty
        # input.
        left = len(stream.unused_data) + len(getattr(stream, "unconsumed_tail", b""))
        pos += len(given) - left
        if stream.eof:
            found = None if pos == len(data) else next_stream(data, pos)
            if found is None:
                return
            pos, header = found
            stream = begin()
            if header:
                stream.decompress(header, 1)  # returns nothing
            step = _LEAST_GIVEN_BYTES
        elif pos == len(data) and not chunk:
            raise _DataEndsError
        given = data[pos : pos + step]
        chunk = stream.decompress(given, _STREAM_CHUNK_BYTES)
        step = min(2 * step, _MOST_GIVEN_BYTES)


def decompress_growing(cramjam: Any, codec: str, data: bytes, limit: int, most: int) -> bytes:
    """Decompresses into a buffer that grows until the result fits.

    cramjam has no option for a bound, but it reports a full buffer instead of writing past it.
    The buffer then grows, up to the smaller of `limit` and `most`. `most` is the largest size in
    bytes that the codec can decompress this data to. Before the buffer grows beyond
    `trusted_bytes`, the size of the result is measured, unless `most` is more than
    `_MOST_MEASURED_TIMES` times `limit`. Raises ValueError if the data is broken, or decompresses
    to more than `limit` bytes.
    """
    if not data:
        raise ValueError(f"{codec}: no data")
    if limit < 0:
        raise too_large_error(limit)
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
        # Copies the result, so that the whole buffer is freed. A buffer shortened to the result
        # would leave a gap in memory that is too small for the next buffer.
        return bytes(memoryview(buffer)[:written])
    output = sized_output(size)
    with output.getbuffer() as output_buffer:
        written = decompress_into(data, output_buffer)
    output.truncate(written)
    return output.getvalue()


def _measured(cramjam: Any, codec: str, data: bytes, limit: int, otherwise: int) -> int:
    """Returns the decompressed size of `data` in bytes, measured by writing to the null device.

    Returns `otherwise` if the null device cannot be opened. Raises ValueError if the data is
    broken, or decompresses to more than `limit` bytes.
    """
    try:
        nowhere = cramjam.File(os.devnull)
    except OSError:
        return otherwise
    try:
        size = int(getattr(cramjam, codec).decompress_into(data, nowhere))
    except (cramjam.DecompressionError, OSError) as error:
        raise ValueError(f"{codec}: {error}") from None
    if size > limit:
        raise too_large_error(limit)
    return size
