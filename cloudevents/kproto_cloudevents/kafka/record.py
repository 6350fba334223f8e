"""A Kafka record as plain data, and the checks of its Python types.

This module imports no events.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from ..errors import CloudEventError, shown

__all__ = ["ForwardOnly", "Header", "KafkaRecord", "check_shape", "shape_fault"]

Header = tuple[str, bytes | None]


class KafkaRecord(NamedTuple):
    """Key, value and headers of a Kafka record; None is null, which differs from empty."""

    key: bytes | None
    value: bytes | None
    headers: tuple[Header, ...] = ()

    def __repr__(self) -> str:
        names = ", ".join(shown(name) for name, _ in self.headers)
        return f"KafkaRecord(key={_size(self.key)}, value={_size(self.value)}, headers=[{names}])"


def _size(part: bytes | None) -> str:
    return "null" if part is None else f"<{len(part)} bytes>"


class ForwardOnly(NamedTuple):
    """A record that was not read as an event; it can be forwarded unchanged."""

    record: KafkaRecord
    #: The reason why the record is not a readable event.
    reason: str


def check_shape(key: object, value: object, headers: object) -> None:
    """Raises CloudEventError if a record's key, value or headers have a wrong Python type."""
    fault = shape_fault(key, value, headers)
    if fault is not None:
        raise CloudEventError(fault) from None


def shape_fault(key: object, value: object, headers: object) -> str | None:
    """Describes the first wrong Python type in a record; returns None if all are right."""
    for name, part in (("key", key), ("value", value)):
        if not (part is None or isinstance(part, bytes)):
            return f"the {name} of a record is bytes or None, not {type(part).__name__}"
    if isinstance(headers, Mapping):
        return (
            "headers are pairs (str, bytes | None) in their order, not a mapping: "
            "a mapping cannot hold a header twice"
        )
    if headers is None:
        return None
    if not isinstance(headers, Sequence):
        return f"headers are a sequence of pairs, not {type(headers).__name__}"
    for index, header in enumerate(headers):
        match header:
            case (str(), bytes() | None):
                continue
            case _:
                return f"header {index} is not a pair (str, bytes | None)"
    return None
