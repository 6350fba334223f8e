"""Finds an lz4 frame; converts its header checksum between the lz4 standard and magic 0.

In messages of magic 0, Kafka's header checksum wrongly covers the four magic bytes of the frame too
(KAFKA-3160). Kafka does not verify the checksum when Kafka reads such messages. In messages of
magic 1 and in record batches the checksum is right. Source: the lz4 frame format 1.6, "Frame
Descriptor"; the xxHash specification, XXH32.
"""

from __future__ import annotations

from typing import Final

__all__ = ["first_frame", "with_checksum_of_magic_0", "with_right_checksum"]

_MAGIC: Final = b"\x04\x22\x4d\x18"
_MAGIC_BYTES: Final = 4
_SHORTEST: Final = 7  # magic, FLG, BD, checksum
_CONTENT_SIZE_FLAG: Final = 0x08
_CONTENT_SIZE_BYTES: Final = 8
_BLOCK_CHECKSUM_FLAG: Final = 0x10
_CONTENT_CHECKSUM_FLAG: Final = 0x04
_CHECKSUM_BYTES: Final = 4
_INDEPENDENT_BLOCKS_FLAG: Final = 0x20
_BLOCK_SIZE_BYTES: Final = 4
#: A block size of 0, which ends a frame.
_END_MARK: Final = bytes(4)
#: The bit of a block size that marks an uncompressed block.
_UNCOMPRESSED_BIT: Final = 0x80000000

_PRIME_1: Final = 0x9E3779B1
_PRIME_2: Final = 0x85EBCA77
_PRIME_3: Final = 0xC2B2AE3D
_PRIME_4: Final = 0x27D4EB2F
_PRIME_5: Final = 0x165667B1
_MASK: Final = 0xFFFFFFFF


def with_checksum_of_magic_0(frame: bytes) -> bytes:
    """Returns the frame with the header checksum as Kafka writes it in messages of magic 0."""
    return _with_checksum(frame, 0)


def with_right_checksum(frame: bytes) -> bytes:
    """Returns the frame with the header checksum that the lz4 specification defines.

    Kafka's clients computed another checksum for messages of magic 0.
    """
    return _with_checksum(frame, _MAGIC_BYTES)


def first_frame(data: bytes) -> bytes:
    """Returns the first frame in `data` without content size and content checksum.

    Kafka's Lz4BlockInputStream ignores content size and content checksum, and all bytes after the
    first frame. As in that class, an uncompressed block of 0 bytes ends the frame, too. Returns
    `data` if it has no complete frame. Returns the frame unchanged if its header checksum is wrong.

    Raises ValueError, as Kafka's reader does, if `data` begins with another frame, such as a
    skippable frame, or if the blocks of the frame are linked.
    """
    if len(data) < _SHORTEST:
        return data
    if not data.startswith(_MAGIC):
        raise ValueError("lz4: no frame begins at byte 0")
    flags = data[_MAGIC_BYTES]
    if not flags & _INDEPENDENT_BLOCKS_FLAG:
        raise ValueError("lz4: the blocks of the frame are linked, and Kafka refuses such frames")
    begin = pos = _SHORTEST + (_CONTENT_SIZE_BYTES if flags & _CONTENT_SIZE_FLAG else 0)
    block_checksum = _CHECKSUM_BYTES if flags & _BLOCK_CHECKSUM_FLAG else 0
    while True:
        end = pos
        size = int.from_bytes(data[pos : pos + _BLOCK_SIZE_BYTES], "little")
        pos += _BLOCK_SIZE_BYTES
        if pos > len(data):
            return data
        if not size & ~_UNCOMPRESSED_BIT:
            break
        pos += (size & ~_UNCOMPRESSED_BIT) + block_checksum
    if not size and not flags & (_CONTENT_CHECKSUM_FLAG | _CONTENT_SIZE_FLAG):
        return data[:pos]
    if flags & _CONTENT_CHECKSUM_FLAG and pos + _CHECKSUM_BYTES > len(data):
        return data
    if with_right_checksum(data) != data:
        return data
    flags &= ~(_CONTENT_CHECKSUM_FLAG | _CONTENT_SIZE_FLAG)
    head = bytes((flags, data[_MAGIC_BYTES + 1], 0))  # FLG, BD and a checksum that is set below
    return with_right_checksum(_MAGIC + head + data[begin:end] + _END_MARK)


def _with_checksum(frame: bytes, checked_from: int) -> bytes:
    if len(frame) < _SHORTEST or not frame.startswith(_MAGIC):
        return frame  # not a frame: decompression will report it
    at = _SHORTEST - 1
    if frame[_MAGIC_BYTES] & _CONTENT_SIZE_FLAG:
        at += _CONTENT_SIZE_BYTES
    checksum = _xxh32_of_few(frame[checked_from:at]) >> 8 & 0xFF
    return b"".join((frame[:at], bytes((checksum,)), frame[at + 1 :]))


def _xxh32_of_few(data: bytes) -> int:
    """Computes XXH32 with seed 0 of fewer than 16 bytes.

    A frame header without a dictionary id has at most 14 bytes before its checksum.
    """
    state = _PRIME_5 + len(data)
    pos = 0
    while pos + 4 <= len(data):
        state = state + int.from_bytes(data[pos : pos + 4], "little") * _PRIME_3
        state = _rotated(state, 17) * _PRIME_4
        pos += 4
    for byte in data[pos:]:
        state = _rotated(state + byte * _PRIME_5, 11) * _PRIME_1
    state &= _MASK
    state ^= state >> 15
    state = state * _PRIME_2 & _MASK
    state ^= state >> 13
    state = state * _PRIME_3 & _MASK
    return state ^ state >> 16


def _rotated(value: int, bits: int) -> int:
    value &= _MASK
    return (value << bits | value >> (32 - bits)) & _MASK
