"""The table of compression codecs, with Kafka's ids, names and levels.

Each codec's own module implements it. Knows nothing of batches and records. The standard library
has gzip, and zstd from Python 3.14 on; `cramjam` (the extra `kproto[compression]`) has the others.
Two more packages, `zlib-ng` and `zstandard`, are used if installed, because they are faster.
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
#: brokers accept batches of 1 MB by default; a hundredfold is generous even for repetitive JSON.
MAX_DECOMPRESSED_BYTES: Final = 128 * 1024 * 1024


class Codec(NamedTuple):
    """Describes one codec: Kafka's id and name, and the functions that implement it.

    `compress(data, level)` and `decompress(data, limit)` return bytes; `decompress` raises
    ValueError with a reason if the data is corrupt or decompresses to more than `limit` bytes.
    `decompress_into(data, output)` writes to the start of `output`, never past its end, and returns
    the number of bytes. It returns None, and leaves anything in `output`, if `output` is too small
    or the data is corrupt or unusual; `decompress` then tells the reason.
    `levels` are the lowest and highest level that Kafka allows, None for a codec without levels;
    `default_level` is the level for None.
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
    """Returns the level to use. Raises ConfigurationError for a level that the codec lacks."""
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
    # Kafka's default is 9, and its producers then use the fast compressor, which is level 1 here.
    # Above 12 nothing changes.
    Codec(3, "lz4", lz4.compress, lz4.decompress, lz4.decompress_into, (1, 17), 1),
    Codec(4, "zstd", zstd.compress, zstd.decompress, zstd.decompress_into, (-131072, 22), 3),
)
