"""Defines `NewRecord` (a record to write), its check, and limits of batches and timestamps.

For speed, the builders of batches and message sets do not check the records. If encoding a record
raises one of ENCODE_FAILURES, the builder calls `check_new_record`, whose error names the field.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Final, TypeAlias

from ..wire.buffers import BYTES_LIKE
from ..wire.checks import check_whole_number
from ..wire.errors import EncodeError
from .log_format import NO_TIMESTAMP

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .header_block import Header

__all__ = [
    "ENCODE_FAILURES",
    "MAX_BATCH_BYTES",
    "MAX_INT32",
    "MAX_INT64",
    "MAX_TIMESTAMP_MS",
    "NewRecord",
    "check_max_bytes",
    "check_new_record",
]

NewRecord: TypeAlias = "tuple[bytes | None, bytes | None, Sequence[Header], int]"
"""A record to be written: key, value, headers, timestamp in ms."""

#: The default of `max_bytes` in the builders, which limits a batch before compression. It is
#: Kafka's default for max.request.size, which is below a broker's default message.max.bytes
#: (1,048,588).
MAX_BATCH_BYTES: Final = 1_048_576

MAX_INT32: Final = 0x7FFFFFFF
MAX_INT64: Final = 0x7FFFFFFFFFFFFFFF

#: The largest timestamp in ms.
MAX_TIMESTAMP_MS: Final = MAX_INT64

#: The exceptions that Python raises for a value of a wrong type, or too large for its field.
ENCODE_FAILURES: Final = (TypeError, ValueError, AttributeError, OverflowError, struct.error)


def check_max_bytes(max_bytes: object, overhead: int) -> None:
    """Raises ConfigurationError if `max_bytes` is no int from `overhead` + 1 to 2 GiB - 1."""
    check_whole_number("max_bytes", max_bytes, overhead + 1, MAX_INT32)


def check_new_record(index: int, record: object) -> None:
    """Raises EncodeError, which names the field, if a field of `record` is wrong.

    The error calls the record `records[index]`.
    """
    path = f"records[{index}]"
    if not isinstance(record, tuple | list):
        raise EncodeError(
            f"{_kind(record)} is not a tuple of key, value, headers and timestamp", field=path
        )
    if len(record) != 4:
        raise EncodeError(
            f"{len(record)} values instead of 4: key, value, headers and timestamp", field=path
        )
    key, value, headers, timestamp = record
    _explain_bytes(f"{path}.key", key)
    _explain_bytes(f"{path}.value", value)
    if headers:
        if not isinstance(headers, tuple | list):
            raise EncodeError(
                f"{_kind(headers)} is not a sequence of (name, value)", field=f"{path}.headers"
            )
        for number, header in enumerate(headers):
            _explain_header(f"{path}.headers[{number}]", header)
    if not isinstance(timestamp, int):
        raise EncodeError(f"{_kind(timestamp)} is not int (ms)", field=f"{path}.timestamp")
    if not NO_TIMESTAMP <= timestamp <= MAX_INT64:
        raise EncodeError(
            f"{timestamp} is not a time in ms, nor -1 for none", field=f"{path}.timestamp"
        )


def _explain_header(path: str, header: object) -> None:
    if not isinstance(header, tuple | list) or len(header) != 2:
        raise EncodeError(f"{_kind(header)} is not a tuple of name and value", field=path)
    name, value = header
    if not isinstance(name, str):
        raise EncodeError(f"{_kind(name)} is not str", field=f"{path} name")
    try:
        name.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError as error:
        raise EncodeError(f"cannot be written as UTF-8: {error}", field=f"{path} name") from None
    _explain_bytes(f"{path} ({name!r}) value", value)


def _explain_bytes(path: str, value: object) -> None:
    if value is not None and not isinstance(value, BYTES_LIKE):
        raise EncodeError(f"{_kind(value)} is not bytes or None", field=path)
    try:
        memoryview(value or b"")
    except ValueError:
        raise EncodeError("a memoryview that was released", field=path) from None


def _kind(value: object) -> str:
    return "None" if value is None else type(value).__name__
