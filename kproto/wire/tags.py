"""A tagged field that the definition does not know, kept as it came (KIP-482)."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["RawTaggedField"]


class RawTaggedField(NamedTuple):
    """A tag number and the bytes of its value, without their length."""

    tag: int
    data: bytes
