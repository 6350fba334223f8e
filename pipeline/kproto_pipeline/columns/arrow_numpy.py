"""Converts between Arrow arrays and numpy arrays without importing pandas.

`pyarrow.array`, `scalar`, `repeat` and `Array.to_numpy` check for pandas objects, and import pandas
for that. The import takes a fifth of a second in every Python process that Spark starts.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np
import pyarrow as pa

if TYPE_CHECKING:
    import numpy.typing as npt

    from .record_columns import Bools, Int64s

__all__ = [
    "binary_data",
    "binary_scalar",
    "boolean_array",
    "boolean_values",
    "bounds",
    "empty_bytes",
    "integer_values",
    "lengths",
    "null_mask",
    "number_array",
    "repeated_text",
]

#: By Arrow type: the numpy type.
_DTYPES: Final[dict[pa.DataType, np.dtype[Any]]] = {
    pa.int32(): np.dtype(np.int32),
    pa.int64(): np.dtype(np.int64),
}


def number_array(
    values: npt.NDArray[Any], kind: pa.DataType | None = None, *, null: Bools | None = None
) -> pa.Array:
    """Converts numbers to an Arrow array of type `kind`; `null` is a mask of the nulls.

    The default of `kind` is the Arrow type of the numbers' numpy type.
    """
    found = np.ascontiguousarray(values)
    validity = None if null is None else _bits(~null)
    kind = pa.from_numpy_dtype(found.dtype) if kind is None else kind
    return pa.Array.from_buffers(kind, len(found), [validity, pa.py_buffer(found)])


def boolean_array(values: Bools) -> pa.Array:
    """Converts booleans to an Arrow array without nulls."""
    return pa.Array.from_buffers(pa.bool_(), len(values), [None, _bits(values)])


def repeated_text(text: str, count: int) -> pa.Array:
    """Returns an Arrow array with the same text in every row."""
    data = text.encode()
    offsets = np.arange(count + 1, dtype=np.int32) * len(data)
    return pa.Array.from_buffers(
        pa.string(), count, [None, pa.py_buffer(offsets), pa.py_buffer(data * count)]
    )


def empty_bytes(count: int) -> pa.Array:
    """Returns an Arrow array of empty byte strings."""
    offsets = np.zeros(count + 1, dtype=np.int32)
    return pa.Array.from_buffers(
        pa.binary(), count, [None, pa.py_buffer(offsets), pa.py_buffer(b"")]
    )


def binary_scalar(data: bytes) -> pa.Scalar:
    """Returns one byte string as an Arrow scalar."""
    offsets = np.array([0, len(data)], dtype=np.int32)
    buffers = [None, pa.py_buffer(offsets), pa.py_buffer(data)]
    return pa.Array.from_buffers(pa.binary(), 1, buffers)[0]


def integer_values(array: pa.Array) -> npt.NDArray[Any]:
    """Returns the integers of an array without a copy; arbitrary values for nulls."""
    data: npt.NDArray[Any] = np.frombuffer(array.buffers()[1] or b"", dtype=_DTYPES[array.type])
    return data[array.offset : array.offset + len(array)]


def boolean_values(array: pa.Array, *, null: bool) -> Bools:
    """Returns the booleans of an array; `null` for nulls."""
    found = _unpacked(array.buffers()[1], array)
    missing = null_mask(array)
    if missing is not None:
        found[missing] = null
    return found


def null_mask(array: pa.Array) -> Bools | None:
    """Returns a mask of the null rows; None if no row is null."""
    if not array.null_count:
        return None
    validity = array.buffers()[0]
    if validity is None:  # an array of type null
        return np.ones(len(array), dtype=np.bool_)
    return ~_unpacked(validity, array)


def bounds(array: pa.Array) -> npt.NDArray[Any]:
    """Returns where each entry of a string, binary, list or map array begins, and the last end."""
    large = pa.types.is_large_binary(array.type) or pa.types.is_large_string(array.type)
    kind = np.dtype(np.int64 if large else np.int32)
    found: npt.NDArray[Any] = np.frombuffer(array.buffers()[1] or b"", dtype=kind)
    if not len(found):  # an empty array may have no offsets
        return np.zeros(1, dtype=kind)
    return found[array.offset : array.offset + len(array) + 1]


def binary_data(array: pa.Array) -> npt.NDArray[np.uint8]:
    """Returns the bytes to which the `bounds` of a string or binary array refer."""
    return np.frombuffer(array.buffers()[2] or b"", dtype=np.uint8)


def lengths(array: pa.Array, *, null: int) -> Int64s:
    """Returns the length in bytes of each string or byte string; `null` for nulls."""
    if array.type == pa.null():
        return np.full(len(array), null, dtype=np.int64)
    found = np.diff(bounds(array)).astype(np.int64)
    missing = null_mask(array)
    if missing is not None:
        found[missing] = null
    return found


def _unpacked(bits: pa.Buffer | None, array: pa.Array) -> Bools:
    packed = np.frombuffer(bits or b"", dtype=np.uint8)
    found = np.unpackbits(packed, count=array.offset + len(array), bitorder="little")
    return found[array.offset :].view(np.bool_)


def _bits(values: Bools) -> pa.Buffer:
    return pa.py_buffer(np.packbits(values, bitorder="little"))
