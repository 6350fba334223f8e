"""MurmurHash2 of record keys, with the seed of Kafka's Java client: of one key, or of many at once.

For many keys of one length, one large integer has a lane of at least 64 bits for each key. A
multiplication, shift or xor of this integer calculates all keys at once. Lanes do not overlap: the
product of two 32-bit numbers has at most 64 bits.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Final

__all__ = ["murmur2", "murmur2_of_keys"]

_MASK: Final = 0xFFFFFFFF
_MULTIPLIER: Final = 0x5BD1E995
_SEED: Final = 0x9747B28C

#: Keys with more bytes than this are hashed one by one: each word of a key needs a calculation with
#: the whole integer, so the time for a key grows with the square of its length.
_MAX_LANE_KEY_BYTES: Final = 64

#: If fewer keys than this have the same length, they are hashed one by one: to calculate the
#: constants of the lanes would take longer.
_MIN_LANES: Final = 8

#: The constants of this many pairs of a number of keys and a key length are cached: a producer
#: hashes chunks of one size, and its keys have only a few lengths.
_KEPT_CONSTANTS: Final = 64


def murmur2(data: bytes) -> int:
    """Returns the 32-bit MurmurHash2 of `data` with the seed of Kafka's Java client."""
    size = len(data)
    hashed = _SEED ^ size
    whole = size & ~3
    for at in range(0, whole, 4):
        word = int.from_bytes(data[at : at + 4], "little") * _MULTIPLIER & _MASK
        word = (word ^ word >> 24) * _MULTIPLIER & _MASK
        hashed = hashed * _MULTIPLIER & _MASK ^ word
    if size > whole:
        hashed = (hashed ^ int.from_bytes(data[whole:], "little")) * _MULTIPLIER & _MASK
    hashed = (hashed ^ hashed >> 13) * _MULTIPLIER & _MASK
    return hashed ^ hashed >> 15


def murmur2_of_keys(keys: Sequence[bytes]) -> list[int]:
    """Returns the 32-bit MurmurHash2 of each key, in the order of the keys."""
    lengths = set(map(len, keys))
    if len(lengths) == 1:
        return _hashes(keys, lengths.pop())
    found = [0] * len(keys)
    by_length: dict[int, list[int]] = {length: [] for length in lengths}
    for index, key in enumerate(keys):
        by_length[len(key)].append(index)
    for length, indexes in by_length.items():
        for index, hashed in zip(
            indexes, _hashes([keys[at] for at in indexes], length), strict=True
        ):
            found[index] = hashed
    return found


def _hashes(keys: Sequence[bytes], length: int) -> list[int]:
    """Returns the hashes of keys that all have `length` bytes."""
    count = len(keys)
    if count < _MIN_LANES or length > _MAX_LANE_KEY_BYTES:
        return [murmur2(key) for key in keys]
    stride = max(8, (length + 7) & ~7)
    mask, above_24, above_13, above_15, tail, hashed = _lane_constants(count, stride, length)
    joined = int.from_bytes(bytes(stride - length).join(keys), "little")
    for at in range(0, length & ~3, 4):
        word = (joined >> 8 * at & mask) * _MULTIPLIER & mask
        word = (word ^ word >> 24 & above_24) * _MULTIPLIER & mask
        hashed = hashed * _MULTIPLIER & mask ^ word
    if length & 3:
        rest = joined >> 8 * (length & ~3) & tail
        hashed = (hashed ^ rest) * _MULTIPLIER & mask
    hashed = (hashed ^ hashed >> 13 & above_13) * _MULTIPLIER & mask
    hashed ^= hashed >> 15 & above_15
    words = memoryview(hashed.to_bytes(count * stride, "little")).cast("I")
    return words[:: stride // 4].tolist()


@lru_cache(maxsize=_KEPT_CONSTANTS)
def _lane_constants(count: int, stride: int, length: int) -> tuple[int, int, int, int, int, int]:
    """Returns constants for `count` lanes of `stride` bytes, each with its value in every lane.

    Returns five masks and the start value of the hash. The masks select 32 bits, the bits that
    remain after shifts by 24, 13 and 15, and the last 1 to 3 bytes of a key.
    """
    ones = int.from_bytes((b"\x01" + bytes(stride - 1)) * count, "little")
    tail = (1 << 8 * (length & 3)) - 1
    start = _SEED ^ length
    return ones * _MASK, ones * 0xFF, ones * 0x7FFFF, ones * 0x1FFFF, ones * tail, ones * start
