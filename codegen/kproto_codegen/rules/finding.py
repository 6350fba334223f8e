"""The findings of rules, and iterators over a definition that rules share.

Knows no rule. `table` decides how strictly findings are treated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from kproto.schema.specs import PRIMITIVE_TYPES, FieldSpec

from ..errors import DefinitionError
from ..reading.parser import Definition, Place

__all__ = [
    "Finding",
    "Profile",
    "Rule",
    "defining_places",
    "field_groups",
    "field_places",
    "of_message",
    "of_place",
]


class Profile(Enum):
    """How strictly a definition is checked.

    LEGACY accepts features of releases before 3.0: no flexibleVersions, which means none, and
    content behind the end of a file. Each accepted exception is reported.
    """

    STRICT = "strict"
    LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class Finding:
    """The finding of a rule. An `accepted` one is odd, but not an error."""

    error: DefinitionError
    accepted: bool = False


Rule: TypeAlias = Callable[[Definition], Iterator[Finding]]


def of_message(definition: Definition, key: str, reason: str, *, accepted: bool = False) -> Finding:
    """Returns a finding about one of the message's own keys."""
    line = definition.key_line(key)
    return Finding(DefinitionError(reason, file=definition.file, line=line), accepted)


def of_place(
    definition: Definition, place: Place, key: str, reason: str, *, accepted: bool = False
) -> Finding:
    """Returns a finding about one key of a field or a common struct."""
    error = DefinitionError(
        reason, file=definition.file, line=place.key_line(key), field=place.path
    )
    return Finding(error, accepted)


def field_places(definition: Definition) -> Iterator[tuple[Place, FieldSpec]]:
    """Yields every field, with its place, those of common structs included."""
    for place in definition.fields():
        assert isinstance(place.spec, FieldSpec)
        yield place, place.spec


def field_groups(definition: Definition) -> Iterator[list[tuple[Place, FieldSpec]]]:
    """Yields the fields of the message and of each struct, one list each."""
    groups: dict[int, list[tuple[Place, FieldSpec]]] = {}
    for place, field in field_places(definition):
        groups.setdefault(id(place.holder), []).append((place, field))
    yield from groups.values()


def defining_places(definition: Definition) -> Iterator[tuple[str, Place]]:
    """Yields every struct with the place that defines it."""
    for place in definition.structs():
        yield place.spec.name, place
    for place, field in field_places(definition):
        if field.fields and field.element_type not in PRIMITIVE_TYPES:
            yield field.element_type, place
