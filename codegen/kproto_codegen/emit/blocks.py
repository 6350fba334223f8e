"""Emits the statements of one layout of a struct; readers and writers share this order.

Emits each item in its place, and collects neighbouring numbers until one Struct takes them all.
`readers` and `writers` emit the statements of each item.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from kproto.schema.layout import FORMATS, FieldForm, Presence

from .code import Code, Statement
from .imports import Imports
from .plan import FieldPlan, Form, Kind, Run, StructEnd, StructPlan

__all__ = ["Block", "elements_function", "value_function"]

#: The plural of each kind in the names of functions for many values.
_PLURALS: Final = {
    Kind.BOOL: "numbers",
    Kind.NUMBER: "numbers",
    Kind.UUID: "uuids",
    Kind.STRING: "strings",
}


class Block(ABC):
    """Emits the statements that read or write one struct, `target`, in one layout."""

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
            if isinstance(form, StructEnd):
                self.end(form)
                continue
            assert item is not None
            expr = f"{self.target}.{item.slot}"
            match form.presence:
                case Presence.PLAIN if item.packed:  # whether bytes or a list
                    self._take(item, form, expr)
                case Presence.PLAIN:  # through the property, if there is one: to write it
                    self._take(item, form, f"{self.target}.{item.attribute}")
                case Presence.TAGGED:
                    self.tagged(item, expr)
                case Presence.ABSENT:
                    self.absent(item, expr)
        self.flush()
        return self.code

    def value(self, field: FieldPlan, form: FieldForm) -> Code:
        """Returns the code of one value by itself, in a tag."""
        self._take(field, form, f"{self.target}.{field.slot}")
        self.flush()
        return self.code

    def _take(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        match field.kind:
            case Kind.BOOL | Kind.NUMBER:
                self.number(field, expr)
            case Kind.UUID:
                self.uuid(field, expr)
            case Kind.STRING:
                self.string(field, form, expr)
            case Kind.OCTETS:
                self.octets(field, form, expr)
            case Kind.STRUCT:
                self.flush()
                self.nested(field, form, expr)
            case Kind.ARRAY:
                self.array(field, form, expr)

    @abstractmethod
    def flush(self) -> None:
        """Emits one Struct for the collected numbers."""

    @abstractmethod
    def number(self, field: FieldPlan, expr: str) -> None:
        """Emits a number or a bool."""

    @abstractmethod
    def uuid(self, field: FieldPlan, expr: str) -> None:
        """Emits a uuid."""

    @abstractmethod
    def string(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits a string."""

    @abstractmethod
    def octets(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits bytes or records."""

    @abstractmethod
    def nested(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits a struct by itself; no number is collected."""

    @abstractmethod
    def array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits an array."""

    @abstractmethod
    def absent(self, field: FieldPlan, expr: str) -> None:
        """Emits a field that the layout does not have."""

    @abstractmethod
    def tagged(self, field: FieldPlan, expr: str) -> None:
        """Emits the place of a tagged field."""

    @abstractmethod
    def end(self, form: StructEnd) -> None:
        """Emits the end of the struct, behind its fields."""


def value_function(verb: str, kind: str, form: FieldForm) -> str:
    """Returns a name such as `read_compact_nullable_string`."""
    compact = "compact_" if form.compact else ""
    nullable = "nullable_" if form.nullable else ""
    return f"{verb}_{compact}{nullable}{kind}"


def elements_function(verb: str, field: FieldPlan, form: FieldForm) -> tuple[str, str] | None:
    """Returns a name such as `read_compact_strings`, with the source of a further argument.

    Returns None if each element needs its own call: for bytes, of which Kafka has no array.
    """
    plural = _PLURALS.get(field.element_kind)
    if plural is None:
        return None
    compact = "compact_" if form.compact and field.element_kind is Kind.STRING else ""
    extra = f', "{FORMATS[field.spec.element_type]}"' if plural == "numbers" else ""
    return f"{verb}_{compact}{plural}", extra
