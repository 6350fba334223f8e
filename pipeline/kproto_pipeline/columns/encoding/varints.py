"""Encodes a column of signed integers as varints, in an Arrow binary array.

Records have zigzag varints (KIP-98): 7 bits per byte, the lowest first; every byte except the last
has its top bit set. Numbers have 32 bits, and their varints at most five bytes.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    from ..record_columns import Int64s

__all__ = ["NULL_LENGTH", "VARINT_RANGES", "binary_of", "varint_sizes", "varints"]

#: The length that encodes a null byte string.
NULL_LENGTH: Final = -1

# The lowest numbers that are not negative and whose varints have 2, 3, 4 and 5 bytes.
_STEPS: Final = (1 << 6, 1 << 13, 1 << 20, 1 << 27)

#: The ranges of numbers from 0 on whose varints have 1, 2, 3, 4 and 5 bytes: begin and end.
VARINT_RANGES: Final = tuple(pairwise((0, *_STEPS, 1 << 31)))


def varint_sizes(numbers: Int64s) -> Int64s:
    """Returns the size in bytes of the varint of each 32-bit number."""
    sizes = np.ones(len(numbers), dtype=np.int64)
    if numbers.min(initial=0) < NULL_LENGTH:
        numbers = _zigzag(numbers) >> 1
    largest = numbers.max(initial=0)
    for step in _STEPS:
        if largest >= step:
            sizes += numbers >= step
    return sizes


def varints(numbers: Int64s) -> pa.Array:
    """Returns the varint of each 32-bit number."""
    rest = _zigzag(numbers)
    sizes = varint_sizes(numbers)
    most = int(sizes.max(initial=1))
    digits = np.empty((len(rest), most), dtype=np.uint8)
    for index in range(most):
        digits[:, index] = rest & 0x7F
        digits[:, index] |= (sizes > index + 1).astype(np.uint8) << 7
        rest = rest >> 7
    if most == 1:
        data = digits.reshape(-1)
    else:
        data = digits[np.arange(most) < sizes[:, None]]
    return binary_of(data, sizes)


def binary_of(data: npt.NDArray[np.uint8], sizes: Int64s) -> pa.Array:
    """Returns `data` as an Arrow binary array of consecutive byte strings of the given `sizes`."""
    offsets = np.zeros(len(sizes) + 1, dtype=np.int32)
    np.cumsum(sizes, out=offsets[1:])
    return pa.Array.from_buffers(
        pa.binary(), len(sizes), [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    )


def _zigzag(numbers: Int64s) -> Int64s:
    """Applies zigzag: 0, -1, 1, -2 … become 0, 1, 2, 3 …"""
    folded: Int64s = (numbers << 1) ^ (numbers >> 63)
    return folded
