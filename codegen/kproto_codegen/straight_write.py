"""Emits straight-line writing for the messages on the data path, one block for each layout.

What makes it fast: neighbouring numbers are written by one Struct, together with the length or
the count that follows them; arrays of numbers by one, together with their count; and short
strings in place.
"""

from __future__ import annotations

from typing import Final

from kproto.schema.layout import FORMATS, FieldForm, Presence

from .imports import Imports
from .plan import FieldPlan, Form, Run, StructPlan, TagsForm
from .source import indent
from .write_values import (
    array_elements,
    nested_value,
    packed,
    refuse_null,
    unknown_tags,
    writing_function,
)

__all__ = ["straight_write_block"]

_NULL_STRING: Final = r"\xff\xff"
_NULL_INT32: Final = r"\xff\xff\xff\xff"


def straight_write_block(
    plan: StructPlan, run: Run, forms: tuple[Form, ...], target: str, imports: Imports
) -> list[str]:
    """The lines that write one struct, `target`, in one layout."""
    block = _Block(plan, target, imports)
    for item, form in zip(run.items, forms, strict=True):
        if isinstance(form, TagsForm):
            block.flush()
            block.lines += unknown_tags(plan, form, target, imports)
        else:
            assert item is not None
            block.field(item, form)
    block.flush()
    return block.lines


class _Block:
    """Lines, and the numbers that the next Struct is to write."""

    def __init__(self, plan: StructPlan, target: str, imports: Imports) -> None:
        self.plan = plan
        self.target = target
        self.imports = imports
        self.lines: list[str] = []
        self._numbers: list[tuple[str, str]] = []

    def flush(self) -> None:
        """Write the numbers that wait."""
        if [kind for kind, _ in self._numbers] == ["uuid"]:  # as it is, needing no Struct
            self.lines.append(f"append({self._numbers.pop()[1]})")
        if self._numbers:
            name, _ = self.imports.shape([kind for kind, _ in self._numbers])
            values = ", ".join(value for _, value in self._numbers)
            self.lines.append(f"append({name}.pack({values}))")
            self._numbers = []

    def field(self, field: FieldPlan, form: FieldForm) -> None:
        spec, place = field.spec, f"{self.target}.{field.slot}"
        if form.presence is Presence.TAGGED:
            return
        if form.presence is Presence.ABSENT:
            if not spec.ignorable:
                self.imports.default_test(field)
                self.imports.wire("faults", "WireFault")
                self.lines += [f"if {field.is_not_default(place)}:", "    raise WireFault"]
            return
        if spec.type not in FORMATS and not spec.is_struct:
            self.lines += refuse_null(field, form, place, self.imports)
        if spec.is_array:
            self._array(field, form, place)
        elif spec.is_struct:
            self.flush()
            self.lines += nested_value(field, form, place, self.imports)
        elif spec.type in FORMATS:
            self._numbers.append((spec.type, packed(spec.type, place, self.imports)))
        elif spec.type == "string":
            self._string(form, place)
        else:
            self._octets(form, place)

    def _call(self, function: str, place: str) -> str:
        self.imports.wire("writing", function)
        return f"{function}(append, {place})"

    def _either(self, form: FieldForm, place: str, null: str, lines: list[str]) -> None:
        """The lines, or null if the layout allows it."""
        self.flush()
        if form.nullable:
            empty = r"\0" if form.compact else null
            lines = [f"if {place} is None:", f'    append(b"{empty}")', "else:", *indent(lines)]
        self.lines += lines

    def _string(self, form: FieldForm, place: str) -> None:
        if form.compact:
            self.imports.wire("writing", "UVARINT")
            self.imports.wire("writing", "compact_string_length")
            lines = [
                f"text = {place}.encode()",
                "size = len(text)",
                "append(UVARINT[size + 1] if size < 127 else compact_string_length(size))",
                "append(text)",
            ]
            self._either(form, place, _NULL_STRING, lines)
        elif form.nullable:
            self._either(form, place, _NULL_STRING, [self._call("write_string", place)])
        else:
            self.lines.append(f"text = {place}.encode()")
            self._numbers.append(("int16", "len(text)"))
            self.flush()
            self.lines.append("append(text)")

    def _octets(self, form: FieldForm, place: str) -> None:
        """Bytes; the functions also take what is no bytes but has a buffer."""
        function = "write_compact_bytes" if form.compact else "write_bytes"
        self._either(form, place, _NULL_INT32, [self._call(function, place)])

    def _array(self, field: FieldPlan, form: FieldForm, place: str) -> None:
        element = field.spec.element_type
        if element in FORMATS and element not in ("bool", "uuid"):
            self._numbers_array(field, form, place)
            return
        elements = array_elements(field, form, place, self.imports)
        if form.compact:
            self.imports.wire("writing", "UVARINT")
            self.imports.wire("writing", "uvarint")
            lines = [
                f"count = len({place})",
                "append(UVARINT[count + 1] if count < 127 else uvarint(count + 1))",
                *elements,
            ]
            self._either(form, place, _NULL_INT32, lines)
            return
        count = f"len({place})"
        if form.nullable:
            count = f"-1 if {place} is None else {count}"
            elements = [f"if {place} is not None:", *indent(elements)]
        self._numbers.append(("int32", count))
        self.flush()
        self.lines += elements

    def _numbers_array(self, field: FieldPlan, form: FieldForm, place: str) -> None:
        element = field.spec.element_type
        shapes = self.imports.counted_shapes("uint8" if form.compact else "int32", element)
        length = writing_function("array_length", form._replace(nullable=False))
        slow = array_elements(field, form, "values", self.imports)
        empty, count = (r"\x01", "count + 1") if form.compact else (r"\0\0\0\0", "count")
        lines = [
            "count = len(values)",
            "if type(values) is not list or count > 126:",
            f"    {self._call(length, 'count')}",
            *indent(slow),
            "elif count:",
            f"    append({shapes}[count].pack({count}, *values))",
            "else:",
            f'    append(b"{empty}")',
        ]
        self.flush()
        self.lines.append(f"values = {place}")
        self._either(form, "values", _NULL_INT32, lines)
