"""Reads and writes a message behind the bytes that tell its type and version.

Finds a class by its name, decodes it behind the prefix, chooses the version to write, and looks up
tables of record types. `control_records`, `coordinator_records` and `metadata_log` have those
tables and know the prefix of their own records.
"""

from __future__ import annotations

from operator import index
from typing import Protocol, SupportsIndex, TypeAlias

from .. import messages as generated
from ..messages.base import Message
from ..wire.errors import ConfigurationError, DecodeError, EncodeError

__all__ = [
    "RecordTypes",
    "decode_after_prefix",
    "message_class",
    "numbers_of",
    "record_types_of",
    "version_to_write",
]

RecordTypes: TypeAlias = dict[str, dict[int, str]]
"""The names of record types, by topic and number."""


def record_types_of(topic: str, tables: RecordTypes, without: str) -> dict[int, str]:
    """Returns the record types of a topic.

    Raises ConfigurationError, with `without` as the reason, for a topic that has none.
    """
    if topic not in tables:
        raise ConfigurationError(f"{topic!r} {without}: pass topic= one of {', '.join(tables)}")
    return tables[topic]


def numbers_of(tables: RecordTypes) -> dict[str, int]:
    """Returns the number of each record type, by name."""
    return {name: number for types in tables.values() for number, name in types.items()}


def message_class(name: str) -> type[Message]:
    """Returns the generated class called `name`."""
    found: type[Message] = getattr(generated, name)
    return found


def decode_after_prefix(cls: type[Message], data: bytes, start: int, version: int) -> Message:
    """Returns the message in `data` from `start` to the end.

    Raises DecodeError, whose offset counts from the start of `data`.
    """
    try:
        return cls.decode(data[start:], version)
    except DecodeError as error:
        raise error.shifted(start) from None


class Versioned(Protocol):
    """A record with the version to write its message at; None takes the latest stable version.

    The version comes from the caller unchecked: it need not be the int that the type declares.
    """

    @property
    def version(self) -> SupportsIndex | None: ...


def version_to_write(message: Message, record: Versioned) -> int:
    """Returns the version that `record` names, or the latest stable. Raises EncodeError."""
    version = record.version
    if version is None:
        return message.LATEST_STABLE
    try:
        return index(version)
    except TypeError:
        reason = f"a version is a whole number, not {type(version).__name__}"
        raise EncodeError(reason, message=type(message).__name__) from None
