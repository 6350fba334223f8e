"""Implements snappy in snappy-java's framing, as Kafka's producers write it; also reads raw snappy.

`compression.Codec` documents `compress`, `decompress` and `decompress_into`.
"""

from __future__ import annotations

from io import BytesIO
from typing import Final

from .bounded import cramjam_for, sized_output, too_large_error

__all__ = ["compress", "decompress", "decompress_into"]

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_VERSION_BYTES: Final = 4
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
#: The most bytes that a compressed byte yields: a copy element of three bytes yields at most 64.
_MOST_PER_BYTE: Final = 22
#: If the decompressed size is at most this, cramjam allocates the result: copying it is then
#: faster.
_COPIED_BYTES: Final = 1_048_576
#: The size of the length before each block.
_LENGTH_BYTES: Final = 4
_XERIAL_BLOCK_BYTES: Final = 32768  # snappy-java's block size, which Kafka's Java producer uses


def compress(data: bytes, level: int) -> bytes:
    compress_raw = cramjam_for("snappy").snappy.compress_raw
    pieces = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        pieces += len(block).to_bytes(4, "big"), block
    return b"".join(pieces)


def decompress(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_block(data, limit, limit)
    pos = len(_XERIAL_HEADER)
    _check_header(data, 0)
    whole = b""
    output: BytesIO | None = None
    bytes_left = limit
    while pos < len(data):
        if data.startswith(_XERIAL_MAGIC, pos):  # streams may be joined; each has a header
            _check_header(data, pos)
            pos += len(_XERIAL_HEADER)
            continue
        end = pos + 4 + int.from_bytes(data[pos : pos + 4], "big")
        if end > len(data) or end < pos + 5:
            if pos > len(_XERIAL_HEADER) and _is_ignored(data, pos):
                break
            raise ValueError("snappy: a block's length does not fit the data")
        piece = _decompress_block(data[pos + 4 : end], bytes_left, limit)
        bytes_left -= len(piece)
        pos = end
        if output is not None:
            output.write(piece)
        elif not whole:
            whole = piece  # usually the only block
        else:
            output = BytesIO()
            output.write(whole)
            output.write(piece)
            whole = b""
    return whole if output is None else output.getvalue()


def _check_header(data: bytes, pos: int) -> None:
    """Raises ValueError if the header at `pos` is cut, or if its version is below 1."""
    if pos + len(_XERIAL_HEADER) > len(data):
        raise ValueError("snappy: the data ends inside the header")
    begin = pos + len(_XERIAL_MAGIC)
    version = int.from_bytes(data[begin : begin + _VERSION_BYTES], "big", signed=True)
    if version < 1:
        raise ValueError(f"snappy: the header has version {version}, and the lowest is 1")


def _is_ignored(data: bytes, pos: int) -> bool:
    """Returns True if snappy-java ignores all bytes from `pos` on.

    snappy-java ignores up to three bytes at the end of the data. If a complete header follows the
    blocks, snappy-java ignores all bytes from this header on. Of such a header, snappy-java checks
    only the first four bytes.
    """
    bytes_left = len(data) - pos
    is_header = data.startswith(_XERIAL_MAGIC[:4], pos) and bytes_left >= len(_XERIAL_HEADER)
    return bytes_left < _LENGTH_BYTES or is_header


def _decompress_block(block: bytes, bytes_left: int, limit: int) -> bytes:
    cramjam = cramjam_for("snappy")
    size = 0  # the block starts with its decompressed length, an unsigned varint
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    if size > bytes_left:
        raise too_large_error(limit)
    if size > _MOST_PER_BYTE * len(block):
        raise ValueError(f"snappy: a block of {len(block)} bytes cannot decompress to {size}")
    try:
        if size <= _COPIED_BYTES:
            return bytes(cramjam.snappy.decompress_raw(block))
        whole = sized_output(size)
        with whole.getbuffer() as buffer:
            written = cramjam.snappy.decompress_raw_into(block, buffer)
        whole.truncate(written)
        return whole.getvalue()
    except cramjam.DecompressionError as error:
        raise ValueError(f"snappy: {error}") from None


def decompress_into(data: bytes, output: memoryview) -> int | None:
    """Decompresses a single stream in snappy-java's framing; returns the number of bytes written.

    Returns None for raw snappy, for joined streams and for broken data, and if `output` is too
    small.
    """
    cramjam = cramjam_for("snappy")
    if not data.startswith(_XERIAL_HEADER):
        return None
    pos = len(_XERIAL_HEADER)
    written = 0
    while pos < len(data):
        end = pos + 4 + int.from_bytes(data[pos : pos + 4], "big")
        if (
            end > len(data) or end < pos + 5
        ):  # true also for the magic of a second stream, which reads as a length
            return None
        try:
            written += cramjam.snappy.decompress_raw_into(data[pos + 4 : end], output[written:])
        except cramjam.DecompressionError:
            return None
        pos = end
    return written
