"""Implements lz4. Writes independent blocks, because Kafka's reader refuses linked blocks.

`lz4_frame` handles the wrong header checksum that Kafka writes for magic 0. `compression.Codec`
documents `compress`, `decompress` and `decompress_into`.
"""

from __future__ import annotations

from .bounded import cramjam_for, decompress_growing, decompress_whole_into
from .lz4_frame import first_frame

__all__ = ["compress", "decompress", "decompress_into"]


def compress(data: bytes, level: int) -> bytes:
    compressor = cramjam_for("lz4").lz4.Compressor(
        level=level, content_checksum=False, block_linked=False
    )
    compressor.compress(data)
    return bytes(compressor.finish())


def decompress(data: bytes, limit: int) -> bytes:
    frame = first_frame(data)
    # Each byte of lz4 data decompresses to at most 255 bytes.
    return decompress_growing(cramjam_for("lz4"), "lz4", frame, limit, 255 * len(frame))


def decompress_into(data: bytes, output: memoryview) -> int | None:
    try:
        frame = first_frame(data)
    except ValueError:
        return None
    return decompress_whole_into(cramjam_for("lz4"), "lz4", frame, output)
