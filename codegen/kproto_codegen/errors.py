"""Defines the errors of the generator: `DefinitionError`, and a missing package."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["DefinitionError", "MissingPackageError"]


class MissingPackageError(Exception):
    """Raised if an optional package is missing; the text names the extra that installs it."""


class DefinitionError(Exception):
    """Raised for invalid or contradictory definitions, and for a source that cannot be read.

    Also raised if a file that was not generated would be overwritten. `file` is the path of the
    file, or for a file in a jar a name such as `kafka-clients-4.4.0.jar!common/message/X.json`.
    `line` counts from 1. `field` is a path such as `Topics.Partitions.Index`. `others` are further
    errors that were found at the same time.
    """

    def __init__(
        self,
        reason: str,
        *,
        file: str | None = None,
        line: int | None = None,
        field: str | None = None,
        others: Sequence[DefinitionError] = (),
    ) -> None:
        self.reason = reason
        self.file = file
        self.line = line
        self.field = field
        self.others = tuple(others)
        super().__init__("\n".join([_describe(reason, file, line, field), *map(str, self.others)]))

    @classmethod
    def of(cls, errors: Sequence[DefinitionError]) -> DefinitionError:
        """Returns the first error, with all further errors as its `others`.

        `errors` must not be empty.
        """
        first, *others = (entry for error in errors for entry in error.each())
        return cls(first.reason, file=first.file, line=first.line, field=first.field, others=others)

    def each(self) -> Iterator[DefinitionError]:
        """Yields this error without its `others`, then each of the `others` in the same way."""
        if self.others:
            yield DefinitionError(self.reason, file=self.file, line=self.line, field=self.field)
        else:
            yield self
        for other in self.others:
            yield from other.each()


def _describe(reason: str, file: str | None, line: int | None, field: str | None) -> str:
    """Returns the error text `file:line: field X: reason`, without parts that are None."""
    parts = []
    if file is not None:
        parts.append(file if line is None else f"{file}:{line}")
    elif line is not None:
        parts.append(f"line {line}")
    if field:  # a field name is untrusted, so control characters are escaped
        parts.append(f"field {field if field.isprintable() else ascii(field)}")
    return ": ".join([*parts, reason])
