"""Fields that later versions of a message no longer have, and whether a message sets one.

For whoever chooses a version: above the last version of a field that is set, the field would fall
away in silence, as most such fields are ignorable (a topic's name, where later versions know ids
alone). Knows definitions and values, no peer.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import Any, NamedTuple

from .explain import is_default
from .naming import attribute_name
from .specs import FieldSpec, MessageSpec
from .versions import Versions

__all__ = ["EndingField", "first_to_end"]


class EndingField(NamedTuple):
    """A field that is set: where it stands in the message, and the versions that have it."""

    path: str
    versions: Versions


class _Shape(NamedTuple):
    """What of a struct matters: its fields that end, and those that hold structs with such."""

    ending: tuple[tuple[str, FieldSpec, tuple[tuple[str, FieldSpec], ...]], ...]
    holding: tuple[tuple[str, _Shape], ...]


def first_to_end(message: MessageSpec, value: object) -> EndingField | None:
    """Of the fields that `value` sets, the one whose versions end first; None if none of them ends.

    A name is excused where the id that takes its place is set too: a field of the same struct whose
    versions begin where its own end (KIP-516).
    """
    return min(
        _ending(_shape_of(message), value, ""),
        key=lambda found: found.versions.highest,
        default=None,
    )


def _ending(shape: _Shape, value: Any, path: str) -> Iterator[EndingField]:
    for attribute, field, successors in shape.ending:
        if is_default(field, getattr(value, attribute, None)):
            continue
        if not any(_is_set(spec, getattr(value, name, None)) for name, spec in successors):
            yield EndingField(f"{path}{attribute}", field.versions)
    for attribute, inner in shape.holding:
        held = getattr(value, attribute, None)
        if isinstance(held, list | tuple):
            for at, element in enumerate(held):
                yield from _ending(inner, element, f"{path}{attribute}[{at}].")
        elif held is not None:
            yield from _ending(inner, held, f"{path}{attribute}.")


def _is_set(field: FieldSpec, value: object) -> bool:
    return value is not None and not is_default(field, value)


@lru_cache(maxsize=256)
def _shape_of(message: MessageSpec) -> _Shape:
    structs = {struct.name: struct.fields for struct in message.structs()}
    highest = message.valid_versions.highest

    def shape(fields: tuple[FieldSpec, ...], *, of_message: bool) -> _Shape:
        named = [(attribute_name(field.name, of_message=of_message), field) for field in fields]
        ending = tuple(
            (attribute, field, tuple(each for each in named if _follows(each[1], field)))
            for attribute, field in named
            if field.versions and field.versions.highest < highest
        )
        holding = tuple(
            (attribute, inner)
            for attribute, field in named
            if field.element_type in structs
            and any(inner := shape(structs[field.element_type], of_message=False))
        )
        return _Shape(ending, holding)

    return shape(message.fields, of_message=True)


def _follows(field: FieldSpec, other: FieldSpec) -> bool:
    """True for the id that takes the place of a name."""
    begins = field.versions.lowest == other.versions.highest + 1
    return begins and (other.type, field.type) == ("string", "uuid")
