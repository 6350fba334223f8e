"""Messages inside stored records, behind the bytes that say which message it is.

Owns how a class is found by its name and read from behind such bytes, which version is written,
and how a table of record types is looked up. What those bytes are, and the tables, is known to
`control_records`, `coordinator_records` and `metadata_log`, each for its own records.
"""

from __future__ import annotations

from operator import index
from typing import Protocol, SupportsIndex, TypeAlias

from .. import messages as generated
from ..messages.base import Message
from ..wire.errors import ConfigurationError, DecodeError, EncodeError

__all__ = [
    "RecordTypes",
    "class_called",
    "decode_behind",
    "numbers_of",
    "types_of",
    "version_to_write",
]

RecordTypes: TypeAlias = dict[str, dict[int, str]]
"""By topic, then by the number that its records begin with, the name of what they hold."""


def types_of(topic: str, tables: RecordTypes, without: str) -> dict[int, str]:
    """Returns the record types of a topic.

    Raises ConfigurationError on one that has none, which says of it what `without` does.
    """
    if topic not in tables:
        raise ConfigurationError(f"{topic!r} {without}: pass topic= one of {', '.join(tables)}")
    return tables[topic]


def numbers_of(tables: RecordTypes) -> dict[str, int]:
    """Returns the number that a record begins with, by the name of what it holds."""
    return {name: number for types in tables.values() for number, name in types.items()}


def class_called(name: str) -> type[Message]:
    """Returns the generated class of that name."""
    found: type[Message] = getattr(generated, name)
    return found


def decode_behind(cls: type[Message], data: bytes, start: int, version: int) -> Message:
    """Returns the message that `data` holds from `start` on, up to its end.

    Raises DecodeError, whose offset counts from the start of `data`.
    """
    try:
        return cls.decode(data[start:], version)
    except DecodeError as error:
        raise error.behind(start) from None


class Versioned(Protocol):
    """A message of a stored record with the version it is written at; None has the latest stable.

    The version is what the caller put there: it need not be the int that the record declares.
    """

    @property
    def version(self) -> SupportsIndex | None: ...


def version_to_write(message: Message, record: Versioned) -> int:
    """The version that `record` names, or the latest stable. Raises EncodeError on what is none."""
    version = record.version
    if version is None:
        return message.LATEST_STABLE
    try:
        return index(version)
    except TypeError:
        reason = f"a version is a whole number, not {type(version).__name__}"
        raise EncodeError(reason, message=type(message).__name__) from None
