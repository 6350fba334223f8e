"""Emits how single values are read: the lines that both kinds of readers have in common."""

from __future__ import annotations

from kproto.schema.layout import FORMATS, FieldForm

from .imports import Imports
from .plan import FieldPlan

__all__ = ["nested_value", "primitive_elements", "reading_function"]


def nested_value(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Reads a struct that stands by itself, or null in its place."""
    function = f"_read_{imports.struct_snake(field.spec.type)}"
    read = f"({place},), pos = {function}(data, pos, 1, version)"
    if not form.nullable:
        return [read]
    if form.compact:
        imports.wire("reading", "read_struct_mark")
        return [
            "present, pos = read_struct_mark(data, pos)",
            "if present:",
            f"    {read}",
            "else:",
            f"    {place} = None",
        ]
    return [
        "if data[pos] > 127:",
        f"    {place} = None",
        "    pos += 1",
        "else:",
        f"    ({place},), pos = {function}(data, pos + 1, 1, version)",
    ]


def primitive_elements(element: str, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Reads `length` elements that are no structs."""
    if element == "string":
        function = "read_compact_strings" if form.compact else "read_strings"
        extra: list[str] = []
    elif element == "uuid":
        function, extra = "read_uuids", []
    elif element in FORMATS:
        function, extra = "read_numbers", [f'"{FORMATS[element]}"']
    else:  # bytes or records, of which Kafka has no array
        function = "read_compact_bytes" if form.compact else "read_bytes"
        imports.wire("reading", function)
        return [
            f"{place} = []",
            "for _ in range(length):",
            f"    element, pos = {function}(data, pos)",
            f"    {place}.append(element)",
        ]
    imports.wire("reading", function)
    arguments = ", ".join(["data", "pos", "length", *extra])
    return [f"{place}, pos = {function}({arguments})"]


def reading_function(kind: str, form: FieldForm) -> str:
    """`read_compact_nullable_string` and its like."""
    compact = "compact_" if form.compact else ""
    nullable = "nullable_" if form.nullable else ""
    return f"read_{compact}{nullable}{kind}"
