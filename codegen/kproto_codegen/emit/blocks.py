"""Defines the base class of the emitters of code that reads or writes a struct.

`StructCodeEmitter` calls a method for each field in wire order; `readers` and `writers` implement
the methods. Neighboring numbers are collected, so that a single `struct.Struct` reads or writes
them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from kproto.schema.layout import FORMATS, FieldForm, Presence

from .code import Code, Statement
from .imports import Imports
from .plan import FieldPlan, FieldRun, Form, StructPlan, TaggedFieldsForm, ValueKind

__all__ = ["StructCodeEmitter", "elements_function", "value_function"]

#: The last word in the names of functions that read or write many values, by kind.
_PLURALS: Final = {
    ValueKind.BOOL: "numbers",
    ValueKind.NUMBER: "numbers",
    ValueKind.UUID: "uuids",
    ValueKind.STRING: "strings",
}


class StructCodeEmitter(ABC):
    """Emits statements that read or write the struct in the variable `target`, in one layout."""

    def __init__(self, plan: StructPlan, target: str, imports: Imports) -> None:
        self.plan = plan
        self.target = target
        self.imports = imports
        self.code: list[Statement] = []
        #: The type and the source of each collected number.
        self.numbers: list[tuple[str, str]] = []

    def struct(self, run: FieldRun, forms: tuple[Form, ...]) -> Code:
        """Returns the code for the fields of `run`; `forms` has the encoding of each field."""
        for item, form in zip(run.items, forms, strict=True):
            if isinstance(form, TaggedFieldsForm):
                self.end(form)
                continue
            assert item is not None
            expr = f"{self.target}.{item.slot}"
            match form.presence:
                case Presence.PLAIN if item.packed:  # uses the slot, which has bytes or a list
                    self._take(item, form, expr)
                case Presence.PLAIN:  # uses the property if there is one
                    self._take(item, form, f"{self.target}.{item.attribute}")
                case Presence.TAGGED:
                    self.tagged(item, expr)
                case Presence.ABSENT:
                    self.absent(item, expr)
        self.flush()
        return self.code

    def value(self, field: FieldPlan, form: FieldForm) -> Code:
        """Returns the code for the value of a tagged field."""
        self._take(field, form, f"{self.target}.{field.slot}")
        self.flush()
        return self.code

    def _take(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        match field.kind:
            case ValueKind.BOOL | ValueKind.NUMBER:
                self.number(field, expr)
            case ValueKind.UUID:
                self.uuid(field, expr)
            case ValueKind.STRING:
                self.string(field, form, expr)
            case ValueKind.OCTETS:
                self.octets(field, form, expr)
            case ValueKind.STRUCT:
                self.flush()
                self.nested(field, form, expr)
            case ValueKind.ARRAY:
                self.array(field, form, expr)

    @abstractmethod
    def flush(self) -> None:
        """Emits the code that reads or writes the collected numbers with a single Struct."""

    @abstractmethod
    def number(self, field: FieldPlan, expr: str) -> None:
        """Emits the code for a number or bool, or collects the field for the next `flush`."""

    @abstractmethod
    def uuid(self, field: FieldPlan, expr: str) -> None:
        """Emits the code for a uuid, or collects the field for the next `flush`."""

    @abstractmethod
    def string(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits the code for a string."""

    @abstractmethod
    def octets(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits the code for bytes or records."""

    @abstractmethod
    def nested(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits the code for a struct that is not in an array. Call `flush` first."""

    @abstractmethod
    def array(self, field: FieldPlan, form: FieldForm, expr: str) -> None:
        """Emits the code for an array."""

    @abstractmethod
    def absent(self, field: FieldPlan, expr: str) -> None:
        """Emits code for a field that the layout lacks."""

    @abstractmethod
    def tagged(self, field: FieldPlan, expr: str) -> None:
        """Emits the code that a tagged field needs among the untagged fields.

        In a reader, the code sets the default of the field. `end` emits the code that reads or
        writes the tagged fields.
        """

    @abstractmethod
    def end(self, form: TaggedFieldsForm) -> None:
        """Emits code for the end of the struct: its tagged fields, if the layout is flexible."""


def value_function(verb: str, kind: str, form: FieldForm) -> str:
    """Returns the name of a function for a value, such as `read_compact_nullable_string`."""
    compact = "compact_" if form.compact else ""
    nullable = "nullable_" if form.nullable else ""
    return f"{verb}_{compact}{nullable}{kind}"


def elements_function(verb: str, field: FieldPlan, form: FieldForm) -> tuple[str, str] | None:
    """Returns the name of an array's function, such as `read_compact_strings`, and an argument.

    The argument is source such as `, "i"`, which follows the other arguments of a call; "" if the
    function has no such argument. Returns None for structs, and for bytes: no function reads or
    writes an array of bytes, because Kafka has no such field.
    """
    plural = _PLURALS.get(field.element_kind)
    if plural is None:
        return None
    compact = "compact_" if form.compact and field.element_kind is ValueKind.STRING else ""
    extra = f', "{FORMATS[field.spec.element_type]}"' if plural == "numbers" else ""
    return f"{verb}_{compact}{plural}", extra
