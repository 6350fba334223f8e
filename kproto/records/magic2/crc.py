"""Computes CRC-32C (Castagnoli), the checksum of record batches.

`crc32c` is the fastest implementation that can be imported: the package `google_crc32c` (only its C
implementation) or `crc32c` if installed, else kproto's own: `crc32c_compiled` in compiled code, and
otherwise `crc32c_pure`, which is pure Python and works by folding.

Folding works as follows. The message is read as one large little-endian integer. Its lowest bit is
the coefficient of the highest power of the message polynomial, because CRC-32C is a reflected CRC.
If x^n + x^a + x^b + … + 1 is a sparse multiple of the CRC polynomial, x^n may be replaced by
x^a + x^b + … + 1. A step replaces up to n - a of the lowest bits of the integer in this way, by a
few shifts and xors. So it shortens the integer by thousands of bits with a few operations of Python
that run in C. Smaller and smaller multiples reduce the integer to 40 bytes, whose checksum is
computed with tables.
"""

from __future__ import annotations

from functools import cache, lru_cache
from importlib import import_module
from struct import Struct
from typing import Final, Protocol

from ...wire.buffers import octets
from ...wire.compiled import __compiled__

if __compiled__:
    from ...wire.c_functions import crc32c_of

__all__ = ["CRC32C_IMPLEMENTATION", "crc32c", "crc32c_compiled", "crc32c_pure", "own_crc32c"]

POLYNOMIAL: Final = 0x11EDC6F41
"""The Castagnoli polynomial, highest power first (RFC 3720, section 12.1)."""

LADDER: Final[tuple[tuple[int, ...], ...]] = (
    (524193, 884, 118),
    (260068, 1734, 655),
    (131777, 1163, 128),
    (68757, 1275, 986),
    (34402, 632, 608),
    (17201, 316, 304),
    (6777, 484, 100),
    (5685, 1362, 426),
    (3818, 138, 110, 27, 18),
    (1944, 119, 76, 3, 2),
    (1285, 40, 38, 19, 8),
    (680, 122, 80, 19, 3),
    (563, 109, 58, 53, 31),
    (310, 33, 32, 30, 24, 22, 20),
)
"""Exponents of sparse multiples of the polynomial, highest first. The term 1 is left out."""

_CHUNK_BYTES: Final = 131072
# About twice the degree of the largest multiple, in bytes. Longer messages are folded in chunks of
# this size, so that the integers stay in the processor's cache and the time is linear.

_TAIL_BYTES: Final = 40
_TAIL_BITS: Final = _TAIL_BYTES * 8
_ALL_ONES: Final = 0xFFFFFFFF


def _byte_tables(count: int) -> tuple[list[int], ...]:
    """Returns a table for each of `count` byte positions: what each byte value adds to the CRC."""
    reflected = int(f"{POLYNOMIAL & _ALL_ONES:032b}"[::-1], 2)
    last: list[int] = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = (crc >> 1) ^ (reflected if crc & 1 else 0)
        last.append(crc)
    tables = [last]
    for _ in range(count - 1):
        tables.append([last[crc & 255] ^ (crc >> 8) for crc in tables[-1]])
    return tuple(reversed(tables))


@cache
def _tail_tables() -> tuple[list[int], ...]:
    """Returns the tables of the last bytes, which are built at the first use: they take 0.4 MiB."""
    return _byte_tables(_TAIL_BYTES)


_unpack_tail: Final = Struct(f"{_TAIL_BYTES}B").unpack

_MASKS: Final = {rung[0]: (1 << (rung[0] - rung[1])) - 1 for rung in LADDER}


@lru_cache(maxsize=1024)
def _plan(size: int) -> tuple[tuple[int, int, tuple[int, ...]], ...]:
    """Returns the steps that fold a message of `size` bytes; a step is (bits taken, mask, shifts).

    Each multiple x^n + x^a + … in `LADDER` folds the message down to n bits; the last multiple
    folds the message down to the tail. The excess is the number of bits above this target. A step
    takes the excess, but at most n - a bits. A multiple makes steps while the excess has a minimum
    size, which is

    - n - a bits if n is above 8,000;
    - 1 bit for the last multiple;
    - 64 bits for the other multiples.

    The next multiple then folds the remaining excess.
    """
    bits = size * 8
    steps = []
    for n, *powers in LADDER:
        step = n - powers[0]
        floor = max(n, _TAIL_BITS)
        least = step if n > 8000 else 64 if n > _TAIL_BITS else 1
        while bits - floor >= least:
            take = min(step, bits - floor)
            mask = _MASKS[n] if take == step else (1 << take) - 1
            steps.append((take, mask, (*(n - take - power for power in powers), n - take)))
            bits -= take
    return tuple(steps)


def crc32c_pure(data: bytes | bytearray | memoryview, crc: int = 0) -> int:
    """Returns CRC-32C of bytes-like `data`; `crc` is the checksum of the bytes before it."""
    if not isinstance(data, bytes | bytearray):
        data = octets(data)  # a memoryview's items may be larger than a byte
    if len(data) <= _CHUNK_BYTES:
        return _fold(data, crc)
    view = memoryview(data)
    for start in range(0, len(view), _CHUNK_BYTES):
        crc = _fold(view[start : start + _CHUNK_BYTES], crc)
    return crc


def _fold(data: bytes | bytearray | memoryview, crc: int) -> int:
    size = len(data)
    message = int.from_bytes(data, "little") ^ (
        crc ^ _ALL_ONES
    )  # a single xor of the large integer is faster than two
    crc = _ALL_ONES
    if size >= _TAIL_BYTES:
        for take, mask, shifts in _plan(size):
            low = message & mask
            message >>= take
            for shift in shifts:
                message ^= low << shift
    else:
        bits = size * 8
        if size < 4:  # the message is shorter than the CRC: the upper bits of the CRC remain
            crc ^= message >> bits
            message &= (1 << bits) - 1
        message <<= _TAIL_BITS - bits
    # The forty lookups are written out, because a loop takes 1.5 times as long.
    # fmt: off
    (t0, t1, t2, t3, t4, t5, t6, t7, t8, t9, t10, t11, t12, t13, t14, t15, t16, t17, t18, t19,
     t20, t21, t22, t23, t24, t25, t26, t27, t28, t29, t30, t31, t32, t33, t34, t35, t36, t37,
     t38, t39) = _tail_tables()
    (b0, b1, b2, b3, b4, b5, b6, b7, b8, b9, b10, b11, b12, b13, b14, b15, b16, b17, b18, b19,
     b20, b21, b22, b23, b24, b25, b26, b27, b28, b29, b30, b31, b32, b33, b34, b35, b36, b37,
     b38, b39) = _unpack_tail(message.to_bytes(_TAIL_BYTES, "little"))
    checksum: int = (
        crc ^ t0[b0] ^ t1[b1] ^ t2[b2] ^ t3[b3] ^ t4[b4] ^ t5[b5] ^ t6[b6] ^ t7[b7] ^ t8[b8]
        ^ t9[b9] ^ t10[b10] ^ t11[b11] ^ t12[b12] ^ t13[b13] ^ t14[b14] ^ t15[b15] ^ t16[b16]
        ^ t17[b17] ^ t18[b18] ^ t19[b19] ^ t20[b20] ^ t21[b21] ^ t22[b22] ^ t23[b23] ^ t24[b24]
        ^ t25[b25] ^ t26[b26] ^ t27[b27] ^ t28[b28] ^ t29[b29] ^ t30[b30] ^ t31[b31] ^ t32[b32]
        ^ t33[b33] ^ t34[b34] ^ t35[b35] ^ t36[b36] ^ t37[b37] ^ t38[b38] ^ t39[b39]
    )
    # fmt: on
    return checksum


def crc32c_compiled(data: bytes | bytearray | memoryview, crc: int = 0) -> int:
    """Returns CRC-32C as `crc32c_pure` does; in compiled code a C function computes it."""
    whole = data if isinstance(data, bytes) else octets(data)
    return crc32c_of(whole, crc)  # pyright: ignore[reportPossiblyUnboundVariable]


class ChecksumFunction(Protocol):
    """The signature of the CRC-32C functions."""

    def __call__(self, data: bytes | bytearray | memoryview, crc: int = 0) -> int:
        """Returns the CRC-32C of `data`; `crc` is the checksum of the bytes that precede `data`."""
        ...


#: The CRC-32C of kproto, which needs no package.
own_crc32c: Final[ChecksumFunction] = crc32c_compiled if __compiled__ else crc32c_pure


def _choose() -> tuple[str, ChecksumFunction]:
    """Returns the name of the package that provides CRC-32C, and its function."""
    try:
        google = import_module("google_crc32c")
    except ImportError:
        pass
    else:
        if google.implementation == "c":  # its Python implementation is slower than `crc32c_pure`
            extend = google.extend

            def from_google(data: bytes | bytearray | memoryview, crc: int = 0) -> int:
                value: int = extend(crc, data if type(data) is bytes else octets(data))
                return value

            return "google_crc32c", from_google
    try:
        package = import_module("crc32c")
    except ImportError:
        return "kproto", own_crc32c
    return "crc32c", package.crc32c


CRC32C_IMPLEMENTATION, crc32c = _choose()
