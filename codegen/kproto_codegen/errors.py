"""The errors of the generator: an invalid definition or source, and a missing package.

Knows nothing of the content of a definition; has its place (file, line, field) and the reason.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["DefinitionError", "MissingPackageError"]


class MissingPackageError(Exception):
    """Raised if a package that only some commands need is missing; the message names its extra."""


class DefinitionError(Exception):
    """Raised for an invalid definition, or an unreadable place of definitions.

    `file` is the file as the user knows it (`kafka-clients-4.4.0.jar!common/message/X.json` for a
    file in a jar), `line` counts from 1, `field` is a path such as `Topics.Partitions.Index`.
    `others` are further errors, if several were found at once.
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
        """Returns one error with the texts of all `errors`, which must not be empty."""
        first, *others = (entry for error in errors for entry in error.each())
        return cls(first.reason, file=first.file, line=first.line, field=first.field, others=others)

    def each(self) -> Iterator[DefinitionError]:
        """Yields this error without the others, then each of the others, however deeply nested."""
        if self.others:
            yield DefinitionError(self.reason, file=self.file, line=self.line, field=self.field)
        else:
            yield self
        for other in self.others:
            yield from other.each()


def _describe(reason: str, file: str | None, line: int | None, field: str | None) -> str:
    """Formats `file:line: field X: reason` from the known parts."""
    parts = []
    if file is not None:
        parts.append(file if line is None else f"{file}:{line}")
    elif line is not None:
        parts.append(f"line {line}")
    if field:  # a name may be anything; what a terminal would act upon is escaped
        parts.append(f"field {field if field.isprintable() else ascii(field)}")
    return ": ".join([*parts, reason])
