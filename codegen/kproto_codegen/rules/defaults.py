"""Checks that the text of a default is a valid value of the field's type.

Accepts the notations that Kafka's generator, and the Java compiler after it, accept.
"""

from __future__ import annotations

import base64
import binascii
import math
import re
from typing import Final

from kproto.schema.specs import FieldSpec, parse_integer

__all__ = ["INTEGER_RANGES", "fault_of_default"]

#: The smallest and the largest value of each integer type.
INTEGER_RANGES: Final = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}

_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]{1,32}", re.ASCII)
_OCTAL = re.compile(r"[+-]?0[0-7]{1,40}", re.ASCII)
_DECIMAL = re.compile(r"[+-]?(?:0|[1-9][0-9]{0,40})", re.ASCII)
_FLOAT = re.compile(r"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?", re.ASCII)
_UUID = re.compile(r"[A-Za-z0-9_-]{22}(?:==)?", re.ASCII)


def fault_of_default(field: FieldSpec) -> str | None:
    """Returns the reason why the default of `field` is invalid; None if it is valid."""
    text = field.default
    if not text:
        return None
    if field.type in INTEGER_RANGES:
        return _fault_of_integer(text, field.type)
    match field.type:
        case "bool":
            good = text in {"true", "false"}
            return None if good else f"{text!r} is no bool: write true or false"
        case "float64":
            return _fault_of_float(text)
        case "uuid":
            return _fault_of_uuid(text)
        case "string":
            return _fault_of_null(field) if text == "null" else None
        case "records":
            if text != "null":
                return f"{text!r}: records can only be empty or null by default"
            return _fault_of_null(field)
    if text != "null":
        return f"{text!r}: a field of type {field.type} can only be empty or null by default"
    return _fault_of_null(field)


def _fault_of_null(field: FieldSpec) -> str | None:
    if field.nullable_versions.covers(field.versions):
        return None
    return (
        f"null cannot be the default: the field is nullable in versions "
        f"{field.nullable_versions}, not in all of its versions {field.versions}"
    )


def _fault_of_integer(text: str, kind: str) -> str | None:
    if not any(form.fullmatch(text) for form in (_HEXADECIMAL, _OCTAL, _DECIMAL)):
        return (
            f"{text!r} is no integer: write decimal digits, 0x and hexadecimal digits, "
            "or 0 and octal digits"
        )
    lowest, highest = INTEGER_RANGES[kind]
    value = parse_integer(text)
    if lowest <= value <= highest:
        return None
    return f"{text} is out of the range of {kind}, which is {lowest} to {highest}"


def _fault_of_float(text: str) -> str | None:
    if _FLOAT.fullmatch(text) is None:
        return f"{text!r} is no decimal number"
    return None if math.isfinite(float(text)) else f"{text} is out of the range of float64"


def _fault_of_uuid(text: str) -> str | None:
    reason = f"{text!r} is no uuid: write its 16 bytes as 22 characters of base64url"
    if _UUID.fullmatch(text) is None:
        return reason
    try:
        decoded = base64.urlsafe_b64decode(text[:22] + "==")
    except binascii.Error:
        return reason
    return None if len(decoded) == 16 else reason
