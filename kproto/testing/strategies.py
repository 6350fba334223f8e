"""Hypothesis strategies for Kafka's messages, for a version or for several versions.

`invalid` draws messages that `encode` must refuse. The other strategies draw only messages that can
be encoded at the requested versions. So hypothesis discards no message, and shrinks a message to
its defaults. The caller's own strategies (`fields`) must also draw valid values. The strategies are
built from the definitions, so they include the fields of new releases.

Needs hypothesis, which the extra `testing` installs.
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
from ..schema.layout import FORMATS, LayoutField, StructLayout, WireType, layout
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

#: Maximum number of elements of a drawn array. Arrays of structs are nested up to four levels deep.
#: An array of fixed width may have EDGE_COUNTS elements instead.
MAX_ELEMENTS: Final = 3

#: Counts around which the varint of a compact array (count + 1) gets a second byte, and a byte is
#: full.
EDGE_COUNTS: Final = (126, 127, 128, 255, 256)

_COUNTS: Final = st.sampled_from(EDGE_COUNTS)

_NO_TAGS: Final[SearchStrategy[list[RawTaggedField]]] = st.just([])


def versions_of(message: type[Message]) -> SearchStrategy[int]:
    """Draws versions of a message; they shrink to the lowest version.

    Raises TypeError if `message` is not a generated message class, as do all functions of this
    module that have an argument `message`.
    """
    _check_message(message)
    return st.sampled_from(message.VALID_VERSIONS)


def messages(
    message: type[M], version: int | None = None, /, **fields: SearchStrategy[Any]
) -> SearchStrategy[M]:
    """Draws instances of `message` that can be encoded at `version` (None: at a drawn version).

    Each instance equals `decode(encode(version), version)`. In flexible versions structs may have
    unknown tagged fields. `fields` maps attribute names to strategies that replace the default
    strategies. If `version` is None, a strategy has no effect at a drawn version that lacks the
    field. Raises ConfigurationError for a version or a field that the message lacks.
    """
    _check_message(message)
    if version is None:
        return encodable(message, **fields).map(lambda drawn: drawn[0])
    return across_versions(message, [version], **fields)


def encodable(message: type[M], /, **fields: SearchStrategy[Any]) -> SearchStrategy[tuple[M, int]]:
    """Draws pairs of an instance of `message` and a version at which it can be encoded.

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
    """Draws instances that each version in `versions` can encode, and decodes to an equal instance.

    A field that one of the versions lacks stays at its default. Null is drawn only if all versions
    allow it, and unknown tagged fields only if all versions are flexible. `fields` maps attribute
    names to strategies; all versions must have the named fields. Raises the errors of `messages`,
    and ConfigurationError if a field has no value that is valid in all versions.
    """
    _check_message(message)
    checked = _checked_versions(message, versions)
    _check_fields(message, [checked], fields)
    return _drawn(message, checked, fields)


def structs(struct: type[S], version: int, /, **fields: SearchStrategy[Any]) -> SearchStrategy[S]:
    """Draws instances of a struct inside a message, for use in the `fields` of `messages`.

    `version` is a version of the message. Raises ConfigurationError for a version or a field that
    the struct lacks, and TypeError if `struct` is not a generated struct class.
    """
    if not isinstance(struct, type) or not issubclass(struct, Struct):
        raise TypeError(f"a class of a struct is wanted, not {_named(struct)}")
    message = _message_of(struct)
    versions = _checked_versions(message, [version])
    _check_fields(struct, [versions], fields)
    return _drawn(struct, versions, fields)


def message_classes() -> SearchStrategy[type[Message]]:
    """Draws message classes of `kproto.messages`."""
    return st.sampled_from(sorted(generated.MODULES)).map(_class_called)


def any_message() -> SearchStrategy[tuple[Message, int]]:
    """Draws pairs of a message of `kproto.messages` and a version at which it can be encoded."""
    return message_classes().flatmap(encodable)


def invalid(message: type[M], version: int | None = None, /) -> SearchStrategy[InvalidMessage[M]]:
    """Draws instances of `message` that `encode` must refuse, each with the path of the fault.

    Each is a valid instance with one change. Either a field gets a value of a wrong type, out of
    range or too long, or null although it is not nullable. Or a field that the version lacks gets a
    value other than its default. Or a struct gets an invalid unknown tagged field. Raises
    ConfigurationError for a version that the message lacks.
    """
    _check_message(message)
    if version is None:
        return encodable(message).flatmap(lambda drawn: break_one_field(*drawn))
    (checked,) = _checked_versions(message, [version])
    return messages(message, checked).flatmap(lambda drawn: break_one_field(drawn, checked))


def _repeated(element: Any, count: int) -> list[Any]:
    return [element] * count


def _class_called(name: str) -> type[Message]:
    found: type[Message] = getattr(generated, name)
    return found


def _check_message(message: Any) -> None:
    """Raises TypeError if `message` is not the class of a generated message."""
    known = isinstance(message, type) and issubclass(message, Message)
    if not known or not hasattr(message, "VALID_VERSIONS"):
        raise TypeError(
            f"a class of a message is wanted, such as MetadataRequest, not {_named(message)}"
        )


def _named(given: object) -> str:
    """Returns error text that names a class, or the type of another object."""
    if isinstance(given, type):
        return f"the class {given.__name__}"
    return f"an object of type {type(given).__name__}"


def _message_of(struct: type[Struct]) -> type[Message]:
    """Returns the only message class in the generated module of `struct`."""
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
    """Raises ConfigurationError for an unknown field, or a value in `fields` that is no strategy.

    Each of the `choices` is a list of versions. A field is known if, for at least one of these
    lists, all versions in the list have the field.
    """
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
                f"{field} needs a strategy, not {type(values).__name__}: put st.just() around it"
            )


def _drawn(
    struct: type[S], versions: tuple[int, ...], fields: Mapping[str, Values]
) -> SearchStrategy[S]:
    plan = _plan(_message_of(struct), versions)
    return plan.struct(_name_in_definition(struct), fields)


def _name_in_definition(struct: type[Struct]) -> str:
    """Returns the name of `struct` in its definition.

    A subclass of a message class has the name of the message class.
    """
    return struct._generated().__name__ if issubclass(struct, Message) else struct.__name__


def _plan(message: type[Message], versions: tuple[int, ...]) -> _StrategyBuilder:
    # Casts to Hashable, because mypy takes the class for unhashable, as its instances are.
    return _cached_plan(cast("Hashable", message), versions)


@lru_cache(maxsize=1024)
def _cached_plan(message: Any, versions: tuple[int, ...]) -> _StrategyBuilder:
    return _StrategyBuilder(message, versions)


class _StrategyBuilder:
    """Builds the strategies of a message and its structs, for values that are valid in `versions`.

    Several fields may have the same struct. The layout of a struct in a version is always the same,
    so each struct needs a single strategy.
    """

    def __init__(self, message: type[Message], versions: tuple[int, ...]) -> None:
        self._classes = {**message._classes(), message._generated().__name__: message}
        self._fields: dict[str, dict[str, Values]] = {}
        self._tags: dict[str, Values] = {}
        self._structs: dict[str, Values] = {}
        definition = message._definition()
        self._struct([layout(definition, version) for version in versions])

    def fields_of(self, name: str) -> Mapping[str, Values]:
        """Returns the strategies of the fields that all versions of a struct have.

        Raises ConfigurationError if a version lacks the struct.
        """
        if name not in self._fields:
            raise ConfigurationError(f"not all of these versions have the struct {name}")
        return self._fields[name]

    def struct(self, name: str, fields: Mapping[str, Values]) -> Values:
        """Draws instances of a struct. Strategies in `fields` for unknown fields are ignored."""
        usual = self.fields_of(name)
        own = {field: values for field, values in fields.items() if field in usual}
        return self._built(name, {**usual, **own}) if own else self._structs[name]

    def _struct(self, shapes: Sequence[StructLayout]) -> Values:
        """Draws instances of a struct; `shapes` has its layout in each version."""
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
        """Draws values of a field that are valid in all versions.

        `types` has the type of the field in each version. The types differ only in nullability and
        in the fields of structs.
        """
        kind = types[0]
        if kind.element is not None:
            elements = [cast("WireType", each.element) for each in types]
            element = self._values(elements, None)
            lists: Values = st.lists(element, max_size=MAX_ELEMENTS)
            if elements[0].kind in FORMATS:
                # Short arrays are three times as likely. A long one repeats a single element, so
                # that hypothesis draws little.
                lists = st.one_of(lists, lists, lists, st.builds(_repeated, element, _COUNTS))
            # The empty list is built without drawing, so that hypothesis regards it as no more
            # complex than null, and shrinks to it.
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
    """Yields, for each field that all `shapes` have, its layouts in the order of `shapes`.

    Raises ConfigurationError if one of `shapes` lacks a field whose default is null, and another of
    `shapes` does not allow null in this field.
    """
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
