"""Encodes many records (magic 2) at once, field by field. KIP-98.

All records of a run have the same attributes and timestamp delta. Their offset deltas, keys, values
and headers differ, and may have different lengths.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import chain, repeat
from operator import itemgetter
from typing import TYPE_CHECKING, Final

from ...wire.compiled import __compiled__
from ..header_block import NO_HEADERS
from ..varints import VARINTS, encode_varint
from .record_encoding import NULL, encode_record, header_prefixes

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from ..header_block import Header

__all__ = ["encode_columns", "encode_run", "encode_values", "join_records", "varints_of"]

#: The bytes that `encode_columns` counts for each record: the first bytes of the lengths of key and
#: value, and the number of headers.
_FIXED_BYTES: Final = 3

_NAME: Final = itemgetter(0)
_VALUE: Final = itemgetter(1)


def encode_run(
    head: bytes,
    deltas: Sequence[bytes],
    keys: Sequence[bytes] | None,
    values: Sequence[bytes],
    headers: Sequence[Sequence[Header]] | None = None,
) -> list[bytes]:
    """Encodes records without the lengths in front of them; there is at least one.

    `deltas` are the encoded offset deltas. If `keys` is None, no record has a key; if `headers` is
    None, no record has headers. Raises one of `ENCODE_FAILURES` for a header of a wrong type.
    """
    blocks = None if __compiled__ else _header_blocks(headers)
    if blocks is None:
        each_key: Iterable[bytes | None] = repeat(None, len(values)) if keys is None else keys
        each_headers = repeat((), len(values)) if headers is None else headers
        return [
            encode_record(head, delta, key, value, its)
            for delta, key, value, its in zip(deltas, each_key, values, each_headers, strict=True)
        ]
    # Joining the rows of all fields takes less time than encoding one record after the other.
    fields: list[Iterable[bytes]] = [repeat(head), deltas]
    fields += [repeat(NULL)] if keys is None else [varints_of(list(map(len, keys))), keys]
    fields += [varints_of(list(map(len, values))), values, *blocks]
    return list(map(b"".join, zip(*fields)))  # noqa: B905 - `repeat` has no end


def _header_blocks(headers: Sequence[Sequence[Header]] | None) -> list[Iterable[bytes]] | None:
    """Returns the fields of the encoded header blocks, or None if they must be encoded one by one.

    The fields are the number of headers and, for each header, its name with both lengths, and its
    value. Returns None if the records have different header names, a value of None or a long value,
    or if a header is no pair.
    """
    if headers is None:
        return [repeat(NO_HEADERS)]
    count = len(headers[0])
    if count >= len(VARINTS) or list(map(len, headers)).count(count) != len(headers):
        return None
    pairs = list(chain.from_iterable(headers))
    try:
        names, values = list(map(_NAME, pairs)), list(map(_VALUE, pairs))
    except IndexError:
        return None
    if names != names[:count] * len(headers):
        return None
    if not set(map(type, values)) <= {bytes}:
        return None
    fields: list[Iterable[bytes]] = [repeat(VARINTS[count])]
    for index, name in enumerate(names[:count]):
        of_name = values[index::count]
        sizes = list(map(len, of_name))
        prefixes = header_prefixes(name)
        if max(sizes) >= len(prefixes):
            return None
        fields += [map(prefixes.__getitem__, sizes), of_name]
    return fields


def varints_of(sizes: Sequence[int]) -> list[bytes]:
    """Returns the varint of each size."""
    first, number = sizes[0], len(sizes)
    try:
        if sizes.count(first) == number:
            return [VARINTS[first]] * number
        return [VARINTS[size] for size in sizes]
    except IndexError:
        return [encode_varint(size) for size in sizes]


def join_records(lengths: Sequence[bytes], bodies: Sequence[bytes]) -> bytes:
    """Joins the results of `encode_run`, each after its encoded length."""
    return b"".join(chain.from_iterable(zip(lengths, bodies, strict=True)))


def encode_columns(
    head: bytes,
    deltas: Sequence[bytes],
    keys: Sequence[bytes] | None,
    values: Sequence[bytes],
    key_sizes: Sequence[int],
    sizes: Sequence[int],
) -> bytes:
    """Encodes records without headers, with the lengths in front of them, from columns of fields.

    `key_sizes` has the lengths of the keys; it is empty if `keys` is None. `sizes` has the lengths
    of the values, of which there is at least one. Raises IndexError if a length exceeds the table
    of varints.
    """
    number = len(values)
    columns: list[Sequence[bytes]] = [deltas, varints_of(sizes), values]
    columns[1:1] = [[NULL] * number] if keys is None else [varints_of(key_sizes), keys]
    starts: list[bytes] = []
    start = 0
    while start < number:
        width = len(deltas[start])
        is_last = len(deltas[-1]) == width
        end = number if is_last else bisect_right(deltas, width, start, key=len)
        others = len(head) + width + _FIXED_BYTES
        starts += _starts_of_records(head, others, key_sizes[start:end], sizes[start:end])
        start = end
    step = len(columns) + 2
    # Assigning the fields as columns takes half the time of chaining the rows of a zip.
    parts = [NO_HEADERS] * (step * number)
    parts[::step] = starts
    for at, column in enumerate(columns, 1):
        parts[at::step] = column
    return b"".join(parts)


def _starts_of_records(
    head: bytes, others: int, key_sizes: Sequence[int], sizes: Sequence[int]
) -> list[bytes]:
    """Returns the length of each record, followed by `head`.

    `others` is the size of a record without the key, the value, and the second bytes of their
    lengths, which they have if they are longer than 63 bytes.
    """
    varints, first, number = VARINTS, sizes[0], len(sizes)
    if key_sizes:
        key = key_sizes[0]
        if key_sizes.count(key) != number:
            return [
                varints[others + key + size + (key > 63) + (size > 63)] + head
                for key, size in zip(key_sizes, sizes, strict=True)
            ]
        others += key + (key > 63)
    if sizes.count(first) == number:
        return [varints[others + first + (first > 63)] + head] * number
    return [varints[others + size + (size > 63)] + head for size in sizes]


def encode_values(
    head: bytes, deltas: Sequence[bytes], values: Sequence[bytes], sizes: Sequence[int]
) -> bytes:
    """Encodes records without keys and headers, with the lengths in front of them.

    Records whose offset deltas and values have the same sizes differ in only these two fields, so
    that their other bytes are made once for each size. `sizes` has the length of each value, of
    which there is at least one.
    """
    distinct = set(sizes)
    others = len(head) + len(NO_HEADERS)
    between = {size: NULL + encode_varint(size) for size in distinct}
    first: list[bytes] = []
    start = 0
    while start < len(values):
        width = len(deltas[start])
        end = bisect_right(deltas, width, start, key=len)
        before = {
            # It ends the record before as well: with no headers.
            size: NO_HEADERS + encode_varint(others + width + len(between[size]) + size) + head
            for size in distinct
        }
        first += _by_size(before, sizes[start:end])
        start = end
    first[0] = first[0][len(NO_HEADERS) :]
    parts = [NO_HEADERS] * (4 * len(values) + 1)
    parts[0:-1:4] = first
    parts[1::4] = deltas
    parts[2::4] = _by_size(between, sizes)
    parts[3::4] = values
    return b"".join(parts)


def _by_size(made: Mapping[int, bytes], sizes: Sequence[int]) -> list[bytes]:
    """Returns the bytes of each size; `made` has the bytes of these sizes, and of no other."""
    if len(made) == 1:
        return [made[sizes[0]]] * len(sizes)
    return list(map(made.__getitem__, sizes))
