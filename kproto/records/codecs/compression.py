"""The codecs that a batch may be compressed with, as a table.

Owns which codecs there are, under Kafka's numbers, names and levels; how each works is its own
module's. Knows nothing of batches and records. gzip is in the standard library, and so is zstd from
Python 3.14 on; the others come with `cramjam`, the extra `kproto[compression]`. So do two packages
that are taken where they are installed since they are faster: `zlib-ng` and `zstandard`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, NamedTuple

from ...wire.errors import ConfigurationError
from . import gzip, lz4, snappy, zstd
from .bounded import copied

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
    """Returns the codec with Kafka's number `codec_id`. Raises ValueError if there is none."""
    if not 0 <= codec_id < len(CODECS):
        raise ValueError(f"unknown compression codec {codec_id}; known are 0 to {len(CODECS) - 1}")
    return CODECS[codec_id]


def codec_for_name(name: str) -> Codec:
    """Returns the codec called `name`. Raises ConfigurationError if there is none."""
    for codec in CODECS:
        if codec.name == name:
            return codec
    names = ", ".join(codec.name for codec in CODECS)
    raise ConfigurationError(f"compression {name!r} is not known; choose one of: {names}")


def level_for(codec: Codec, level: int | None) -> int:
    """Returns the level to use; ConfigurationError if the codec has no such level."""
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


def _decompress_none_into(data: bytes, room: memoryview) -> int | None:
    return copied(data, room)


#: Kafka's codecs by id.
CODECS: Final = (
    Codec(0, "none", _compress_none, _decompress_none, _decompress_none_into),
    Codec(1, "gzip", gzip.compress, gzip.decompress, gzip.decompress_into, (1, 9), -1),
    Codec(2, "snappy", snappy.compress, snappy.decompress, snappy.decompress_into),
    # Kafka's default is 9, for which its producers take the fast compressor, which is level 1 here.
    # Above 12 nothing changes.
    Codec(3, "lz4", lz4.compress, lz4.decompress, lz4.decompress_into, (1, 17), 1),
    Codec(4, "zstd", zstd.compress, zstd.decompress, zstd.decompress_into, (-131072, 22), 3),
)
