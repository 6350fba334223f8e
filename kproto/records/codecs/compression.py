"""The table of compression codecs, with Kafka's ids, names and levels.

Each codec is implemented in its own module. gzip uses the standard library, and so does zstd from
Python 3.14 on. snappy, lz4 and zstd on older Python use `cramjam` (the extra
`kproto[compression]`). `zlib-ng` and `zstandard` are used if installed, because they are faster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ...wire.errors import ConfigurationError
from . import gzip, lz4, snappy, zstd
from .bounded import copy_into

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

#: The most bytes that one batch may decompress to, unless the caller sets another bound. Kafka's
#: brokers accept batches of 1 MB by default; a compression ratio of 128 is ample even for
#: repetitive JSON.
MAX_DECOMPRESSED_BYTES: Final = 128 * 1024 * 1024


class Codec(NamedTuple):
    """Describes one codec: Kafka's id and name, and the functions that implement it.

    `compress(data, level)` and `decompress(data, limit)` return bytes; `decompress` raises
    ValueError with a reason if the data is corrupt or decompresses to more than `limit` bytes. The
    codec `none` returns the data and ignores `limit`.
    `decompress_into(data, output)` writes to the start of `output` and returns the number of bytes.
    It returns None if `output` is too small, or if the data is corrupt or in a rare format. The
    content of `output` is then undefined; call `decompress` to get the result or the error.
    `levels` are the lowest and highest level that Kafka allows, None for a codec without levels.
    `default_level` is used if the caller sets no level.
    """

    id: int
    name: str
    compress: Callable[[bytes, int], bytes]
    decompress: Callable[[bytes, int], bytes]
    decompress_into: Callable[[bytes, memoryview], int | None]
    levels: tuple[int, int] | None = None
    default_level: int = 0


def codec_for_id(codec_id: int) -> Codec:
    """Returns the codec with Kafka's id `codec_id`. Raises ValueError for an unknown id."""
    if not 0 <= codec_id < len(CODECS):
        raise ValueError(f"unknown compression codec {codec_id}; known are 0 to {len(CODECS) - 1}")
    return CODECS[codec_id]


def codec_for_name(name: str) -> Codec:
    """Returns the codec called `name`. Raises ConfigurationError for an unknown name."""
    for codec in CODECS:
        if codec.name == name:
            return codec
    names = ", ".join(codec.name for codec in CODECS)
    raise ConfigurationError(f"compression {name!r} is not known; choose one of: {names}")


def level_for(codec: Codec, level: int | None) -> int:
    """Returns `level`, or the codec's default if `level` is None.

    Raises ConfigurationError for a level that Kafka does not allow for the codec.
    """
    if level is None:
        return codec.default_level
    if codec.levels is None:
        raise ConfigurationError(f"compression {codec.name!r} has no levels; leave the level out")
    lowest, highest = codec.levels
    if isinstance(level, int) and (lowest <= level <= highest or level == codec.default_level):
        return level
    raise ConfigurationError(
        f"compression level {level!r} is not valid for {codec.name}: use {lowest} to {highest}"
    )


def _compress_none(data: bytes, level: int) -> bytes:
    return data


def _decompress_none(data: bytes, limit: int) -> bytes:
    return data


def _decompress_none_into(data: bytes, output: memoryview) -> int | None:
    return copy_into(data, output)


#: Kafka's codecs by id.
CODECS: Final = (
    Codec(0, "none", _compress_none, _decompress_none, _decompress_none_into),
    Codec(1, "gzip", gzip.compress, gzip.decompress, gzip.decompress_into, (1, 9), -1),
    Codec(2, "snappy", snappy.compress, snappy.decompress, snappy.decompress_into),
    # Kafka's default level is 9, but its producers then use lz4-java's fast compressor, which is
    # cramjam's level 1. Levels above 12 have no further effect.
    Codec(3, "lz4", lz4.compress, lz4.decompress, lz4.decompress_into, (1, 17), 1),
    Codec(4, "zstd", zstd.compress, zstd.decompress, zstd.decompress_into, (-131072, 22), 3),
)
