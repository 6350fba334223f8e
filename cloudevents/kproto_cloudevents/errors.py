"""The errors and the warning of this package.

Every fault of a record, document, attribute or setting is a `CloudEventError`. Its message names
the fault. If the fault belongs to a header, member or attribute, the message begins with the name
of that header, member or attribute. If the fault breaks a clause of a specification, the message
ends with the clause:

    ce_time: "tomorrow" is not RFC 3339 (Kafka binding 3.2.3, CloudEvents 1.0 "Timestamp")

Event data never appears in a message, and a long attribute value is cut.
"""

from __future__ import annotations

from typing import Final, Literal, Self, TypeAlias

__all__ = [
    "MAX_SHOWN",
    "CloudEventError",
    "CloudEventWarning",
    "OpaqueReason",
    "Unknown",
    "UnknownFormatError",
    "UnknownVersionError",
    "quoted",
    "shown",
    "unknown_of",
]

#: The maximum number of characters of an attribute value in an error or a repr: enough for a UUID,
#: a time or a short URI, too few to copy a whole payload into a log.
MAX_SHOWN = 48


class CloudEventError(ValueError):
    """A record, document, attribute or setting breaks a rule.

    `reason` is the fault. `where` is the header, member or attribute, or None for the whole record
    or document. `clauses` are the broken clauses of the specifications.
    """

    def __init__(
        self, reason: str, *, where: str | None = None, clauses: tuple[str, ...] = ()
    ) -> None:
        self.reason = reason
        self.where = where
        self.clauses = clauses
        place = "" if where is None else f"{where}: "
        source = f" ({', '.join(clauses)})" if clauses else ""
        super().__init__(f"{place}{reason}{source}")

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild_error, (type(self), self.reason, self.where, self.clauses), vars(self)


#: The unknown part of an event that can be forwarded but not read.
Unknown: TypeAlias = Literal["format", "version"]


class UnknownVersionError(CloudEventError):
    """The specversion is unknown, or the Avro or protobuf format does not support it.

    The event can be forwarded, but not read.
    """

    unknown: Final[Unknown] = "version"


class UnknownFormatError(CloudEventError):
    """The event format is not registered: the event can be forwarded, not read."""

    unknown: Final[Unknown] = "format"


class OpaqueReason(str):
    """The reason why an event can be forwarded but not read.

    `unknown` is the unknown part of the event: "format" or "version". The reason is a str, because
    an opaque event is a plain pair of the message and the reason.
    """

    __slots__ = ("unknown",)

    #: "format" or "version"; None only if the reason was constructed without it.
    unknown: Unknown | None

    def __new__(cls, text: str, unknown: Unknown | None = None) -> Self:
        reason = super().__new__(cls, text)
        reason.unknown = unknown
        return reason

    @classmethod
    def of(cls, error: UnknownVersionError | UnknownFormatError) -> Self:
        """Returns the reason for `error`: its message, and the unknown part (format or version)."""
        return cls(str(error), error.unknown)


def unknown_of(reason: str) -> Unknown | None:
    """Returns the unknown part, "format" or "version"; None if `reason` is a plain str."""
    return reason.unknown if isinstance(reason, OpaqueReason) else None


class CloudEventWarning(UserWarning):
    """A valid attribute name that should be avoided.

    The name is longer than the specification advises (SHOULD NOT), or starts with a digit.
    """


def quoted(value: str) -> str:
    """Returns the value in double quotes, cut at `MAX_SHOWN` characters.

    Escapes quotes, backslashes and unprintable characters.
    """
    shown = value if len(value) <= MAX_SHOWN else value[:MAX_SHOWN] + "…"
    return f'"{"".join(map(_escaped, shown))}"'


def shown(name: str) -> str:
    """Returns a header's or property's name for an error.

    Quotes a name that is empty, too long or not printable ASCII.
    """
    plain = name.isascii() and name.isprintable() and 0 < len(name) <= MAX_SHOWN
    return name if plain else quoted(name)


def _escaped(character: str) -> str:
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")


def _rebuild_error(
    kind: type[CloudEventError], reason: str, where: str | None, clauses: tuple[str, ...]
) -> CloudEventError:
    """Rebuilds a pickled error; pickle cannot pass keyword arguments to `__init__`."""
    return kind(reason, where=where, clauses=clauses)
