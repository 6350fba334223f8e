"""Checks the keys, values, headers and timestamps of records before they join a batch.

A batch fails as a whole, so invalid values in a batch would fail records of other calls, too. Does
no I/O.
"""

from __future__ import annotations

from collections.abc import Mapping

from ...records import MAX_TIMESTAMP_MS, GrowingBatch
from ...wire.buffers import octets_of_record
from ...wire.errors import EncodeError
from ..producer_record import Headers
from .old_brokers import unsupported_headers_error

__all__ = ["check_without_headers", "checked_bytes", "checked_headers", "checked_timestamp"]


def check_without_headers(topic: str, content: GrowingBatch) -> None:
    """Raises EncodeError if a record has headers, and CorruptBatchError for invalid bytes."""
    for record in content.records():
        if record.headers:
            raise unsupported_headers_error(topic, record.headers)


def checked_bytes(what: str, value: object) -> bytes:
    """Returns a copy of a bytes-like value, because its owner may change it. Raises EncodeError."""
    try:
        return octets_of_record(value)
    except (TypeError, ValueError) as error:
        raise EncodeError(f"the {what} of a record is bytes or None: {error}") from None


def checked_timestamp(timestamp: object) -> int:
    """Returns `timestamp`. Raises EncodeError if it is no time in ms since 1970."""
    if type(timestamp) is not int or not 0 <= timestamp <= MAX_TIMESTAMP_MS:
        raise EncodeError(f"timestamp {timestamp!r} of a record is no time in ms since 1970")
    return timestamp


def checked_headers(headers: Headers) -> Headers:
    """Returns `headers` as a tuple. Raises EncodeError for a name or value of a wrong type."""
    if isinstance(headers, Mapping):
        raise EncodeError(
            "headers of a record are pairs of str and bytes or None, and not a mapping: pass "
            "list(headers.items())"
        )
    try:
        found = tuple((name, value) for name, value in headers)
        for name, value in found:
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is no str")
            name.encode("utf-8", "surrogateescape")
            if value is not None and type(value) is not bytes:
                checked_bytes("header", value)
    except (AttributeError, TypeError, ValueError) as error:
        raise EncodeError(
            f"headers of a record are pairs of str and bytes or None: {error}"
        ) from None
    return found
