"""Decompresses with a bound on the size of the result; several codecs share this.

Bounds libraries that decompress streams or whole buffers, and limits the memory that hostile data
can claim: data that grows far beyond its own size is first decompressed once into a small buffer,
and memory for the result is allocated only after the data proved valid. Knows no codec, and no
library except `cramjam`, which several codecs use.
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
    "CHUNK_BYTES",
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

#: cramjam's error text when a buffer was too small for valid data; the words are Rust's.
_BUFFER_IS_FULL: Final = "failed to write whole buffer"

#: A result of at most this size, or at most this many times the data, is allocated at once.
_TRUSTED_BYTES: Final = 4_194_304
_TRUSTED_TIMES: Final = 64

#: Data whose largest possible result is above this many times the bound is not measured first.
_MOST_MEASURED_TIMES: Final = 8

#: The bytes to decompress at a time when the whole result would be too much.
CHUNK_BYTES: Final = 131_072

#: The bytes that a stream returns at a time after the first `_TRUSTED_BYTES`.
_STREAM_CHUNK_BYTES: Final = 1_048_576

#: The bytes of data that a stream gets at a time: the least for a new stream, and the most later.
_LEAST_GIVEN_BYTES: Final = 256
_MOST_GIVEN_BYTES: Final = 65_536


def too_large_error(limit: int) -> ValueError:
    """Returns the error for data that decompresses to more than `limit` bytes."""
    return ValueError(f"decompresses to more than the bound of {limit} bytes")


def cramjam_for(codec: str) -> Any:
    """Returns the package `cramjam`; raises MissingCodecError, which names `codec`, without it."""
    try:
        return import_module("cramjam")
    except ImportError:
        raise MissingCodecError(
            f"compression {codec!r} needs a package that is not installed; "
            "install the extra kproto[compression]"
        ) from None


def copy_into(data: bytes, output: memoryview) -> int | None:
    """Copies `data` to the start of `output`; returns its size in bytes, None if too large."""
    if len(data) > len(output):
        return None
    output[: len(data)] = data
    return len(data)


def trusted_bytes(given: int) -> int:
    """Returns the result size in bytes up to which `given` bytes of data are not checked first."""
    return max(_TRUSTED_BYTES, _TRUSTED_TIMES * given)


def sized_output(size: int) -> BytesIO:
    """Returns a writable file of `size` bytes whose `getvalue` makes no copy."""
    output = BytesIO()
    if size:
        output.seek(size - 1)
        output.write(b"\0")
        output.seek(0)
    return output


def decompress_stream_into(
    data: bytes, output: memoryview, begin: Callable[[], Any], broken: type[Exception]
) -> int | None:
    """Decompresses streams into `output`, each with a new `begin()`; returns None on failure."""
    if not data or not output:
        return None
    size = len(output)
    try:
        stream = begin()
        chunk = stream.decompress(data, min(size, _TRUSTED_BYTES))
        if stream.eof and not stream.unused_data:
            return copy_into(chunk, output)
        written = 0
        for found in _chunks(data, begin, stream, chunk):
            start = written
            written += len(found)
            if written > size:
                return None
            output[start:written] = found
    except (broken, _DataEndsError):
        return None
    return written


def decompress_whole_into(cramjam: Any, codec: str, data: bytes, output: memoryview) -> int | None:
    """Decompresses with cramjam, which does not write past a buffer; returns None on failure."""
    if not data or not output:
        return None
    try:
        return int(getattr(cramjam, codec).decompress_into(data, output))
    except (cramjam.DecompressionError, OSError):
        return None


def decompress_streams(
    codec: str, data: bytes, limit: int, begin: Callable[[], Any], broken: type[Exception]
) -> bytes:
    """Decompresses streams that follow one another, each with an object of `begin()`."""
    if not data:
        raise ValueError(f"{codec}: no data")
    if limit < 0:  # limit + 1, the maximum length below, would be 0, which means no bound
        raise too_large_error(limit)
    try:
        stream = begin()
        chunk = stream.decompress(data, min(limit, _TRUSTED_BYTES) + 1)
        if stream.eof and not stream.unused_data and len(chunk) <= limit:
            return bytes(chunk)  # mostly the whole result
        return _all_chunks(data, limit, begin, stream, chunk)
    except broken as error:
        raise ValueError(f"{codec}: {error}") from None
    except _DataEndsError:
        raise ValueError(f"{codec}: the data ends before the stream does") from None


class _DataEndsError(Exception):
    """Raised when the data ends before the stream does."""


def _all_chunks(
    data: bytes, limit: int, begin: Callable[[], Any], stream: Any, chunk: bytes
) -> bytes:
    """Returns the result of all streams in `data`; the first got all data and returned `chunk`.

    A result far larger than the data is allocated only after all of it proved valid.
    """
    trusted = trusted_bytes(len(data))
    size = 0
    output = BytesIO()
    for found in _chunks(data, begin, stream, chunk):
        size += len(found)
        if size > limit:
            raise too_large_error(limit)
        if size <= trusted:
            output.write(found)
        elif output.tell():  # from here on the chunks are only counted
            output = BytesIO()
    if size > trusted:
        output = sized_output(size)
        stream = begin()
        chunk = stream.decompress(data, _STREAM_CHUNK_BYTES)
        for found in _chunks(data, begin, stream, chunk):
            output.write(found)
    return output.getvalue()


def _chunks(data: bytes, begin: Callable[[], Any], stream: Any, chunk: bytes) -> Iterator[bytes]:
    """Yields `chunk`, which the first stream returned, then the rest of that and of later streams.

    A later stream gets a small part of the data, then larger ones. A decompressor copies the data
    behind its stream, so that passing all remaining data each time would make the work for many
    small streams quadratic. The same holds for zlib and its unconsumed tail.
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
            if pos == len(data):
                return
            stream = begin()
            step = _LEAST_GIVEN_BYTES
        elif pos == len(data) and not chunk:
            raise _DataEndsError
        given = data[pos : pos + step]
        chunk = stream.decompress(given, _STREAM_CHUNK_BYTES)
        step = min(2 * step, _MOST_GIVEN_BYTES)


def decompress_growing(cramjam: Any, codec: str, data: bytes, limit: int, most: int) -> bytes:
    """Decompresses into a buffer that grows until the result fits.

    cramjam has no bound of its own, but it does not write past a buffer and reports a full one.
    The buffer then grows, up to the smaller of `limit` and `most`, the largest size that data in
    this form can decompress to. Corrupt data thus takes a few times the memory of the bytes before
    the fault, or none if the result would be far larger than the data.
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
        # A copy, then the whole buffer is freed: a buffer cut to size would leave a hole in memory
        # that the next one does not fit into.
        return bytes(memoryview(buffer)[:written])
    output = sized_output(size)
    with output.getbuffer() as output_buffer:
        written = decompress_into(data, output_buffer)
    output.truncate(written)
    return output.getvalue()


def _measured(cramjam: Any, codec: str, data: bytes, limit: int, otherwise: int) -> int:
    """Returns the decompressed size of `data` in bytes; `otherwise` if there is no null device."""
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
