"""Remembers the layouts of records, so that a `Struct` reads a record at once.

Records of a topic are mostly uniform: no headers or headers of the same size, keys of the same
length. Records of the same length then have the same layout: the sizes of all fields. The first of
them is read field by field, and its layout is stored. Later records are read with the layout, and
the encoded lengths in them are compared with it. A record that differs is read field by field, and
its layout may be stored too.
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

#: The items of a layout:
#: - the size of a record in bytes, with the length in front of it;
#: - the function that unpacks a record;
#: - the encoded length of the key, and of the value;
#: - the encoded header block if it has no headers, else b"";
#: - the flags KEY_IS_NULL (not in VALUES) and VALUE_IS_NULL;
#: - the encoded length of the record;
#: - the `struct` format of a record for `iter_unpack`;
#: - the positions of timestamp delta, key length and header block in a record;
#: - the `struct` format that unpacks only the key (not in VALUES), the value and the header block
#:   (not in VALUES);
#: - the same format with the timestamp delta in front (not in VALUES);
#: - the bytes that all records have: each with its position in a record.
#: A record unpacks to: timestamp delta, offset delta, key length, key (not in VALUES), value
#: length, value, header block (in VALUES: its first byte). With the format for `iter_unpack`, the
#: length of the record comes first.
Layout: TypeAlias = (
    "tuple[int, _Unpack, bytes, bytes, bytes, int, bytes, str, _Places, str, str, _Constants]"
)

_Unpack: TypeAlias = "Callable[[bytes, int], tuple[bytes, ...]]"
_Places: TypeAlias = tuple[int, int, int]
_Constants: TypeAlias = "tuple[tuple[int, bytes], ...]"

#: A layout that matches no record.
NO_LAYOUT: Final[Layout] = (
    0,
    Struct("").unpack_from,
    b"",
    b"",
    b"",
    0,
    b"",
    "",
    (0, 0, 0),
    "",
    "",
    (),
)

KEY_IS_NULL: Final = 1
VALUE_IS_NULL: Final = 2

#: The maximum number of layouts in the cache; a layout takes about 400 bytes. A full cache is
#: emptied before the next layout is stored.
_MAX_LAYOUTS: Final = 4096
#: Records whose length has more bytes get no layout: copying their bytes takes most of the time.
_MAX_LENGTH_BYTES: Final = 2
_MAX_DELTA_BYTES: Final = 5
_MAX_DELTAS: Final = 8192
_MAX_TABLE: Final = 65536
_ONE_BYTE: Final = 64
#: The reader uses layouts in batches of at least this many records. The reader stops using them if
#: about one record in this many had no layout, because learning a layout takes as long as reading
#: several records.
_RECORDS_A_TRY: Final = 32

_IS_COMPILED: Final = not str(__file__).endswith((".py", ".pyc"))

#: The bit that an unsigned (still zigzag) length has if it is negative, which means null.
_NEGATIVE: Final = 1
_EMPTY: Final = b"\x00"


class Layouts:
    """Stores the layouts of records.

    The first key of a layout is the pair of sizes, in bytes, of the timestamp delta and the offset
    delta. The second key is the first two bytes of a record, which encode its length.
    """

    __slots__ = ("_by_sizes", "_learnt", "_with_keys")

    def __init__(self, with_keys: bool) -> None:
        self._with_keys = with_keys
        self._by_sizes: dict[tuple[int, int], dict[bytes, Layout]] = {}
        self._learnt = 0

    def of_sizes(self, time_size: int, offset_size: int) -> Callable[[bytes], Layout | None]:
        """Returns a function that maps the first two bytes of a record to a layout, or to None.

        The timestamp delta of the record must take `time_size` bytes, and the offset delta
        `offset_size` bytes.
        """
        return self._by_sizes.setdefault((time_size, offset_size), {}).get

    def count(self) -> int:
        """Returns the number of stored layouts."""
        return sum(map(len, self._by_sizes.values()))

    def learn(self, data: bytes, pos: int) -> Callable[[bytes], Layout | None]:
        """Stores the layout of the valid record at `pos`.

        Stores nothing if that layout is stored already, if the record is too long, or if its
        timestamp delta is too large. Returns the function that finds the layouts of records whose
        encoded deltas have the same sizes as the encoded deltas of this record (see `of_sizes`).
        """
        length, after_length = read_varint(data, pos)
        end = after_length + (length >> 1)
        _, after_time = read_varlong(data, after_length + 1)
        _, after_offset = read_varint(data, after_time)
        key, key_at = read_varint(data, after_offset)
        key_size = 0 if key & _NEGATIVE else key >> 1
        value, value_at = read_varint(data, key_at + key_size)
        value_size = 0 if value & _NEGATIVE else value >> 1
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
        fields = f"{key_part}{len(value_length)}x{value_size}s{header_part}"
        layouts[data[pos : pos + 2]] = (
            end - pos,
            Struct(f"{length_size}x{behind}").unpack_from,
            key_length,
            value_length,
            _EMPTY if header_size == 1 else b"",
            KEY_IS_NULL * (self._with_keys and key & _NEGATIVE)
            | VALUE_IS_NULL * (value & _NEGATIVE),
            data[pos:after_length],
            f"{length_size}s{behind}",
            (after_length + 1 - pos, after_offset - pos, headers_at - pos),
            f"{key_at - pos}x{fields}"
            if self._with_keys
            else f"{value_at - pos}x{value_size}s{header_size}x",
            f"{after_length + 1 - pos}x{time_size}s{key_at - after_time}x{fields}"
            if self._with_keys
            else "",
            tuple(
                (at - pos, data[at : at + 1])
                for at in (
                    *range(pos, after_length),
                    *range(after_offset, key_at),
                    *range(key_at + key_size, value_at),
                    *range(headers_at, headers_at + (header_size == 1)),
                )
            ),
        )
        self._learnt += 1
        return layouts.get


#: The layouts to read whole records, and the layouts to read values only, without keys.
RECORDS: Final = Layouts(with_keys=True)
VALUES: Final = Layouts(with_keys=False)


def tries(count: int) -> int:
    """Returns how many records of a batch may lack a layout before the reader stops using layouts.

    `count` is the number of records in the batch. Returns 0 if the reader must use no layouts,
    because `count` is small or mypyc compiled this module: reading field by field is then faster.
    """
    if count < _RECORDS_A_TRY or _IS_COMPILED:
        return 0
    return 2 + count // _RECORDS_A_TRY


def same_sizes(index: int) -> int:
    """Returns the number of offset deltas, from `index` on, for which the reader keeps its layouts.

    The result is at least 1.

    Deltas below 64 have one byte, deltas from 64 to 8,191 have two bytes, higher deltas have three
    bytes. Deltas of two and of three bytes are counted together: a layout for two bytes matches no
    delta of three bytes, and the reader then learns another layout.
    """
    return max((_ONE_BYTE if index < _ONE_BYTE else _MAX_TABLE) - index, 1)


_deltas: Final[dict[bytes, int]] = {}


def delta_of(varint: bytes) -> int:
    """Returns the unsigned value of `varint`, before zigzag; -1 if it is not a whole varlong."""
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


# The varints of 0, 1, 2 …, then b"", which is unequal to all varints.
_offsets: list[bytes] = [*VARINTS, b""]


def offset_varints(count: int) -> list[bytes]:
    """Returns the varints of 0, 1, 2 …, then b"", which equals no varint.

    There are 8,192 varints, or after calls with a larger `count` the next power of two, at most
    65,536. The whole table takes 2.5 MiB, and few batches have so many records.
    """
    global _offsets
    if count >= len(_offsets) < _MAX_TABLE:
        known = min(1 << (count - 1).bit_length(), _MAX_TABLE)
        longer = [
            bytes((low, high, top))
            for top in range(1, known >> 13)
            for high in range(0x80, 0x100)
            for low in range(0x80, 0x100, 2)
        ]
        _offsets = [*VARINTS, *longer, b""]
    return _offsets
