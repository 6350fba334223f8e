"""The errors of the generator: a definition, or a place to read it from, that is wrong; and a
package that is not installed.

Knows nothing of what a definition holds; says where it is (file, line, field) and why.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

__all__ = ["DefinitionError", "MissingPackageError"]


class MissingPackageError(Exception):
    """A package that only some commands need is not installed; the message says how to get it."""


class DefinitionError(Exception):
    """Something in a definition, or in the place it was to be read from, is wrong.

    `file` is the file as the user knows it (`kafka-clients-4.4.0.jar!common/message/X.json` for
    a file in a jar), `line` counts from 1, `field` is a path such as `Topics.Partitions.Index`.
    `others` holds the further errors when several were found at once.
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
        """One error that tells all that `errors` tell, of which there must be one."""
        first, *others = (told for error in errors for told in error.each())
        return cls(first.reason, file=first.file, line=first.line, field=first.field, others=others)

    def each(self) -> Iterator[DefinitionError]:
        """This error without the others, then each of those, however deep they stand in others."""
        if self.others:
            yield DefinitionError(self.reason, file=self.file, line=self.line, field=self.field)
        else:
            yield self
        for other in self.others:
            yield from other.each()


def _describe(reason: str, file: str | None, line: int | None, field: str | None) -> str:
    """`file:line: field X: reason`, with what is known of it."""
    place = []
    if file is not None:
        place.append(file if line is None else f"{file}:{line}")
    elif line is not None:
        place.append(f"line {line}")
    if field:  # a name may be anything; what a terminal would act upon is escaped
        place.append(f"field {field if field.isprintable() else ascii(field)}")
    return ": ".join([*place, reason])
