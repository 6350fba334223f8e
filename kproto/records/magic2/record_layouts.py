"""Remembers the layouts of records, so that one `Struct` reads each record, not byte by byte.

Records of a topic are mostly uniform: no headers or equal ones, keys of one length. Then all
records of one length have the same layout, and the first of them, read field by field, shows it.
The reader compares each part with the layout, so that a wrong layout is detected; a record that
differs is read field by field, and may become a layout. Knows no `Record`.
"""

from __future__ import annotations

from struct import Struct
from typing import TYPE_CHECKING, Final, TypeAlias

from ..varints import VARINTS, read_varint, read_varlong

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "KEY_IS_NULL",
    "NO_LAYOUT",
    "RECORDS",
    "VALUES",
    "VALUE_IS_NULL",
    "Layout",
    "Layouts",
    "delta_of",
    "offset_varints",
    "same_sizes",
    "tries",
]

#: Per layout: the size of a record with its length varint; the function that unpacks it; the
#: encoded lengths of key and value; the header block if it is empty; whether key (not for values)
#: and value are null; the encoded length of the record; the format that unpacks many records in a
#: row. A record unpacks to: timestamp delta, offset delta, key length, key (not for values), value
#: length, value, header block (for values: its first byte). In a row, the record's length precedes
#: them.
Layout: TypeAlias = (
    "tuple[int, Callable[[bytes, int], tuple[bytes, ...]], bytes, bytes, bytes, int, bytes, str]"
)

#: A layout that matches no record.
NO_LAYOUT: Final[Layout] = (0, Struct("").unpack_from, b"", b"", b"", 0, b"", "")

KEY_IS_NULL: Final = 1
VALUE_IS_NULL: Final = 2

#: The cache has at most this many layouts, of some 400 bytes each; then it is emptied.
_MAX_LAYOUTS: Final = 4096
#: For longer records the bytes themselves dominate the cost.
_MAX_LENGTH_BYTES: Final = 2
_MAX_DELTA_BYTES: Final = 5
_MAX_DELTAS: Final = 8192
_MAX_TABLE: Final = 65536
_ONE_BYTE: Final = 64
#: The reader tries layouts in batches of at least this many records, and stops if more than one
#: record in this many differs: learning a layout costs as much as reading some records.
_RECORDS_A_TRY: Final = 32

_IS_COMPILED: Final = not str(__file__).endswith((".py", ".pyc"))

_NULL: Final = 1
_EMPTY: Final = b"\x00"


class Layouts:
    """Stores layouts by the sizes of timestamp delta and offset delta in bytes.

    For each pair of sizes, the key is the first two bytes of the record, which have its length.
    """

    __slots__ = ("_by_sizes", "_learnt", "_with_keys")

    def __init__(self, with_keys: bool) -> None:
        self._with_keys = with_keys
        self._by_sizes: dict[tuple[int, int], dict[bytes, Layout]] = {}
        self._learnt = 0

    def of_sizes(self, time_size: int, offset_size: int) -> Callable[[bytes], Layout | None]:
        """Returns the look-up function for records whose deltas have these sizes in bytes."""
        return self._by_sizes.setdefault((time_size, offset_size), {}).get

    def count(self) -> int:
        """Returns how many layouts are known."""
        return sum(map(len, self._by_sizes.values()))

    def learn(self, data: bytes, pos: int) -> Callable[[bytes], Layout | None]:
        """Learns the layout of the valid record at `pos`; returns the look-up for its sizes."""
        length, after_length = read_varint(data, pos)
        end = after_length + (length >> 1)
        _, after_time = read_varlong(data, after_length + 1)
        _, after_offset = read_varint(data, after_time)
        key, key_at = read_varint(data, after_offset)
        key_size = 0 if key == _NULL else key >> 1
        value, value_at = read_varint(data, key_at + key_size)
        value_size = 0 if value == _NULL else value >> 1
        headers_at = value_at + value_size
        time_size = after_time - after_length - 1
        offset_size = after_offset - after_time
        if self._learnt >= _MAX_LAYOUTS:
            self._by_sizes.clear()
            self._learnt = 0
        layouts = self._by_sizes.setdefault((time_size, offset_size), {})
        if after_length - pos > _MAX_LENGTH_BYTES or time_size > _MAX_DELTA_BYTES:
            return layouts.get
        key_length = data[after_offset:key_at]
        value_length = data[key_at + key_size : value_at]
        known = layouts.get(data[pos : pos + 2])
        if known is not None and known[2] == key_length and known[3] == value_length:
            return layouts.get
        key_part = f"{key_size}s" if self._with_keys else f"{key_size}x"
        header_size = end - headers_at
        header_part = f"{header_size}s" if self._with_keys else f"1s{header_size - 1}x"
        behind = (
            f"x{time_size}s{offset_size}s{len(key_length)}s{key_part}"
            f"{len(value_length)}s{value_size}s{header_part}"
        )
        length_size = after_length - pos
        layouts[data[pos : pos + 2]] = (
            end - pos,
            Struct(f"{length_size}x{behind}").unpack_from,
            key_length,
            value_length,
            _EMPTY if header_size == 1 else b"",
            KEY_IS_NULL * (self._with_keys and key == _NULL) | VALUE_IS_NULL * (value == _NULL),
            data[pos:after_length],
            f"{length_size}s{behind}",
        )
        self._learnt += 1
        return layouts.get


#: The layouts of whole records, and those that skip the keys to read values only.
RECORDS: Final = Layouts(with_keys=True)
VALUES: Final = Layouts(with_keys=False)


def tries(count: int) -> int:
    """Returns how many records of a batch of `count` may differ before the reader stops."""
    if count < _RECORDS_A_TRY or _IS_COMPILED:
        return 0
    return 2 + count // _RECORDS_A_TRY


def same_sizes(index: int) -> int:
    """Returns how many offset deltas from `index` on have the same size, 1 or 2 bytes."""
    return max((_ONE_BYTE if index < _ONE_BYTE else _MAX_TABLE) - index, 1)


_deltas: Final[dict[bytes, int]] = {}


def delta_of(varint: bytes) -> int:
    """Returns the unsigned (still zigzag) value of a varlong of up to 5 bytes; -1 if it is none."""
    found = _deltas.get(varint)
    if found is None:
        try:
            found, size = read_varlong(varint, 0)
        except IndexError:
            return -1
        if size != len(varint):
            return -1
        if len(_deltas) < _MAX_DELTAS:
            _deltas[varint] = found
    return found


# The varints of 0, 1, 2 …, then an empty entry that no varint equals.
_offsets: list[bytes] = [*VARINTS, b""]


def offset_varints(count: int) -> list[bytes]:
    """Returns the expected varints of `count` offset deltas, then an entry that is no varint."""
    global _offsets
    if count >= len(_offsets) < _MAX_TABLE:
        longer = [
            bytes((low, high, top))
            for top in range(1, _MAX_TABLE >> 13)
            for high in range(0x80, 0x100)
            for low in range(0x80, 0x100, 2)
        ]
        _offsets = [*VARINTS, *longer, b""]
    return _offsets
