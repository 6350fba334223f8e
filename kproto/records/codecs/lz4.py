"""lz4 frames of independent blocks: Kafka's reader refuses linked ones.

What Kafka wrote wrongly in the header of a frame is `lz4_frame`'s to know. What `compress`,
`decompress` and `decompress_into` do, `compression.Codec` says.
"""

from __future__ import annotations

from .bounded import cramjam_for, decompress_growing, decompress_whole_into

__all__ = ["compress", "decompress", "decompress_into"]


def compress(data: bytes, level: int) -> bytes:
    compressor = cramjam_for("lz4").lz4.Compressor(
        level=level, content_checksum=False, block_linked=False
    )
    compressor.compress(data)
    return bytes(compressor.finish())


def decompress(data: bytes, limit: int) -> bytes:
    # A byte of lz4 stands for at most 255.
    return decompress_growing(cramjam_for("lz4"), "lz4", data, limit, 255 * len(data))


def decompress_into(data: bytes, room: memoryview) -> int | None:
    return decompress_whole_into(cramjam_for("lz4"), "lz4", data, room)
