"""Fields that not every version of a message has, and which of them a message sets.

For whoever chooses a version. Above the last version of a field that is set, the field would fall
away in silence, as most such fields are ignorable (a topic's name, where later versions know ids
alone). Below the first version of one, it cannot be written; or it is ignorable and falls away,
which is meant, unless it is the id of what the message is about. Knows definitions and values, no
peer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from operator import attrgetter
from typing import Any, NamedTuple

from .explain import is_default
from .naming import attribute_name
from .specs import FieldSpec, MessageSpec
from .versions import Versions

__all__ = ["SetField", "Shape", "first_to_end", "last_to_begin", "shape_of"]


class SetField(NamedTuple):
    """A field that is set: where it stands in the message, and the versions that have it."""

    path: str
    versions: Versions


class _Bounded(NamedTuple):
    """A field that not every version has, and the fields of its struct that stand for it too."""

    attribute: str
    field: FieldSpec
    others: tuple[tuple[str, FieldSpec], ...]


class Shape(NamedTuple):
    """What of a struct matters: its fields that end or begin, and what holds structs with such."""

    ending: tuple[_Bounded, ...]
    beginning: tuple[_Bounded, ...]
    holding: tuple[tuple[str, Shape], ...]


def first_to_end(shape: Shape, value: object) -> SetField | None:
    """Of the fields that `value` sets, the one whose versions end first; None if none of them ends.

    A name is excused where the id that takes its place is set too: a field of the same struct whose
    versions begin where its own end (KIP-516).
    """
    return min(
        _set_fields(shape, value, "", attrgetter("ending")),
        key=lambda found: found.versions.highest,
        default=None,
    )


def last_to_begin(shape: Shape, value: object) -> SetField | None:
    """Of the fields that `value` sets, the one whose versions begin last; None if none is needed.

    Those that are ignorable do not count, as they may fall away, but for an id: it does, unless a
    name is set beside it that older versions have.
    """
    return max(
        _set_fields(shape, value, "", attrgetter("beginning")),
        key=lambda found: found.versions.lowest,
        default=None,
    )


def _set_fields(
    shape: Shape, value: Any, path: str, which: Callable[[Shape], tuple[_Bounded, ...]]
) -> Iterator[SetField]:
    """The fields that are set and count, of those that are `which` of each shape."""
    for attribute, field, others in which(shape):
        if is_default(field, getattr(value, attribute, None)):
            continue
        if not any(_is_set(spec, getattr(value, name, None)) for name, spec in others):
            yield SetField(f"{path}{attribute}", field.versions)
    for attribute, inner in shape.holding:
        held = getattr(value, attribute, None)
        if isinstance(held, list | tuple):
            for at, element in enumerate(held):
                yield from _set_fields(inner, element, f"{path}{attribute}[{at}].", which)
        elif held is not None:
            yield from _set_fields(inner, held, f"{path}{attribute}.", which)


def _is_set(field: FieldSpec, value: object) -> bool:
    return value is not None and not is_default(field, value)


def shape_of(message: MessageSpec) -> Shape:
    """That of a message, which whoever asks for it often is to keep."""
    structs = {struct.name: struct.fields for struct in message.structs()}
    versions = message.valid_versions

    def shape(fields: tuple[FieldSpec, ...], *, of_message: bool) -> Shape:
        named = [(attribute_name(field.name, of_message=of_message), field) for field in fields]
        ending = tuple(
            _Bounded(attribute, field, tuple(each for each in named if _follows(each[1], field)))
            for attribute, field in named
            if field.versions and field.versions.highest < versions.highest
        )
        beginning = []
        for attribute, field in named:
            if not field.versions or field.versions.lowest <= versions.lowest:
                continue
            names = tuple(each for each in named if _is_name(each[1], field))
            if not field.ignorable:
                beginning.append(_Bounded(attribute, field, ()))
            elif names:
                beginning.append(_Bounded(attribute, field, names))
        holding = tuple(
            (attribute, inner)
            for attribute, field in named
            if field.element_type in structs
            and any(inner := shape(structs[field.element_type], of_message=False))
        )
        return Shape(ending, tuple(beginning), holding)

    return shape(message.fields, of_message=True)


def _follows(field: FieldSpec, other: FieldSpec) -> bool:
    """True for the id that takes the place of a name."""
    begins = field.versions.lowest == other.versions.highest + 1
    return begins and (other.type, field.type) == ("string", "uuid")


def _is_name(field: FieldSpec, other: FieldSpec) -> bool:
    """True for the name that stood for an id before there was one."""
    before = bool(field.versions) and field.versions.lowest < other.versions.lowest
    return before and (field.type, other.type) == ("string", "uuid")
