"""Emits the functions that write a struct, and those that write its tagged fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kproto.schema.layout import FORMATS, FieldForm, Presence, field_form

from .imports import Imports
from .plan import FieldPlan, Form, Run, StructPlan, TagsForm, struct_body
from .source import WIDTH, chain, indent, version_test
from .straight_write import straight_write_block
from .write_values import (
    array_elements,
    nested_value,
    packed,
    present_struct,
    refuse_null,
    unknown_tags,
    writing_function,
)

__all__ = ["default_functions", "write_functions", "write_method", "write_tags_function"]

_LOOP: Final = "for entry in elements(entries):"


def write_method(plan: StructPlan, imports: Imports, *, straight: bool) -> list[str]:
    """`_write_fields` of a message."""
    imports.wire("writing", "Append")
    body = _struct_body(plan, "self", imports, straight=straight)
    parameters = "self, append: Append, version: int"
    head = f"def _write_fields({parameters}"
    return [f"{head}) -> None:", *indent(body)]


def write_functions(plan: StructPlan, imports: Imports, *, straight: bool) -> list[str]:
    """The function that writes the structs of an array, or a single one in a tuple."""
    imports.wire("writing", "Append")
    imports.wire("writing", "elements")
    name = plan.class_name
    if straight and len(plan.runs) == 1:
        (run,) = plan.runs
        blocks = []
        for versions, forms in run.segments:
            lines = straight_write_block(plan, run, forms, "entry", imports)
            blocks.append((versions, [_LOOP, *indent(lines or ["pass"])]))
        body = chain(blocks, plan.versions)
    else:
        lines = _struct_body(plan, "entry", imports, straight=straight)
        body = [_LOOP, *indent(lines or ["pass"])]
    parameters = f"append: Append, entries: Collection[{name}], version: int"
    head = f"def _write_{plan.snake}({parameters}"
    return [f"{head}) -> None:", *indent(body)]


def write_tags_function(plan: StructPlan, imports: Imports) -> list[str]:
    """The function that writes the tagged fields of a struct that knows some."""
    imports.wire("writing", "Append")
    imports.wire("writing", "write_tags")
    imports.wire("tags", "RawTaggedField")
    target = "message" if plan.is_message else "entry"
    body = ["tagged: list[RawTaggedField] = []"]
    flexible = plan.flexible_versions
    written = [field for field in plan.tagged if plan.tagged_versions(field)]
    for field in written:
        tagged = plan.tagged_versions(field)
        place = f"{target}.{field.slot}"
        imports.default_test(field)
        test = field.is_not_default(place)
        if not tagged.covers(flexible):
            test = f"{version_test(tagged, flexible)} and {_alone(test)}"
        value = _tagged_value(plan, field, place, imports)
        body += [
            f"if {test}:",
            "    pieces: list[bytes] = []" if field is written[0] else "    pieces = []",
            "    append = pieces.append",
            *indent(value),
            f'    tagged.append(RawTaggedField({field.spec.tag}, b"".join(pieces)))',
        ]
    numbers = ", ".join(str(field.spec.tag) for field in plan.tagged)
    known = f"({numbers},)" if len(plan.tagged) == 1 else f"({numbers})"
    body.append(f"write_tags(out, tagged, {target}._unknown_tags, {known})")
    parameters = f"out: Append, {target}: {plan.class_name}, version: int"
    head = f"def _write_{plan.snake}_tags({parameters}"
    return [f"{head}) -> None:", *indent(body)]


def default_functions(
    plans: Sequence[StructPlan], lines: Sequence[str], imports: Imports
) -> list[list[str]]:
    """For each struct that `lines` ask it of, the function that tells whether it says nothing.

    Comparing field by field costs a twentieth of making a struct of defaults to compare with.
    """
    made: dict[str, list[str]] = {}
    text = "\n".join(lines)
    for plan in reversed(plans):  # a struct may ask it of those inside it, which stand before it
        name = f"_is_default_{plan.snake}"
        if f"{name}(" not in text:
            continue
        for field in plan.fields:
            imports.default_test(field)
        tests = [_alone(field.is_default(f"entry.{field.slot}")) for field in plan.fields]
        tests.append("not entry._unknown_tags")
        whole = " and ".join(tests)
        first, *rest = tests
        if len(f"    return {whole}") <= WIDTH:
            made[name] = [f"    return {whole}"]
        elif len(f"        {whole}") <= WIDTH:
            made[name] = ["    return (", f"        {whole}", "    )"]
        else:
            inner = [first, *(f"and {test}" for test in rest)]
            made[name] = ["    return (", *indent(inner, 8), "    )"]
        text += "\n".join(made[name])
    return [
        [f"def {name}(entry: {plan.class_name}) -> bool:", *made[name]]
        for plan in plans
        if (name := f"_is_default_{plan.snake}") in made
    ]


def _alone(test: str) -> str:
    """A test that can stand between others."""
    return f"({test})" if " or " in test else test


def _tagged_value(plan: StructPlan, field: FieldPlan, place: str, imports: Imports) -> list[str]:
    versions = plan.tagged_versions(field)
    blocks = []
    for version in versions:
        form = field_form(field.spec, version, flexible=True)
        if field.spec.default_value() is None:
            lines = _present_value(field, form, place, imports)
        else:
            lines = _value(field, form, place, imports)
        blocks.append((type(versions).single(version), lines))
    return chain(blocks, versions)


def _present_value(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Writes a tagged value whose default is null: it is there, so it is not null."""
    if field.spec.is_array:
        return _array_value(field, form, place, imports)
    if field.spec.is_struct:
        marker = ['append(b"\\x01")'] if form.nullable else []
        return [*marker, present_struct(field, place, imports)]
    return _value(field, form, place, imports)


def _struct_body(plan: StructPlan, target: str, imports: Imports, *, straight: bool) -> list[str]:
    block = straight_write_block if straight else _block
    return struct_body(
        plan, lambda run, forms: block(plan, run, forms, target, imports), straight=straight
    )


def _block(
    plan: StructPlan, run: Run, forms: tuple[Form, ...], target: str, imports: Imports
) -> list[str]:
    """The code for one segment: numbers of neighbouring fields are written together."""
    lines: list[str] = []
    numbers: list[FieldPlan] = []

    def flush() -> None:
        lines.extend(_numbers(numbers, target, imports))
        numbers.clear()

    for item, form in zip(run.items, forms, strict=True):
        if isinstance(form, TagsForm):
            flush()
            lines += unknown_tags(plan, form, target, imports)
            continue
        assert item is not None
        place = f"{target}.{item.slot}"
        if form.presence is Presence.ABSENT:
            if not item.spec.ignorable:
                imports.default_test(item)
                imports.wire("faults", "WireFault")
                lines += [f"if {item.is_not_default(place)}:", "    raise WireFault"]
        elif form.presence is Presence.TAGGED:
            continue
        elif item.spec.type in FORMATS and item.spec.type != "uuid":
            numbers.append(item)
        else:
            flush()
            lines += _value(item, form, place, imports)
    flush()
    return lines


def _numbers(fields: list[FieldPlan], target: str, imports: Imports) -> list[str]:
    if not fields:
        return []
    types = [field.spec.type for field in fields]
    places = [packed(field.spec.type, f"{target}.{field.slot}", imports) for field in fields]
    name, _ = imports.shape(types)
    return [f"append({name}.pack({', '.join(places)}))"]


def _value(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Writes the value at `place`."""
    spec = field.spec
    if spec.is_array:
        return _array(field, form, place, imports)
    if spec.is_struct:
        return nested_value(field, form, place, imports)
    if spec.type == "uuid":
        return [f"append({packed('uuid', place, imports)})"]
    if spec.type in FORMATS:
        name, _ = imports.shape([spec.type])
        return [f"append({name}.pack({packed(spec.type, place, imports)}))"]
    function = writing_function("string" if spec.type == "string" else "bytes", form)
    imports.wire("writing", function)
    return [*refuse_null(field, form, place, imports), f"{function}(append, {place})"]


def _array(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    lines = _array_value(field, form, place, imports)
    if not form.nullable:
        return [*refuse_null(field, form, place, imports), *lines]
    null = r"\0" if form.compact else r"\xff\xff\xff\xff"
    return [f"if {place} is None:", f'    append(b"{null}")', "else:", *indent(lines)]


def _array_value(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    length = "write_compact_array_length" if form.compact else "write_array_length"
    imports.wire("writing", length)
    return [f"{length}(append, len({place}))", *array_elements(field, form, place, imports)]
