"""Lists every message of the union with its class, and walks over an instance by its layout."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest
from kproto_codegen.emit.kafka_messages import DATA_PATH

from kproto import messages
from kproto.messages.base import Message
from kproto.schema.definitions import union
from kproto.schema.layout import LayoutField, StructLayout, layout
from kproto.schema.naming import class_name

__all__ = [
    "NAMES",
    "SOME_EVERYDAY",
    "SOME_QUICK",
    "Place",
    "class_of",
    "places",
    "shape_of",
    "structs",
]

#: The names of all messages.
NAMES = sorted(union())


def _is_deep(name: str) -> bool:
    """Returns whether the message has very deeply nested structs."""
    return name.startswith("StreamsGroup")


def _takes_long(index: int, name: str) -> bool:
    """Returns True for seven of eight messages, and for deep ones."""
    return index % 8 != 0 or _is_deep(name)


#: All names as parameters of a slow test; a quick run has every eighth of them.
SOME_QUICK = [
    pytest.param(name, marks=pytest.mark.slow if _takes_long(index, name) else ())
    for index, name in enumerate(NAMES)
]


def _is_everyday(index: int, name: str) -> bool:
    """Returns True for data path messages, and for every fourth of the other messages."""
    return name in DATA_PATH or (index % 4 == 0 and not _is_deep(name))


def _marks(index: int, name: str) -> list[pytest.MarkDecorator]:
    slow = [pytest.mark.slow] if _takes_long(index, name) else []
    return slow if _is_everyday(index, name) else [*slow, pytest.mark.exhaustive]


#: All names as parameters of a test of what the generator does alike for all: `make test`
#: has the data path and every fourth of the other messages, `make exhaustive` the rest.
SOME_EVERYDAY = [pytest.param(name, marks=_marks(index, name)) for index, name in enumerate(NAMES)]


def class_of(name: str) -> type[Message]:
    """Returns the generated class of a message."""
    found: type[Message] = getattr(messages, class_name(name))
    return found


def shape_of(name: str, version: int) -> StructLayout:
    """Returns the layout of a version of a message."""
    return layout(union()[name], version)


class Place(NamedTuple):
    """A field of a struct inside an instance.

    `owner` is the struct. `path` is the path as errors write it; `kind` is the path without the
    indexes of elements.
    """

    owner: Any
    field: LayoutField
    path: str
    kind: str

    @property
    def value(self) -> Any:
        return getattr(self.owner, self.field.attribute)


def places(shape: StructLayout, value: object, path: str = "", kind: str = "") -> Iterator[Place]:
    """Yields every field of an instance and of the structs inside it."""
    for struct, inner, at, generic in structs(shape, value, path, kind):
        for field in inner.all_fields():
            yield Place(struct, field, _join(at, field.attribute), _join(generic, field.attribute))


def structs(
    shape: StructLayout, value: object, path: str = "", kind: str = ""
) -> Iterator[tuple[object, StructLayout, str, str]]:
    """Yields the instance and each struct inside it, with its layout, path and kind."""
    yield value, shape, path, kind
    for field in shape.all_fields():
        held = getattr(value, field.attribute)
        inner = (field.type.element or field.type).struct
        if inner is None or held is None:
            continue
        at, generic = _join(path, field.attribute), _join(kind, field.attribute)
        if field.type.kind == "struct":
            yield from structs(inner, held, at, generic)
            continue
        for index, element in enumerate(held):
            yield from structs(inner, element, f"{at}[{index}]", f"{generic}[]")


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
