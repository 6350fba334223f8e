"""Defines the findings of rules, and the functions that rules share."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from typing import TypeAlias

from kproto.schema.specs import PRIMITIVE_TYPES, FieldSpec

from ..errors import DefinitionError
from ..reading.parser import Definition, LocatedSpec

__all__ = [
    "CheckStrictness",
    "Finding",
    "Rule",
    "field_groups",
    "located_fields",
    "message_finding",
    "spec_finding",
    "struct_definitions",
]


class CheckStrictness(Enum):
    """The strictness of the checks.

    LEGACY accepts definitions without flexibleVersions, as in releases before 3.0; the finding is
    still reported, as accepted.
    """

    STRICT = "strict"
    LEGACY = "legacy"


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of a rule.

    If `accepted` is True, the violation is reported as a note, not as an error.
    """

    error: DefinitionError
    accepted: bool = False


Rule: TypeAlias = Callable[[Definition], Iterator[Finding]]


def message_finding(
    definition: Definition, key: str, reason: str, *, accepted: bool = False
) -> Finding:
    """Returns a finding about a key of the message object, with its line."""
    line = definition.key_line(key)
    return Finding(DefinitionError(reason, file=definition.file, line=line), accepted)


def spec_finding(
    definition: Definition, located: LocatedSpec, key: str, reason: str, *, accepted: bool = False
) -> Finding:
    """Returns a finding about a key of a field or a common struct, with its line and path."""
    error = DefinitionError(
        reason, file=definition.file, line=located.key_line(key), field=located.path
    )
    return Finding(error, accepted)


def located_fields(definition: Definition) -> Iterator[tuple[LocatedSpec, FieldSpec]]:
    """Yields all fields, including the fields of common structs."""
    for located in definition.fields():
        assert isinstance(located.spec, FieldSpec)
        yield located, located.spec


def field_groups(definition: Definition) -> Iterator[list[tuple[LocatedSpec, FieldSpec]]]:
    """Yields a list of the message's own fields, and a list of the fields of each struct."""
    groups: dict[int, list[tuple[LocatedSpec, FieldSpec]]] = {}
    for located, field in located_fields(definition):
        groups.setdefault(id(located.holder), []).append((located, field))
    yield from groups.values()


def struct_definitions(definition: Definition) -> Iterator[tuple[str, LocatedSpec]]:
    """Yields the name of each struct, with the common struct or the field that defines it."""
    for located in definition.structs():
        yield located.spec.name, located
    for located, field in located_fields(definition):
        if field.fields and field.element_type not in PRIMITIVE_TYPES:
            yield field.element_type, located
