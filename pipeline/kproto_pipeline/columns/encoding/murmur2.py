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
        hashed = _SEED ^ lengths.astype(np.uint32)
        words = lengths // 4
        tails = lengths % 4
        order: Int64s | None = None
        most = int(words.max())
        if most != words.min():
            # Sort the longest keys first, so that the keys with another word are always the first
            # rows.
            order = np.argsort(-words, kind="stable")
            begins, words, tails, hashed = begins[order], words[order], tails[order], hashed[order]
        ascending = -words
        for number in range(most):
            rows = int(np.searchsorted(ascending, -number, side="left"))
            word = _words(data, begins[:rows] + 4 * number) * _MULTIPLIER
            word = (word ^ word >> np.uint32(24)) * _MULTIPLIER
            hashed[:rows] = hashed[:rows] * _MULTIPLIER ^ word
        ending = tails > 0
        if ending.any():
            rest = _words(data, begins[ending] + 4 * words[ending])
            rest &= ((1 << (8 * tails[ending])) - 1).astype(np.uint32)
            hashed[ending] = (hashed[ending] ^ rest) * _MULTIPLIER
        hashed = (hashed ^ hashed >> np.uint32(13)) * _MULTIPLIER
        hashed ^= hashed >> np.uint32(15)
    hashed &= np.uint32(0x7FFFFFFF)
    if order is None:
        return hashed.astype(np.int64)
    found = np.empty(count, dtype=np.int64)
    found[order] = hashed
    return found


def _words(data: npt.NDArray[np.uint8], at: Int64s) -> npt.NDArray[np.uint32]:
    """Returns the four bytes at each position as a little-endian integer."""
    words: npt.NDArray[np.uint32] = np.ndarray(len(data) - 3, "<u4", data, strides=(1,))
    return words[at]
