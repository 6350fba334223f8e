"""Decodes only the values of the records of a batch (magic 2).

For speed, this module has its own copy of the loop in `record_decoding`. The copy stores only the
values, but checks the other fields as the original does. `record_decoding.explain` raises the
errors.
"""

from __future__ import annotations

from itertools import repeat
from struct import error as struct_error
from typing import TYPE_CHECKING

from ...wire.compiled import __compiled__
from ..varints import VARINTS, read_varint, read_varlong
from . import record_layouts
from .layout_runs import LEAST_RUN, is_run, read_values, runs
from .record_decoding import check_count, explain
from .record_layouts import NO_LAYOUT, VALUES

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...wire.native import i64
    from .record_layouts import Layout

__all__ = ["decode_values"]


def decode_values(
    data: bytes, start: int, limit: int, count: int, last_offset_delta: int
) -> list[bytes | None]:
    """Returns the values of the `count` records that fill `data[start:limit]` exactly.

    Raises ValueError if a record is corrupt; the text names the record and the field. The offset
    deltas must rise from 0 or more to `last_offset_delta` or less.
    """
    check_count(start, limit, count, last_offset_delta)
    tries = 0 if __compiled__ else record_layouts.tries(count)
    find: Callable[[bytes], Layout | None] | None = None
    varints = record_layouts.offset_varints(count) if tries else VARINTS
    index: i64 = 0  # the offset delta of the next record, if there is no gap
    seen = b"\x00"  # the latest encoded timestamp delta
    # The latest layout and the encoded length of its records; empty if there is none.
    last = b""
    layout = NO_LAYOUT
    size, unpack, key_length, value_length, empty, nulls = layout[:6]
    runs_left = runs(count)
    values: list[bytes | None] = []
    append = values.append
    value: bytes | None
    pos: i64 = start
    end: i64
    n: i64  # the latest varint, before it is decoded from zigzag
    try:
        while len(values) < count:
            left = count - len(values)
            if tries:
                left = min(left, record_layouts.same_sizes(index))
                find = VALUES.of_sizes(len(seen), len(varints[index]))
                last = data[pos : pos + 2]
                layout = find(last) or NO_LAYOUT
                if layout is NO_LAYOUT:
                    last = b""
                size, unpack, key_length, value_length, empty, nulls = layout[:6]
            others = repeat(None, left)
            for _ in others:
                if find is not None:
                    if runs_left and last:
                        first = index
                        if is_run(data, pos, size, last):
                            is_unread, index, seen = read_values(
                                values, others, data, pos, limit, layout, varints, index, seen
                            )
                            pos += (index - first) * size
                            if not is_unread:
                                continue
                        if index - first < LEAST_RUN:
                            runs_left -= 1
                    length = data[pos : pos + 2]
                    if length != last:
                        found = find(length)
                        if found is None:
                            last = b""
                        else:
                            last = length
                            layout = found
                            size, unpack, key_length, value_length, empty, nulls = layout[:6]
                    if last:
                        delta, at, key_is, value_is, value, headers = unpack(data, pos)
                        if (
                            at == varints[index]
                            and key_is == key_length
                            and value_is == value_length
                            and (headers == empty if empty else headers[0])
                            and (delta == seen or record_layouts.delta_of(delta) >= 0)
                        ):
                            seen = delta
                            append(None if nulls else value)
                            pos += size
                            index += 1
                            continue
                begun = pos
                # Varints of one or two bytes are read inline, longer ones by `read_varint`.
                # Length of the record:
                n = data[pos]
                if n < 128:
                    pos += 1
                else:
                    n += (data[pos + 1] << 7) - 128
                    if n < 16384:
                        pos += 2
                    else:
                        n, pos = read_varint(data, pos)
                end = pos + (n >> 1)
                if n & 1:
                    break
                # Attributes (one byte, unused), then the timestamp delta:
                n = data[pos + 1]
                if n < 128:
                    pos += 2
                else:
                    n += (data[pos + 2] << 7) - 128
                    if n < 16384:
                        pos += 3
                    else:
                        _, pos = read_varlong(data, pos + 1)
                # Offset delta:
                n = data[pos]
                if n < 128:
                    pos += 1
                else:
                    n += (data[pos + 1] << 7) - 128
                    if n < 16384:
                        pos += 2
                    else:
                        n, pos = read_varint(data, pos)
                if n != index << 1:
                    # The deltas have a gap, or do not rise.
                    if n & 1 or n >> 1 < index:
                        break
                    index = n >> 1
                index += 1
                # Key. A length that goes past the record is detected later: `end - pos` is then
                # negative.
                n = data[pos]
                if n < 128:
                    pos += 1
                else:
                    n += (data[pos + 1] << 7) - 128
                    if n < 16384:
                        pos += 2
                    else:
                        n, pos = read_varint(data, pos)
                if not n & 1:
                    pos += n >> 1
                # Value:
                n = data[pos]
                if n < 128:
                    pos += 1
                else:
                    n += (data[pos + 1] << 7) - 128
                    if n < 16384:
                        pos += 2
                    else:
                        n, pos = read_varint(data, pos)
                if n & 1:
                    value = None
                else:
                    n = pos + (n >> 1)
                    value = data[pos:n]
                    pos = n
                # Header block: from the count to the end of the record.
                if end - pos > 1:
                    if not data[pos]:
                        break
                elif end - pos != 1 or data[pos]:
                    break
                append(value)
                pos = end
                if find is not None:
                    tries -= 1
                    if tries <= 0 or index >= len(varints):
                        tries = 0
                        find = None
                    else:
                        find = VALUES.learn(data, begun)
                        last = b""
            else:
                continue
            break
    except (IndexError, ValueError, struct_error):
        explain(data, start, limit, count, last_offset_delta)
    if len(values) != count or pos != limit or index > last_offset_delta + 1:
        explain(data, start, limit, count, last_offset_delta)
    return values
