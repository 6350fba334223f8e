"""Hashes a column of keys with MurmurHash2, by which Kafka's Java client chooses partitions.

Uses 32 bits and the seed of the Java client. Processes all keys in parallel: the first four bytes
of all keys, then the next four.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import numpy as np

from ..arrow_numpy import binary_data, bounds

if TYPE_CHECKING:
    import numpy.typing as npt
    import pyarrow as pa

    from ..record_columns import Int64s

__all__ = ["partition_hashes"]

_MULTIPLIER: Final = np.uint32(0x5BD1E995)
_SEED: Final = np.uint32(0x9747B28C)


def partition_hashes(keys: pa.Array) -> Int64s:
    """Returns a number from 0 to 2**31 - 1 for each key: its hash without the sign bit.

    The number of a null key is arbitrary.
    """
    count = len(keys)
    if not count:
        return np.empty(0, dtype=np.int64)
    ends = bounds(keys).astype(np.int64)
    begins, lengths = ends[:-1], np.diff(ends)
    data = np.concatenate((binary_data(keys), np.zeros(4, dtype=np.uint8)))
    with np.errstate(over="ignore"):
        length = int(lengths[0])
        if (lengths == length).all():
            hashed = _mixed_fixed(data, int(begins[0]), length, count)
        else:
            hashed = _mixed(data, begins, lengths)
        hashed = (hashed ^ hashed >> np.uint32(13)) * _MULTIPLIER
        hashed ^= hashed >> np.uint32(15)
    hashed &= np.uint32(0x7FFFFFFF)
    return hashed.astype(np.int64)


def _mixed(data: npt.NDArray[np.uint8], begins: Int64s, lengths: Int64s) -> npt.NDArray[np.uint32]:
    """Returns the hash of each key before the last step."""
    hashed = _SEED ^ lengths.astype(np.uint32)
    words = lengths // 4
    tails = lengths % 4
    # Sort the longest keys first, so that the keys with another word are always the first rows.
    order = np.argsort(-words, kind="stable")
    begins, words, tails, hashed = begins[order], words[order], tails[order], hashed[order]
    ascending = -words
    for number in range(int(words[0])):
        rows = int(np.searchsorted(ascending, -number, side="left"))
        hashed[:rows] = _with_word(hashed[:rows], _words(data, begins[:rows] + 4 * number))
    ending = tails > 0
    if ending.any():
        rest = _words(data, begins[ending] + 4 * words[ending])
        rest &= ((1 << (8 * tails[ending])) - 1).astype(np.uint32)
        hashed[ending] = (hashed[ending] ^ rest) * _MULTIPLIER
    found = np.empty_like(hashed)
    found[order] = hashed
    return found


def _mixed_fixed(
    data: npt.NDArray[np.uint8], begin: int, length: int, count: int
) -> npt.NDArray[np.uint32]:
    """Returns the same as `_mixed`, for keys of one length that begin at `begin`."""
    hashed = np.full(count, _SEED ^ np.uint32(length), dtype=np.uint32)
    words, tail = divmod(length, 4)
    for number in range(words):
        word = np.ndarray(count, "<u4", data, begin + 4 * number, (length,))
        hashed = _with_word(hashed, word)
    if tail:
        rest = np.ndarray(count, "<u4", data, begin + 4 * words, (length,))
        hashed = (hashed ^ rest & np.uint32((1 << 8 * tail) - 1)) * _MULTIPLIER
    return hashed


def _with_word(
    hashed: npt.NDArray[np.uint32], word: npt.NDArray[np.uint32]
) -> npt.NDArray[np.uint32]:
    """Returns the hash of each key with its next four bytes."""
    word = word * _MULTIPLIER
    word = (word ^ word >> np.uint32(24)) * _MULTIPLIER
    return hashed * _MULTIPLIER ^ word


def _words(data: npt.NDArray[np.uint8], at: Int64s) -> npt.NDArray[np.uint32]:
    """Returns the four bytes at each position as a little-endian integer."""
    words: npt.NDArray[np.uint32] = np.ndarray(len(data) - 3, "<u4", data, strides=(1,))
    return words[at]
