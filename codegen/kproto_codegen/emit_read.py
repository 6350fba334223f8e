"""Emits the functions that read a struct, and those that read its tagged fields."""

from __future__ import annotations

from kproto.schema.layout import FORMATS, FieldForm, Presence, field_form
from kproto.schema.specs import PRIMITIVE_TYPES

from .imports import Imports
from .plan import FieldPlan, Form, Run, StructPlan, TagsForm, struct_body
from .read_values import nested_value, primitive_elements, reading_function
from .source import chain, indent, version_test
from .straight_read import straight_read_block

__all__ = ["read_functions", "read_method", "read_tags_function"]


def read_method(plan: StructPlan, imports: Imports, *, straight: bool) -> list[str]:
    """`_read_fields` of a message."""
    body = ["message = cls.__new__(cls)"]
    body += _struct_body(plan, "message", imports, straight=straight)
    body.append("return message, pos")
    parameters = "cls, data: bytes, pos: int, version: int"
    head = f"def _read_fields({parameters}"
    return ["@classmethod", f"{head}) -> tuple[Self, int]:", *indent(body)]


def read_functions(plan: StructPlan, imports: Imports, *, straight: bool) -> list[str]:
    """The function that reads `count` of a struct."""
    name = plan.class_name
    made, kind = ("[]", f"list[{name}]")
    if plan.keys:
        made, kind = (f"{name}Collection()", f"{name}Collection")
    body = [f"entries = {made}" if plan.keys else f"entries: {kind} = []"]
    body.append(f"new = {name}.__new__")
    entry = [f"entry = new({name})"]
    if straight and len(plan.runs) == 1:
        (run,) = plan.runs
        blocks = []
        for versions, forms in run.segments:
            lines = straight_read_block(plan, run, forms, "entry", imports)
            inner = indent([*entry, *lines, "entries.append(entry)"])
            blocks.append((versions, ["for _ in range(count):", *inner]))
        body += chain(blocks, plan.versions)
    else:
        lines = _struct_body(plan, "entry", imports, straight=straight)
        body.append("for _ in range(count):")
        body += indent([*entry, *lines, "entries.append(entry)"])
    body.append("return entries, pos")
    parameters = "data: bytes, pos: int, count: int, version: int"
    head = f"def _read_{plan.snake}({parameters}"
    return [f"{head}) -> tuple[{kind}, int]:", *indent(body)]


def read_tags_function(plan: StructPlan, imports: Imports) -> list[str]:
    """The function that reads the tagged fields of a struct that knows some."""
    imports.wire("reading", "read_tags")
    imports.wire("tags", "RawTaggedField")
    imports.wire("faults", "WireFault")
    target = "message" if plan.is_message else "entry"
    branches: list[str] = []
    flexible = plan.flexible_versions
    elsewhere = []
    for field in plan.tagged:
        tagged = plan.tagged_versions(field)
        test = f"tag == {field.spec.tag}"
        if not tagged.covers(flexible):
            elsewhere.append(str(field.spec.tag))
            if not tagged:
                continue
            test += f" and {version_test(tagged, flexible)}"
        branches.append(f"{'elif' if branches else 'if'} {test}:")
        branches += indent(_tagged_value(plan, field, target, imports))
    if elsewhere:
        numbers = ", ".join(elsewhere)
        test = f"tag in ({numbers})" if len(elsewhere) > 1 else f"tag == {numbers}"
        branches.append(f"{'elif' if branches else 'if'} {test}:  # in other versions only")
        branches.append("    raise WireFault")
    branches.append("else:")
    branches += indent(["unknown.append(RawTaggedField(tag, data[pos:stop]))", "continue"])
    body = [
        "tags, end = read_tags(data, pos)",
        "unknown: list[RawTaggedField] = []",
        "for tag, pos, stop in tags:",
        *indent([*branches, "if pos != stop:", "    raise WireFault"]),
        f"{target}._unknown_tags = unknown or None",
        "return end",
    ]
    parameters = f"{target}: {plan.class_name}, data: bytes, pos: int, version: int"
    head = f"def _read_{plan.snake}_tags({parameters}"
    return [f"{head}) -> int:", *indent(body)]


def _tagged_value(plan: StructPlan, field: FieldPlan, target: str, imports: Imports) -> list[str]:
    """Reads a tagged field; its form may depend on the version too."""
    versions = plan.tagged_versions(field)
    blocks = []
    for version in versions:
        form = field_form(field.spec, version, flexible=True)
        lines = _value(field, form, f"{target}.{field.slot}", imports)
        blocks.append((type(versions).single(version), lines))
    return chain(blocks, versions)


def _struct_body(plan: StructPlan, target: str, imports: Imports, *, straight: bool) -> list[str]:
    block = straight_read_block if straight else _block
    return struct_body(
        plan, lambda run, forms: block(plan, run, forms, target, imports), straight=straight
    )


def _block(
    plan: StructPlan, run: Run, forms: tuple[Form, ...], target: str, imports: Imports
) -> list[str]:
    """The code for one segment: numbers of neighbouring fields are read together."""
    lines: list[str] = []
    numbers: list[FieldPlan] = []

    def flush() -> None:
        lines.extend(_numbers(numbers, target, imports))
        numbers.clear()

    for item, form in zip(run.items, forms, strict=True):
        if isinstance(form, TagsForm):
            flush()
            lines += _tags(plan, form, target, imports)
            continue
        assert item is not None
        place = f"{target}.{item.slot}"
        if form.presence is not Presence.PLAIN:
            imports.default(item)
            lines.append(f"{place} = {item.fresh_default()}")
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
    places = [f"{target}.{field.slot}" for field in fields]
    if types == ["bool"]:
        return [f"{places[0]} = data[pos] != 0", "pos += 1"]
    name, size = imports.shape(types)
    if len(places) == 1:
        return [f"({places[0]},) = {name}.unpack_from(data, pos)", f"pos += {size}"]
    return [f"{', '.join(places)} = {name}.unpack_from(data, pos)", f"pos += {size}"]


def _tags(plan: StructPlan, form: TagsForm, target: str, imports: Imports) -> list[str]:
    if not form.flexible:
        return [f"{target}._unknown_tags = None"]
    if not plan.tagged:
        imports.wire("reading", "read_unknown_tags")
        return [
            "if data[pos]:",
            f"    {target}._unknown_tags, pos = read_unknown_tags(data, pos)",
            "else:",
            f"    {target}._unknown_tags = None",
            "    pos += 1",
        ]
    return [
        "if data[pos]:",
        f"    pos = _read_{plan.snake}_tags({target}, data, pos, version)",
        "else:",
        f"    {target}._unknown_tags = None",
        "    pos += 1",
    ]


def _value(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Reads one value at `pos` into `place`."""
    spec = field.spec
    if spec.is_array:
        return _array(field, form, place, imports)
    if spec.is_struct:
        return nested_value(field, form, place, imports)
    if spec.type == "uuid":
        imports.wire("uuid", "Uuid")
        return [f"{place} = Uuid(data[pos : pos + 16])", "pos += 16"]
    if spec.type in FORMATS:
        name, size = imports.shape([spec.type])
        return [f"({place},) = {name}.unpack_from(data, pos)", f"pos += {size}"]
    function = reading_function("string" if spec.type == "string" else "bytes", form)
    imports.wire("reading", function)
    return [f"{place}, pos = {function}(data, pos)"]


def _array(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    function = reading_function("array_length", form)
    imports.wire("reading", function)
    lines = [f"length, pos = {function}(data, pos)"]
    element = field.spec.element_type
    if element in PRIMITIVE_TYPES:
        reading = primitive_elements(element, form, place, imports)
    else:
        reader = f"_read_{imports.struct_snake(element)}"
        reading = [f"{place}, pos = {reader}(data, pos, length, version)"]
    if form.nullable:
        return [*lines, "if length < 0:", f"    {place} = None", "else:", *indent(reading)]
    return lines + reading
