"""The codecs that a batch may be compressed with, as a table.

Owns compressing and decompressing of the bytes behind a batch header, with a bound on what comes
out. Knows nothing of batches and records. gzip is in the standard library, and so is zstd from
Python 3.14 on; the others come with `cramjam`, the extra `kproto[compression]`. So do two packages
that are taken where they are installed since they are faster: `zlib-ng` and `zstandard`.
"""

from __future__ import annotations

import threading
import zlib
from functools import cache
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ..wire.errors import ConfigurationError, MissingCodecError

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "CODECS",
    "MAX_DECOMPRESSED_BYTES",
    "Codec",
    "codec_for_id",
    "codec_for_name",
    "level_for",
]

#: Most bytes that one batch may decompress to, unless the caller sets another bound. Kafka's
#: brokers take batches of 1 MB by default; a hundredfold is generous even for repetitive JSON.
MAX_DECOMPRESSED_BYTES: Final = 128 * 1024 * 1024

#: What a stream behind another is given first of the data.
_FIRST_PIECE_BYTES: Final = 256

_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + b"\x00\x00\x00\x01\x00\x00\x00\x01"
_XERIAL_BLOCK_BYTES: Final = 32768  # what snappy-java writes, and so every Kafka producer


class Codec(NamedTuple):
    """One codec: Kafka's id and name, and its functions.

    `compress(data, level)` and `decompress(data, limit)` work on bytes; the latter raises
    ValueError with a reason when the data is broken or comes to more than `limit` bytes.
    `decompress_into(data, room)` writes to the start of `room`, never past its end, and returns
    how many bytes; None, with anything in `room`, if it is too small, if the data is broken or out
    of the ordinary: `decompress` then says what is the matter.
    `levels` are the lowest and highest level that Kafka knows, None where there is none;
    `default_level`, which is one too, is what None stands for.
    """

    id: int
    name: str
    compress: Callable[[bytes, int], bytes]
    decompress: Callable[[bytes, int], bytes]
    decompress_into: Callable[[bytes, memoryview], int | None]
    levels: tuple[int, int] | None = None
    default_level: int = 0


def codec_for_id(codec_id: int) -> Codec:
    """The codec with Kafka's number `codec_id`. Raises ValueError if there is none."""
    if not 0 <= codec_id < len(CODECS):
        raise ValueError(f"unknown compression codec {codec_id}; known are 0 to {len(CODECS) - 1}")
    return CODECS[codec_id]


def codec_for_name(name: str) -> Codec:
    """The codec called `name`. Raises ConfigurationError if there is none."""
    for codec in CODECS:
        if codec.name == name:
            return codec
    names = ", ".join(codec.name for codec in CODECS)
    raise ConfigurationError(f"compression {name!r} is not known; choose one of: {names}")


def level_for(codec: Codec, level: int | None) -> int:
    """The level to use; ConfigurationError if the codec has no such level."""
    if level is None:
        return codec.default_level
    if codec.levels is None:
        raise ConfigurationError(f"compression {codec.name!r} has no levels; leave the level out")
    lowest, highest = codec.levels
    if isinstance(level, int) and (lowest <= level <= highest or level == codec.default_level):
        return level
    raise ConfigurationError(
        f"compression level {level!r} is not one of {codec.name}: {lowest} to {highest}"
    )


def _too_large(limit: int) -> ValueError:
    return ValueError(f"decompresses to more than the bound of {limit} bytes")


def _cramjam(codec: str) -> Any:
    try:
        return import_module("cramjam")
    except ImportError:
        raise MissingCodecError(
            f"compression {codec!r} needs a package that is not installed; "
            "install the extra kproto[compression]"
        ) from None


# ---- none


def _compress_none(data: bytes, level: int) -> bytes:
    return data


def _decompress_none(data: bytes, limit: int) -> bytes:
    return data


def _decompress_none_into(data: bytes, room: memoryview) -> int | None:
    return _copied(data, room)


# ---- gzip (RFC 1952)


_GZIP_WBITS: Final = zlib.MAX_WBITS | 16


@cache
def _zlib() -> Any:
    """zlib-ng where it is installed: zlib's interface, and 16 KB batches in 0.6 of the time."""
    try:
        return import_module("zlib_ng.zlib_ng")
    except ImportError:
        return zlib


def _compress_gzip(data: bytes, level: int) -> bytes:
    deflater = _zlib().compressobj(level, zlib.DEFLATED, _GZIP_WBITS)
    return bytes(deflater.compress(data) + deflater.flush())


def _decompress_gzip(data: bytes, limit: int) -> bytes:
    library = _zlib()
    # A file may have several members, one behind the other.
    return _decompress_streams(
        "gzip", data, limit, lambda: library.decompressobj(_GZIP_WBITS), library.error
    )


def _decompress_gzip_into(data: bytes, room: memoryview) -> int | None:
    library = _zlib()
    stream = library.decompressobj(_GZIP_WBITS)
    return _decompress_stream_into(stream, library.error, data, room)


# ---- snappy (with the framing of snappy-java, as Kafka's producers write it; raw is read too)


def _compress_snappy(data: bytes, level: int) -> bytes:
    compress_raw = _cramjam("snappy").snappy.compress_raw
    pieces = [_XERIAL_HEADER]
    for start in range(0, len(data), _XERIAL_BLOCK_BYTES):
        block = bytes(compress_raw(data[start : start + _XERIAL_BLOCK_BYTES]))
        pieces += len(block).to_bytes(4, "big"), block
    return b"".join(pieces)


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, limit, limit)
    pos = len(_XERIAL_HEADER)
    if len(data) < pos:
        raise ValueError("snappy: the data ends inside the header")
    pieces = []
    room = limit
    while pos < len(data):
        if data.startswith(_XERIAL_MAGIC, pos):  # streams may be joined; each has a header
            pos += len(_XERIAL_HEADER)
            if pos > len(data):
                raise ValueError("snappy: the data ends inside the header")
            continue
        end = pos + 4 + int.from_bytes(data[pos : pos + 4], "big")
        if end > len(data) or end < pos + 5:
            raise ValueError("snappy: a block's length does not fit the data")
        piece = _decompress_snappy_block(data[pos + 4 : end], room, limit)
        room -= len(piece)
        pieces.append(piece)
        pos = end
    return b"".join(pieces)


def _decompress_snappy_block(block: bytes, room: int, limit: int) -> bytes:
    cramjam = _cramjam("snappy")
    size = 0  # the block starts with its decompressed length, an unsigned varint
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if byte < 0x80:
            break
    if size > room:
        raise _too_large(limit)
    try:
        return bytes(cramjam.snappy.decompress_raw(block))
    except cramjam.DecompressionError as error:
        raise ValueError(f"snappy: {error}") from None


def _decompress_snappy_into(data: bytes, room: memoryview) -> int | None:
    """snappy-java's framing alone, of one stream, as producers write it."""
    cramjam = _cramjam("snappy")
    if len(data) < len(_XERIAL_HEADER) or not data.startswith(_XERIAL_MAGIC):
        return None
    pos = len(_XERIAL_HEADER)
    written = 0
    while pos < len(data):
        end = pos + 4 + int.from_bytes(data[pos : pos + 4], "big")
        if end > len(data) or end < pos + 5:  # such a length has another stream's magic, too
            return None
        try:
            written += cramjam.snappy.decompress_raw_into(data[pos + 4 : end], room[written:])
        except cramjam.DecompressionError:
            return None
        pos = end
    return written


# ---- lz4 (frames of independent blocks: Kafka's reader refuses linked ones)


def _compress_lz4(data: bytes, level: int) -> bytes:
    compressor = _cramjam("lz4").lz4.Compressor(
        level=level, content_checksum=False, block_linked=False
    )
    compressor.compress(data)
    return bytes(compressor.finish())


def _decompress_lz4(data: bytes, limit: int) -> bytes:
    # A byte of lz4 stands for at most 255.
    return _decompress_into(_cramjam("lz4"), "lz4", data, limit, 255 * len(data))


def _decompress_lz4_into(data: bytes, room: memoryview) -> int | None:
    return _decompress_whole_into(_cramjam("lz4"), "lz4", data, room)


# ---- zstd (RFC 8878)

#: A block takes at least 4 bytes and stands for at most 128 KiB.
_ZSTD_MOST_PER_BYTE: Final = 32768

#: Room for a result of unknown size; the allocator has as much at hand without asking the system.
_ZSTD_FIRST_ROOM_BYTES: Final = 65536

_ZSTD_DESCRIPTOR_AT: Final = 4
_ZSTD_CHECKSUM_FLAG: Final = 0x04
_ZSTD_CHECKSUM_BYTES: Final = 4
_ZSTD_BLOCK_HEADER_BYTES: Final = 3


@cache
def _zstd_of_standard_library() -> Any | None:
    try:
        return import_module("compression.zstd")
    except ImportError:  # before Python 3.14, or built without; each new look takes long
        return None


@cache
def _zstandard() -> Any | None:
    try:
        return import_module("zstandard")
    except ImportError:
        return None


# zstandard's objects keep what zstd works with from one batch to the next. To make it anew, as the
# other libraries do, takes longer than a batch of 16 KB does: with it such a batch is decompressed
# in 0.4 of the time, and compressed in half. A thread must not share them with another.
_kept = threading.local()


def _zstd_compressor(zstandard: Any, level: int) -> Any:
    compressors: dict[int, Any] | None = getattr(_kept, "compressors", None)
    if compressors is None:
        compressors = _kept.compressors = {}
    if level not in compressors:
        compressors.clear()  # some megabytes each at high levels; a producer has one level
        compressors[level] = zstandard.ZstdCompressor(level=level)
    return compressors[level]


def _zstd_frame(data: bytes, limit: int) -> bytes | None:
    """What the one frame that `data` is decompresses to, by zstandard.

    None without that package, if there is anything but one frame that is not empty, if the result
    comes to more than `limit` bytes, or if the data is broken.
    """
    zstandard = _zstandard()
    if zstandard is None or limit <= 0:
        return None
    decompressor = getattr(_kept, "decompressor", None)
    if decompressor is None:
        decompressor = _kept.decompressor = zstandard.ZstdDecompressor()
    most = min(limit, _ZSTD_MOST_PER_BYTE * len(data))
    try:
        declared: int = zstandard.frame_content_size(data)
        # zstandard looks for bytes behind the frame only where the result fills the room, and takes
        # a declared size of 0, which a skippable frame has too, for the end.
        if declared == 0 or declared > most or not _is_one_zstd_frame(zstandard, data):
            return None
        if declared < 0:
            # Java's producers do not declare it: as much room as mostly is enough, else more.
            size = max(_ZSTD_FIRST_ROOM_BYTES, 8 * len(data))
            while size < most:
                try:
                    return bytes(decompressor.decompress(data, size))
                except zstandard.ZstdError:
                    size *= 8
        return bytes(decompressor.decompress(data, most))
    except zstandard.ZstdError:
        return None


def _is_one_zstd_frame(zstandard: Any, data: bytes) -> bool:
    """Whether the frame that `data` begins with ends where `data` does, by the sizes of its blocks.

    Source: RFC 8878, sections 3.1.1 and 3.1.1.2.
    """
    pos: int = zstandard.frame_header_size(data)
    is_last = False
    while not is_last:
        header = int.from_bytes(data[pos : pos + _ZSTD_BLOCK_HEADER_BYTES], "little")
        pos += _ZSTD_BLOCK_HEADER_BYTES
        if pos > len(data):
            return False
        is_last = bool(header & 1)
        is_repeated_byte = header >> 1 & 3 == 1
        pos += 1 if is_repeated_byte else header >> 3
    has_checksum = data[_ZSTD_DESCRIPTOR_AT] & _ZSTD_CHECKSUM_FLAG
    return pos + (_ZSTD_CHECKSUM_BYTES if has_checksum else 0) == len(data)


def _compress_zstd(data: bytes, level: int) -> bytes:
    zstandard = _zstandard()
    if zstandard is not None:
        return bytes(_zstd_compressor(zstandard, level).compress(data))
    zstd = _zstd_of_standard_library()
    if zstd is not None:
        return bytes(zstd.compress(data, level))
    return bytes(_cramjam("zstd").zstd.compress(data, level))


def _decompress_zstd(data: bytes, limit: int) -> bytes:
    whole = _zstd_frame(data, limit)
    if whole is not None:
        return whole
    zstd = _zstd_of_standard_library()
    if zstd is None:
        most = _ZSTD_MOST_PER_BYTE * len(data)
        return _decompress_into(_cramjam("zstd"), "zstd", data, limit, most)
    # There may be several frames, one behind the other.
    return _decompress_streams("zstd", data, limit, zstd.ZstdDecompressor, zstd.ZstdError)


def _decompress_zstd_into(data: bytes, room: memoryview) -> int | None:
    whole = _zstd_frame(data, len(room))
    if whole is not None:
        return _copied(whole, room)
    zstd = _zstd_of_standard_library()
    if zstd is None:
        return _decompress_whole_into(_cramjam("zstd"), "zstd", data, room)
    return _decompress_stream_into(zstd.ZstdDecompressor(), zstd.ZstdError, data, room)


# ---- what several codecs share


def _copied(data: bytes, room: memoryview) -> int | None:
    if len(data) > len(room):
        return None
    room[: len(data)] = data
    return len(data)


def _decompress_stream_into(
    stream: Any, broken: type[Exception], data: bytes, room: memoryview
) -> int | None:
    """Decompress the one stream that `data` is; None if something stands behind it."""
    if not data or not room:
        return None
    try:
        whole = stream.decompress(data, len(room))
    except broken:
        return None
    return _copied(whole, room) if stream.eof and not stream.unused_data else None


def _decompress_whole_into(cramjam: Any, codec: str, data: bytes, room: memoryview) -> int | None:
    """Decompress with cramjam, which does not write past a buffer."""
    if not data or not room:
        return None
    try:
        return int(getattr(cramjam, codec).decompress_into(data, room))
    except (cramjam.DecompressionError, OSError):
        return None


def _decompress_streams(
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
        raise _too_large(limit)
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
                raise _too_large(limit)
            if piece:
                pieces.append(piece)
            pos += len(given) - len(stream.unused_data)
            step *= 2
        step = _FIRST_PIECE_BYTES
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _decompress_into(cramjam: Any, codec: str, data: bytes, limit: int, most: int) -> bytes:
    """Decompress into a buffer that grows until the result fits.

    cramjam has no bound of its own, but does not write past a buffer. It raises one error for a
    full buffer and for broken data, so broken data is tried again, up to the smaller of `limit`
    and `most`, what data of that length can stand for.
    """
    if not data:
        raise ValueError(f"{codec}: no data")
    if limit < 0:
        raise _too_large(limit)
    most = min(limit, most)
    size = min(most, max(65536, 4 * len(data)))
    while True:
        buffer = bytearray(size)
        try:
            written = getattr(cramjam, codec).decompress_into(data, buffer)
        except (cramjam.DecompressionError, OSError) as error:
            if size == most:
                raise ValueError(
                    f"{codec}: {error} (broken, or more than the bound of {limit} bytes)"
                ) from None
            size = min(most, 8 * size)
        else:
            # A copy, then all of the buffer freed: cut to size, it would leave a hole in memory
            # that the next one does not fit into.
            return bytes(memoryview(buffer)[:written])


#: Kafka's codecs by id.
CODECS: Final = (
    Codec(0, "none", _compress_none, _decompress_none, _decompress_none_into),
    Codec(1, "gzip", _compress_gzip, _decompress_gzip, _decompress_gzip_into, (1, 9), -1),
    Codec(2, "snappy", _compress_snappy, _decompress_snappy, _decompress_snappy_into),
    # Kafka's default is 9, for which its producers take the fast compressor, which is level 1 here.
    # Above 12 nothing changes.
    Codec(3, "lz4", _compress_lz4, _decompress_lz4, _decompress_lz4_into, (1, 17), 1),
    Codec(4, "zstd", _compress_zstd, _decompress_zstd, _decompress_zstd_into, (-131072, 22), 3),
)
