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
from ..reading.parser import Definition, LocatedSpec

__all__ = [
    "Finding",
    "Profile",
    "Rule",
    "field_groups",
    "located_fields",
    "message_finding",
    "spec_finding",
    "struct_definitions",
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


def message_finding(
    definition: Definition, key: str, reason: str, *, accepted: bool = False
) -> Finding:
    """Returns a finding about one of the message's own keys."""
    line = definition.key_line(key)
    return Finding(DefinitionError(reason, file=definition.file, line=line), accepted)


def spec_finding(
    definition: Definition, located: LocatedSpec, key: str, reason: str, *, accepted: bool = False
) -> Finding:
    """Returns a finding about one key of a field or a common struct."""
    error = DefinitionError(
        reason, file=definition.file, line=located.key_line(key), field=located.path
    )
    return Finding(error, accepted)


def located_fields(definition: Definition) -> Iterator[tuple[LocatedSpec, FieldSpec]]:
    """Yields every field, with its place, those of common structs included."""
    for located in definition.fields():
        assert isinstance(located.spec, FieldSpec)
        yield located, located.spec


def field_groups(definition: Definition) -> Iterator[list[tuple[LocatedSpec, FieldSpec]]]:
    """Yields the fields of the message and of each struct, one list each."""
    groups: dict[int, list[tuple[LocatedSpec, FieldSpec]]] = {}
    for located, field in located_fields(definition):
        groups.setdefault(id(located.holder), []).append((located, field))
    yield from groups.values()


def struct_definitions(definition: Definition) -> Iterator[tuple[str, LocatedSpec]]:
    """Yields every struct with the place that defines it."""
    for located in definition.structs():
        yield located.spec.name, located
    for located, field in located_fields(definition):
        if field.fields and field.element_type not in PRIMITIVE_TYPES:
            yield field.element_type, located
