"""Tests the valid defaults of a field by its type, and their values."""

from __future__ import annotations

from typing import Any

import pytest

from ..samples import faults, field, message, spec

VALID_DEFAULTS: dict[str, list[Any]] = {
    "bool": ["true", "false", "TRUE", True, ""],
    "int8": ["-128", "127", "0x7f", "010", "-010", 0, "+5", ""],
    "int16": ["-32768", "32767", "0x7fff"],
    "uint16": ["0", "65535", "0xffff", "0177777"],
    "int32": ["-2147483648", "0x7fffffff", "-1", -1, "017777777777"],
    "uint32": ["4294967295", "0xffffffff", "037777777777"],
    "int64": ["-9223372036854775808", "9223372036854775807", "0x7fffffffffffffff"],
    "float64": ["1.5", "-0.5e-3", "1", "1.", ".5", 2.5, "1e308"],
    "uuid": ["AAAAAAAAAAAAAAAAAAAAAQ", "_w-AAAAAAAAAAAAAAAAAAQ=="],
    "string": ["anything; even \"'", ""],
    "bytes": [""],
    "records": [""],
    "[]int32": [""],
}

INVALID_DEFAULTS: dict[str, list[Any]] = {
    "bool": ["1", "yes", "null", 0],
    "int8": ["128", "-129", "0x80", "08", "018", "-08", "1_0", " 1", "1 ", "1.0", 1.5, "null"],
    "int16": ["32768", "0x8000", "0X10", "0x", "x", "--1", "1e3", True],
    "uint16": ["-1", "65536", "0x10000"],
    "int32": ["2147483648", "0x80000000", "٣", "0b1", "0o7", "1L", "9" * 5000],
    "uint32": ["-1", "4294967296", "0x-1", "0x100000000"],
    "int64": ["9223372036854775808", "0x8000000000000000"],
    "float64": ["NaN", "inf", "-Infinity", "1_0.5", " 1.5", "1e999", "0x1p3", "1.5f", "null", "."],
    "uuid": ["x", "AAAAAAAAAAAAAAAAAAAAAQA", "AAAAAAAAAAAAAAAAAAAAA+", "null"],
    "string": ["null"],
    "bytes": ["abc", "null"],
    "records": ["abc", "null"],
    "[]int32": ["[]", "null"],
}


@pytest.mark.parametrize("kind", VALID_DEFAULTS)
def test_valid_defaults_are_accepted(kind: str) -> None:
    for default in VALID_DEFAULTS[kind]:
        assert faults(message(field("A", kind, default=default))) == [], default


@pytest.mark.parametrize("kind", INVALID_DEFAULTS)
def test_invalid_defaults_are_refused(kind: str) -> None:
    for default in INVALID_DEFAULTS[kind]:
        (found,) = faults(message(field("A", kind, default=default)))
        assert found.startswith("sample.json:12: field A: default: "), found


@pytest.mark.parametrize(
    ("kind", "stated", "value"),
    [
        ("int32", "010", 8),
        ("int32", "-010", -8),
        ("int32", "0x10", 16),
        ("uint32", "0xffffffff", 4294967295),
        ("int64", "+7", 7),
        ("bool", "TRUE", True),
        ("float64", "-0.5e-3", -0.0005),
        ("uuid", "AAAAAAAAAAAAAAAAAAAAAQ", bytes(15) + b"\x01"),
    ],
)
def test_a_default_has_its_value(kind: str, stated: str, value: object) -> None:
    assert spec(field("A", kind, default=stated)).fields[0].default_value() == value


@pytest.mark.parametrize("kind", ["string", "bytes", "records", "[]int32", "[]Item", "Item"])
def test_null_is_a_default_if_all_versions_are_nullable(kind: str) -> None:
    inner: dict[str, Any] = {"fields": [field("X")]} if "Item" in kind else {}
    for versions, nullable in (("0+", "0+"), ("1+", "0+"), ("1-2", "1+")):
        source = message(
            field("A", kind, versions, nullableVersions=nullable, default="null", **inner)
        )
        assert faults(source) == []
    partly = message(field("A", kind, nullableVersions="1+", default="null", **inner))
    (fault,) = faults(partly)
    assert "null cannot be the default" in fault
