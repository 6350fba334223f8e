"""Emits how single values are written: the lines that both kinds of writers have in common."""

from __future__ import annotations

from kproto.schema.layout import FORMATS, FieldForm
from kproto.schema.specs import PRIMITIVE_TYPES

from .imports import Imports
from .plan import FieldPlan, StructPlan, TagsForm

__all__ = [
    "array_elements",
    "nested_value",
    "packed",
    "present_struct",
    "refuse_null",
    "unknown_tags",
    "writing_function",
]


def packed(kind: str, place: str, imports: Imports) -> str:
    """What a Struct is given for the value of fixed width at `place`."""
    if kind == "bool":
        imports.wire("writing", "BOOLS")
        return f"BOOLS[{place}]"
    if kind == "uuid":
        imports.wire("writing", "uuid_bytes")
        return f"uuid_bytes({place})"
    return place


def unknown_tags(plan: StructPlan, form: TagsForm, target: str, imports: Imports) -> list[str]:
    """Writes the end of the struct: mostly one byte, 0."""
    if not form.flexible:
        imports.wire("faults", "WireFault")
        return [f"if {target}._unknown_tags:", "    raise WireFault"]
    if plan.tagged:
        return [f"_write_{plan.snake}_tags(append, {target}, version)"]
    imports.wire("writing", "write_tags")
    return [
        f"if {target}._unknown_tags:",
        f"    write_tags(append, (), {target}._unknown_tags)",
        "else:",
        '    append(b"\\0")',
    ]


def refuse_null(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Null in a field that may be null in other versions only."""
    if form.nullable or not field.nullable:
        return []
    imports.wire("faults", "WireFault")
    return [f"if {place} is None:", "    raise WireFault"]


def nested_value(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Writes a struct that stands by itself, or null in its place."""
    write = present_struct(field, place, imports)
    if not form.nullable:
        return [*refuse_null(field, form, place, imports), write]
    null = r"\0" if form.compact else r"\xff"
    return [
        f"if {place} is None:",
        f'    append(b"{null}")',
        "else:",
        '    append(b"\\x01")',
        f"    {write}",
    ]


def present_struct(field: FieldPlan, place: str, imports: Imports) -> str:
    """Writes a struct that is there."""
    return f"_write_{imports.struct_snake(field.spec.type)}(append, ({place},), version)"


def array_elements(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Writes what stands behind the count of an array."""
    element = field.spec.element_type
    if element not in PRIMITIVE_TYPES:
        return [f"_write_{imports.struct_snake(element)}(append, {place}, version)"]
    extra = ""
    if element == "string":
        function = "write_compact_strings" if form.compact else "write_strings"
    elif element == "uuid":
        function = "write_uuids"
    elif element in FORMATS:
        function, extra = "write_numbers", f', "{FORMATS[element]}"'
        if element == "bool":
            imports.wire("writing", "elements")
            place = f"[{packed(element, 'value', imports)} for value in elements({place})]"
    else:  # bytes or records, of which Kafka has no array
        function = "write_compact_bytes" if form.compact else "write_bytes"
        imports.wire("writing", function)
        imports.wire("writing", "elements")
        return [f"for element in elements({place}):", f"    {function}(append, element)"]
    imports.wire("writing", function)
    return [f"{function}(append, {place}{extra})"]


def writing_function(kind: str, form: FieldForm) -> str:
    """`write_compact_nullable_string` and its like."""
    compact = "compact_" if form.compact else ""
    nullable = "nullable_" if form.nullable else ""
    return f"write_{compact}{nullable}{kind}"
