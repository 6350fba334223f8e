"""The walk over one layout of a struct, which reading and writing have in common.

Owns the order of things: each item in its place, neighbouring numbers held back until one Struct
takes them all. What is said of each is for `readers` and `writers`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from kproto.schema.layout import FORMATS, FieldForm, Presence

from .code import Code, Statement
from .imports import Imports
from .plan import FieldPlan, Form, Kind, Run, StructPlan, TagsForm

__all__ = ["Block", "elements_function", "value_function"]

#: What the functions for many values call them, by the kind of each.
_PLURALS: Final = {
    Kind.BOOL: "numbers",
    Kind.NUMBER: "numbers",
    Kind.UUID: "uuids",
    Kind.STRING: "strings",
}


class Block(ABC):
    """The statements of one struct, `target`, in one layout."""

    def __init__(self, plan: StructPlan, target: str, imports: Imports) -> None:
        self.plan = plan
        self.target = target
        self.imports = imports
        self.code: list[Statement] = []
        #: The type and the source of each number that waits for the next Struct.
        self.numbers: list[tuple[str, str]] = []

    def struct(self, run: Run, forms: tuple[Form, ...]) -> Code:
        """Returns the code of a whole run."""
        for item, form in zip(run.items, forms, strict=True):
            if isinstance(form, TagsForm):
                self.end(form)
                continue
            assert item is not None
            place = f"{self.target}.{item.slot}"
            match form.presence:
                case Presence.PLAIN if item.packed:  # whether bytes or a list
                    self._take(item, form, place)
                case Presence.PLAIN:  # through the property, if there is one: to write it
                    self._take(item, form, f"{self.target}.{item.attribute}")
                case Presence.TAGGED:
                    self.tagged(item, place)
                case Presence.ABSENT:
                    self.absent(item, place)
        self.flush()
        return self.code

    def value(self, field: FieldPlan, form: FieldForm) -> Code:
        """Returns the code of one value that stands by itself, in a tag."""
        self._take(field, form, f"{self.target}.{field.slot}")
        self.flush()
        return self.code

    def _take(self, field: FieldPlan, form: FieldForm, place: str) -> None:
        match field.kind:
            case Kind.BOOL | Kind.NUMBER:
                self.number(field, place)
            case Kind.UUID:
                self.uuid(field, place)
            case Kind.STRING:
                self.string(field, form, place)
            case Kind.OCTETS:
                self.octets(field, form, place)
            case Kind.STRUCT:
                self.flush()
                self.nested(field, form, place)
            case Kind.ARRAY:
                self.array(field, form, place)

    @abstractmethod
    def flush(self) -> None:
        """Let one Struct take the numbers that wait."""

    @abstractmethod
    def number(self, field: FieldPlan, place: str) -> None:
        """A number or a bool."""

    @abstractmethod
    def uuid(self, field: FieldPlan, place: str) -> None:
        """A uuid."""

    @abstractmethod
    def string(self, field: FieldPlan, form: FieldForm, place: str) -> None:
        """A string."""

    @abstractmethod
    def octets(self, field: FieldPlan, form: FieldForm, place: str) -> None:
        """Bytes or records."""

    @abstractmethod
    def nested(self, field: FieldPlan, form: FieldForm, place: str) -> None:
        """A struct that stands by itself; no number waits."""

    @abstractmethod
    def array(self, field: FieldPlan, form: FieldForm, place: str) -> None:
        """An array."""

    @abstractmethod
    def absent(self, field: FieldPlan, place: str) -> None:
        """A field that the layout does not have."""

    @abstractmethod
    def tagged(self, field: FieldPlan, place: str) -> None:
        """A field that stands in a tag."""

    @abstractmethod
    def end(self, form: TagsForm) -> None:
        """What stands behind the fields."""


def value_function(verb: str, kind: str, form: FieldForm) -> str:
    """`read_compact_nullable_string` and its like."""
    compact = "compact_" if form.compact else ""
    nullable = "nullable_" if form.nullable else ""
    return f"{verb}_{compact}{nullable}{kind}"


def elements_function(verb: str, field: FieldPlan, form: FieldForm) -> tuple[str, str] | None:
    """`read_compact_strings` and its like, with the source of a further argument.

    None where each element takes a call of its own: of bytes, of which Kafka has no array.
    """
    plural = _PLURALS.get(field.element_kind)
    if plural is None:
        return None
    compact = "compact_" if form.compact and field.element_kind is Kind.STRING else ""
    extra = f', "{FORMATS[field.spec.element_type]}"' if plural == "numbers" else ""
    return f"{verb}_{compact}{plural}", extra
