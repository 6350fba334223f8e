"""Lists every message of the union with its class, and walks over an instance by its layout."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import pytest
from kproto_codegen.emit.kafka_messages import DATA_PATH

from kproto import messages
from kproto.messages.base import Message
from kproto.schema.definitions import union
from kproto.schema.layout import LayoutField, StructLayout, layout
from kproto.schema.naming import class_name

__all__ = [
    "FEW_EVERYDAY",
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
    """Returns True for seven of eight messages, and for messages with deeply nested structs."""
    return index % 8 != 0 or _is_deep(name)


def _is_everyday(index: int, name: str) -> bool:
    """Returns True for data path messages, and for every tenth message without deep structs."""
    return name in DATA_PATH or (index % 10 == 0 and not _is_deep(name))


def _parameters(
    is_everyday: Callable[[int, str], bool], is_slow: Callable[[int, str], bool] = _takes_long
) -> list[Any]:
    """Returns all message names as parameters of a test, with marks.

    `make quick` omits the names for which `is_slow` returns True. `make test` omits the names for
    which `is_everyday` returns False. Both functions get the index and the name of a message.
    """
    found = []
    for index, name in enumerate(NAMES):
        marks = [pytest.mark.slow] if is_slow(index, name) else []
        if not is_everyday(index, name):
            marks.append(pytest.mark.exhaustive)
        found.append(pytest.param(name, marks=marks))
    return found


#: All names as parameters of a test of each message: `make quick` has every eighth of them,
#: `make test` also the data path and every third of the others.
SOME_QUICK = _parameters(
    lambda index, name: name in DATA_PATH or index % 3 == 0 or index % 8 == 0,
)

#: All names as parameters of a test of generated code that is alike for all messages. `make test`
#: runs the data path and every tenth of the other messages; `make exhaustive` runs the rest.
SOME_EVERYDAY = _parameters(_is_everyday)

#: All names as parameters of a test that takes long: `make test` has two messages of the data path
#: and every thirtieth of the others.
FEW_EVERYDAY = _parameters(
    lambda index, name: (
        name in ("FetchResponse", "ProduceRequest") or (index % 30 == 0 and not _is_deep(name))
    ),
    is_slow=lambda index, name: True,
)


def class_of(name: str) -> type[Message]:
    """Returns the generated class of a message."""
    found: type[Message] = getattr(messages, class_name(name))
    return found


def shape_of(name: str, version: int) -> StructLayout:
    """Returns the layout of a version of a message."""
    return layout(union()[name], version)


class Place(NamedTuple):
    """A field of a struct inside a message instance.

    `owner` is the struct. `path` is the field's path as error messages write it. `kind` is the same
    path without the indexes of array elements.
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
