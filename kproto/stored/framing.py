"""Helps to read and write records whose message comes after a prefix with its type or version.

`control_records`, `coordinator_records` and `metadata_log` use these functions. Each of these
modules has its own prefix, and the last two have tables of record types.
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
"""Maps a topic to its record types: a dict from the number of a type to its name."""


def record_types_of(topic: str, tables: RecordTypes, without: str) -> dict[int, str]:
    """Returns the names of the topic's record types by their numbers.

    Raises ConfigurationError if `tables` lacks the topic; `without` is the reason in the error.
    """
    if topic not in tables:
        raise ConfigurationError(f"{topic!r} {without}: pass topic= one of {', '.join(tables)}")
    return tables[topic]


def numbers_of(tables: RecordTypes) -> dict[str, int]:
    """Returns the number of each record type, by the name of the type."""
    return {name: number for types in tables.values() for number, name in types.items()}


def message_class(name: str) -> type[Message]:
    """Returns the generated class called `name`."""
    found: type[Message] = getattr(generated, name)
    return found


def decode_after_prefix(cls: type[Message], data: bytes, start: int, version: int) -> Message:
    """Decodes the message that begins at `start` and ends with `data`.

    Raises DecodeError, whose offset counts from the start of `data`, not from `start`.
    """
    try:
        return cls.decode(data[start:], version)
    except DecodeError as error:
        raise error.shifted(start) from None


class Versioned(Protocol):
    """A record; `version` is the message version to write, None for the latest stable version.

    Callers may set a value that is no int, which `version_to_write` refuses.
    """

    @property
    def version(self) -> SupportsIndex | None: ...


def version_to_write(message: Message, record: Versioned) -> int:
    """Returns `record.version`, or the latest stable version if `record.version` is None.

    Raises EncodeError if the version is not an int.
    """
    version = record.version
    if version is None:
        return message.LATEST_STABLE
    try:
        return index(version)
    except TypeError:
        reason = f"a version is a whole number, not {type(version).__name__}"
        raise EncodeError(reason, message=type(message).__name__) from None
