"""Hypothesis strategies for every message, at any of its versions or across several.

Built from the layouts of the definitions, so that a new field of a release is drawn at once. Every
drawn value can be written at the requested versions, and none is drawn and discarded. Values
shrink to the message's defaults. `invalid` draws messages that `encode` must refuse.

Needs hypothesis, which the extra `testing` installs. Knows no single message, and no socket.
"""

from __future__ import annotations

import sys
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, TypeVar, cast

try:
    import hypothesis.strategies as st
    from hypothesis.strategies import SearchStrategy
except ImportError as error:
    raise ImportError(
        "kproto.testing.strategies needs hypothesis, which comes with the extra kproto[testing], "
        "from a checkout: pip install '.[testing]'",
        name="hypothesis",
    ) from error

from .. import messages as generated
from ..messages.base import Message, Struct
from ..schema.layout import LayoutField, StructLayout, WireType, layout
from ..schema.specs import DefaultValue
from ..wire.errors import ConfigurationError
from ..wire.tags import RawTaggedField
from ._invalid import InvalidMessage, break_one_field
from ._values import Values, primitive, record_batches, unknown_tags

__all__ = [
    "InvalidMessage",
    "across_versions",
    "any_message",
    "encodable",
    "invalid",
    "message_classes",
    "messages",
    "record_batches",
    "structs",
    "versions_of",
]

M = TypeVar("M", bound=Message)
S = TypeVar("S", bound=Struct)

#: The most elements drawn for an array; structs hold arrays of structs up to four levels deep.
MAX_ELEMENTS: Final = 3

_NO_TAGS: Final[SearchStrategy[list[RawTaggedField]]] = st.just([])


def versions_of(message: type[Message]) -> SearchStrategy[int]:
    """Draws versions of a message; shrinks to the lowest.

    Like all functions here that take a class, it raises TypeError for anything else.
    """
    _check_message(message)
    return st.sampled_from(message.VALID_VERSIONS)


def messages(
    message: type[M], version: int | None = None, /, **fields: SearchStrategy[Any]
) -> SearchStrategy[M]:
    """Draws instances of `message` that can be written at `version` (None: at some version).

    Each equals `decode(encode(version), version)`. In flexible versions structs have unknown tagged
    fields. `fields` replaces the strategy of a field in the versions that have it; other versions
    keep its default. Raises ConfigurationError for a version or a field that the message does not
    have.
    """
    _check_message(message)
    if version is None:
        return encodable(message, **fields).map(lambda drawn: drawn[0])
    return across_versions(message, [version], **fields)


def encodable(message: type[M], **fields: SearchStrategy[Any]) -> SearchStrategy[tuple[M, int]]:
    """Draws pairs of an instance of `message` and a version at which it can be written.

    `fields` is as in `messages`.
    """
    _check_message(message)
    _check_fields(message, [[version] for version in message.VALID_VERSIONS], fields)

    def at(version: int) -> SearchStrategy[tuple[M, int]]:
        return st.tuples(_drawn(message, (version,), fields), st.just(version))

    return versions_of(message).flatmap(at)


def across_versions(
    message: type[M], versions: Iterable[int], /, **fields: SearchStrategy[Any]
) -> SearchStrategy[M]:
    """Draws instances that can be written at each of `versions`, and equal what each decodes.

    A field that one of the versions lacks stays at its default; null is drawn if all versions allow
    it, and unknown tagged fields if all are flexible. `fields` replaces the strategies of fields
    that all versions have. Raises ConfigurationError as `messages` does, and if no value of a field
    suits all versions.
    """
    _check_message(message)
    checked = _checked_versions(message, versions)
    _check_fields(message, [checked], fields)
    return _drawn(message, checked, fields)


def structs(struct: type[S], version: int, /, **fields: SearchStrategy[Any]) -> SearchStrategy[S]:
    """Draws instances of a struct, for the `fields` of a strategy of its message.

    `version` is the message's. Raises ConfigurationError for a version or a field that the struct
    does not have.
    """
    if not isinstance(struct, type) or not issubclass(struct, Struct):
        raise TypeError(f"a class of a struct is wanted, not {_named(struct)}")
    message = _message_of(struct)
    versions = _checked_versions(message, [version])
    _check_fields(struct, [versions], fields)
    return _drawn(struct, versions, fields)


def message_classes() -> SearchStrategy[type[Message]]:
    """Draws the classes of `kproto.messages`."""
    return st.sampled_from(sorted(generated.MODULES)).map(_class_called)


def any_message() -> SearchStrategy[tuple[Message, int]]:
    """Draws pairs of an instance of any message and a version at which it can be written."""
    return message_classes().flatmap(encodable)


def invalid(message: type[M], version: int | None = None, /) -> SearchStrategy[InvalidMessage[M]]:
    """Draws instances of `message` that `encode` must refuse, each with the field at fault.

    One field of a valid instance gets an invalid value: a wrong type, out of range, too long, null
    where it is not allowed, not at its default in a field of other versions, or an impossible
    unknown tagged field. Raises ConfigurationError for a version that the message does not have.
    """
    _check_message(message)
    if version is None:
        return encodable(message).flatmap(lambda drawn: break_one_field(*drawn))
    (checked,) = _checked_versions(message, [version])
    return messages(message, checked).flatmap(lambda drawn: break_one_field(drawn, checked))


def _class_called(name: str) -> type[Message]:
    found: type[Message] = getattr(generated, name)
    return found


def _check_message(message: Any) -> None:
    """Checks that `message` is the class of a generated message; Message itself has no versions."""
    known = isinstance(message, type) and issubclass(message, Message)
    if not known or not hasattr(message, "VALID_VERSIONS"):
        raise TypeError(
            f"a class of a message is wanted, such as MetadataRequest, not {_named(message)}"
        )


def _named(given: object) -> str:
    """Names a class for an error message; any other object by its type."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return f"an object of type {type(given).__name__}"


def _message_of(struct: type[Struct]) -> type[Message]:
    """Returns the message of a struct's class: each generated module has one message."""
    module = struct.__module__
    for candidate in (struct, *vars(sys.modules[module]).values()):
        if (
            isinstance(candidate, type)
            and candidate.__module__ == module
            and hasattr(candidate, "VALID_VERSIONS")
        ):
            return cast("type[Message]", candidate)
    raise ConfigurationError(f"{struct.__name__} is no struct of a message")


def _checked_versions(message: type[Message], versions: Iterable[int]) -> tuple[int, ...]:
    checked = tuple(sorted(set(versions)))
    known = message.VALID_VERSIONS
    if not checked:
        raise ConfigurationError(f"name at least one version of {message.__name__}")
    for version in checked:
        if version not in known:
            raise ConfigurationError(
                f"{message.__name__} has versions {known.start} to {known.stop - 1}, not {version}"
            )
    return checked


def _check_fields(
    struct: type[Struct], choices: Iterable[Sequence[int]], fields: Mapping[str, object]
) -> None:
    """Checks that `fields` are strategies, and that some set of versions has each."""
    if not fields:
        return
    message, name = _message_of(struct), _name_in_definition(struct)
    known = {
        field for versions in choices for field in _plan(message, tuple(versions)).fields_of(name)
    }
    for field, values in fields.items():
        if field not in known:
            raise ConfigurationError(
                f"{struct.__name__} has no field {field!r} in these versions; "
                f"it has {', '.join(sorted(known)) or 'none'}"
            )
        if not isinstance(values, SearchStrategy):
            raise ConfigurationError(
                f"{field} wants a strategy, not {type(values).__name__}: put st.just() around it"
            )


def _drawn(
    struct: type[S], versions: tuple[int, ...], fields: Mapping[str, Values]
) -> SearchStrategy[S]:
    plan = _plan(_message_of(struct), versions)
    return plan.struct(_name_in_definition(struct), fields)


def _name_in_definition(struct: type[Struct]) -> str:
    """Returns the name of the generated class, also for a subclass of it."""
    return struct._generated().__name__ if issubclass(struct, Message) else struct.__name__


def _plan(message: type[Message], versions: tuple[int, ...]) -> _Plan:
    # mypy believes that a class is as unhashable as its instances.
    return _cached_plan(cast("Hashable", message), versions)


@lru_cache(maxsize=1024)
def _cached_plan(message: Any, versions: tuple[int, ...]) -> _Plan:
    return _Plan(message, versions)


class _Plan:
    """Builds the strategies of a message and its structs, for values that suit several versions.

    A struct has the same layout everywhere in one version, so that it needs one strategy only.
    """

    def __init__(self, message: type[Message], versions: tuple[int, ...]) -> None:
        self._classes = {**message._classes(), message._generated().__name__: message}
        self._fields: dict[str, dict[str, Values]] = {}
        self._tags: dict[str, Values] = {}
        self._structs: dict[str, Values] = {}
        definition = message._definition()
        self._struct([layout(definition, version) for version in versions])

    def fields_of(self, name: str) -> Mapping[str, Values]:
        """Returns the strategies of the fields of a struct that all versions have."""
        if name not in self._fields:
            raise ConfigurationError(f"not all of these versions have the struct {name}")
        return self._fields[name]

    def struct(self, name: str, fields: Mapping[str, Values]) -> Values:
        """Draws instances of a struct; `fields` replaces strategies of fields that exist."""
        usual = self.fields_of(name)
        own = {field: values for field, values in fields.items() if field in usual}
        return self._built(name, {**usual, **own}) if own else self._structs[name]

    def _struct(self, shapes: Sequence[StructLayout]) -> Values:
        """Draws instances of the struct with these layouts, one layout per version."""
        name = shapes[0].class_name
        if name not in self._structs:
            self._fields[name] = {
                forms[0].attribute: self._values([form.type for form in forms], forms[0].default)
                for forms in _common_fields(shapes)
            }
            if all(shape.flexible for shape in shapes):
                known = {field.tag or 0 for shape in shapes for field in shape.tagged}
                known.update(*[shape.tags_of_other_versions() for shape in shapes])
                self._tags[name] = unknown_tags(max(known, default=-1) + 1)
            self._structs[name] = self._built(name, self._fields[name])
        return self._structs[name]

    def _values(self, types: Sequence[WireType], default: DefaultValue) -> Values:
        """Draws values that suit all of `types`, which differ in nulls and in their structs."""
        kind = types[0]
        if kind.element is not None:
            elements = [cast("WireType", each.element) for each in types]
            lists = st.lists(self._values(elements, None), max_size=MAX_ELEMENTS)
            # An empty list is built, not drawn, so it is as simple as null and the target of
            # shrinking.
            values: Values = st.one_of(st.builds(list), lists)
        elif kind.struct is not None:
            values = self._struct([cast("StructLayout", each.struct) for each in types])
        else:
            values = primitive(kind.kind, default)
        if not all(each.nullable for each in types):
            return values
        return st.one_of(st.none(), values) if default is None else st.one_of(values, st.none())

    def _built(self, name: str, fields: dict[str, Values]) -> Values:
        made = self._classes[name]

        def build(drawn: tuple[dict[str, Any], list[RawTaggedField]]) -> Struct:
            struct: Struct = made(**drawn[0])
            if drawn[1]:
                struct.unknown_tagged_fields = drawn[1]
            return struct

        return st.tuples(st.fixed_dictionaries(fields), self._tags.get(name, _NO_TAGS)).map(build)


def _common_fields(shapes: Sequence[StructLayout]) -> Iterator[list[LayoutField]]:
    """Yields the layouts of each field that all of `shapes` have."""
    fields_by_name = [{field.name: field for field in shape.all_fields()} for shape in shapes]
    for name, field in fields_by_name[0].items():
        forms = [fields[name] for fields in fields_by_name if name in fields]
        if len(forms) == len(shapes):
            yield forms
        elif field.default is None and not all(form.type.nullable for form in forms):
            raise ConfigurationError(
                f"{shapes[0].name}.{name} has no value that suits all the versions: one lacks the "
                "field and another does not allow its default, null"
            )
