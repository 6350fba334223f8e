"""Tests CRC-32C: folding constants, known checksums, and the choice of the implementation."""

from __future__ import annotations

import importlib
import random
import sys
from types import SimpleNamespace
from typing import Any

import google_crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto.records import crc32c, crc32c_pure
from kproto.records.magic2 import crc as crc_module
from kproto.records.magic2.crc import LADDER, POLYNOMIAL
from kproto.wire.compiled import __compiled__


def remainder_of_power(exponent: int) -> int:
    """Returns x^exponent modulo the CRC polynomial; the bits of the result are coefficients."""

    def reduced(product: int) -> int:
        while product.bit_length() > 32:
            product ^= POLYNOMIAL << (product.bit_length() - 33)
        return product

    result, base = 1, 2
    while exponent:
        if exponent & 1:
            result = reduced(carryless_product(result, base))
        base = reduced(carryless_product(base, base))
        exponent >>= 1
    return result


def carryless_product(a: int, b: int) -> int:
    product = 0
    while b:
        if b & 1:
            product ^= a
        a <<= 1
        b >>= 1
    return product


def test_powers_are_reduced_as_long_division_does() -> None:
    for exponent in range(200):
        rest = 1 << exponent
        while rest.bit_length() > 32:
            rest ^= POLYNOMIAL << (rest.bit_length() - 33)
        assert remainder_of_power(exponent) == rest


@pytest.mark.parametrize("rung", LADDER, ids=lambda rung: f"x^{rung[0]}")
def test_every_rung_is_a_multiple_of_the_polynomial(rung: tuple[int, ...]) -> None:
    total = 1
    for exponent in rung:
        total ^= remainder_of_power(exponent)
    assert total == 0


def test_the_ladder_goes_down() -> None:
    assert list(LADDER) == sorted(LADDER, reverse=True)
    for rung in LADDER:
        assert list(rung) == sorted(rung, reverse=True)


# Values of RFC 3720, appendix B.4, and the check value of the CRC catalogue.
KNOWN = [
    (b"", 0x00000000),
    (b"123456789", 0xE3069283),
    (bytes(32), 0x8A9136AA),
    (b"\xff" * 32, 0x62A8AB43),
    (bytes(range(32)), 0x46DD794E),
    (bytes(range(31, -1, -1)), 0x113FDB5C),
]


@pytest.mark.parametrize("checksum", [crc32c_pure, crc32c], ids=["pure", "chosen"])
@pytest.mark.parametrize(("data", "expected"), KNOWN)
def test_known_values_are_returned(
    checksum: crc_module.ChecksumFunction, data: bytes, expected: int
) -> None:
    assert checksum(data) == expected


def test_every_length_around_the_steps_of_the_ladder() -> None:
    data = random.Random(1).randbytes(400_000)
    lengths = {*range(700), *range(131_060, 131_080), 262_143, 262_145, 400_000}
    for n, *_ in LADDER:
        lengths |= {n // 8 + more for more in range(-2, 8)}
        lengths |= {n // 4 + more for more in range(-2, 8)}
    for length in sorted(lengths):
        piece = data[:length]
        assert crc32c_pure(piece) == google_crc32c.value(piece), length


@given(st.binary(max_size=3000), st.binary(max_size=300))
def test_the_checksum_equals_googles_and_can_be_continued(data: bytes, more: bytes) -> None:
    whole = google_crc32c.value(data + more)
    assert crc32c_pure(data + more) == whole
    assert crc32c_pure(more, crc32c_pure(data)) == whole
    assert crc32c(more, crc32c(data)) == whole


@pytest.mark.parametrize("size", [5, 50, 1000, 300_000])
@pytest.mark.parametrize("checksum", [crc32c_pure, crc32c], ids=["pure", "chosen"])
def test_any_bytes_like_object_is_accepted(
    checksum: crc_module.ChecksumFunction, size: int
) -> None:
    data = random.Random(size).randbytes(size)
    expected = google_crc32c.value(data[2:])
    assert checksum(bytearray(data[2:])) == expected
    assert checksum(memoryview(data)[2:]) == expected
    assert checksum(memoryview(bytearray(data))[2:]) == expected
    numbers = data[: size // 4 * 4]
    assert checksum(memoryview(numbers).cast("I")) == google_crc32c.value(numbers)
    if len(numbers) < 1000:
        assert checksum(memoryview(numbers).cast("B", (2, len(numbers) // 2))) == (
            google_crc32c.value(numbers)
        )


@pytest.mark.parametrize("checksum", [crc32c_pure, crc32c], ids=["pure", "chosen"])
@pytest.mark.parametrize("data", [5, [1, 2], "text", None])
def test_other_objects_are_refused(checksum: crc_module.ChecksumFunction, data: Any) -> None:
    with pytest.raises(TypeError):
        checksum(data)


def chosen(monkeypatch: pytest.MonkeyPatch, **modules: object) -> str:
    """Returns the name of the chosen implementation if only `modules` can be imported."""
    for name in ("google_crc32c", "crc32c"):
        monkeypatch.setitem(sys.modules, name, modules.get(name))
    name, checksum = crc_module._choose()
    assert checksum(b"123456789") == 0xE3069283
    return name


def test_the_fastest_installed_implementation_is_chosen(monkeypatch: pytest.MonkeyPatch) -> None:
    google = importlib.import_module("google_crc32c")
    package = SimpleNamespace(crc32c=crc32c_pure)
    slow_google = SimpleNamespace(implementation="python")
    assert chosen(monkeypatch, google_crc32c=google, crc32c=package) == "google_crc32c"
    assert chosen(monkeypatch, google_crc32c=slow_google, crc32c=package) == "crc32c"
    assert chosen(monkeypatch, crc32c=package) == "crc32c"
    assert chosen(monkeypatch) == "kproto"


@pytest.mark.skipif(not __compiled__, reason="interpreted code has no C function")
def test_compiled_code_computes_the_checksum() -> None:
    data = random.Random(5).randbytes(100_000)
    for size in (*range(70), 4095, 100_000):
        for start in (0, 1):
            piece = data[start : start + size]
            assert crc_module.crc32c_compiled(piece) == google_crc32c.value(piece), size
    whole = google_crc32c.value(data)
    first = crc_module.crc32c_compiled(bytearray(data[:777]))
    assert crc_module.crc32c_compiled(memoryview(data)[777:], first) == whole
