"""Emits the functions that write a struct, and those that write its tagged fields."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from kproto.schema.layout import FORMATS, FieldForm, Presence, field_form
from kproto.schema.specs import PRIMITIVE_TYPES
from kproto.schema.versions import Versions

from .imports import Imports
from .plan import FieldPlan, Form, Run, StructPlan, TagsForm
from .source import WIDTH, chain, indent, version_test

__all__ = ["default_functions", "write_functions", "write_method", "write_tags_function"]

#: Types of fixed width by what they are packed as. A bool is packed as a number, because the
#: struct module's own bool takes any object, None too, for true or false.
_PACKED: Final = {kind: "uint8" if kind == "bool" else kind for kind in FORMATS}


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
    name = plan.class_name
    if straight and len(plan.runs) == 1:
        (run,) = plan.runs
        blocks = []
        for versions, forms in run.segments:
            lines = _block(plan, run, forms, "entry", imports, straight=True)
            blocks.append((versions, ["for entry in entries:", *indent(lines or ["pass"])]))
        body = chain(blocks, plan.versions)
    else:
        lines = _struct_body(plan, "entry", imports, straight=straight)
        body = ["for entry in entries:", *indent(lines or ["pass"])]
    parameters = f"append: Append, entries: Iterable[{name}], version: int"
    head = f"def _write_{plan.snake}({parameters}"
    return [f"{head}) -> None:", *indent(body)]


def write_tags_function(plan: StructPlan, imports: Imports) -> list[str]:
    """The function that writes the tagged fields of a struct that knows some."""
    imports.wire("writing", "Append")
    imports.wire("writing", "write_tags")
    imports.wire("tags", "RawTaggedField")
    target = "message" if plan.is_message else "entry"
    body = ["tagged: list[RawTaggedField] = []"]
    flexible = plan.versions.intersect(plan.flexible)
    for field in plan.tagged:
        place = f"{target}.{field.slot}"
        imports.default(field)
        test = field.is_not_default(place)
        tagged = plan.tagged_versions(field)
        if not tagged.covers(flexible):
            test = f"{version_test(tagged, flexible)} and {_alone(test)}"
        value = _tagged_value(plan, field, place, imports)
        body += [
            f"if {test}:",
            "    pieces: list[bytes] = []" if field is plan.tagged[0] else "    pieces = []",
            "    append = pieces.append",
            *indent(value),
            f'    tagged.append(RawTaggedField({field.spec.tag}, b"".join(pieces)))',
        ]
    choice = _known_tags(plan, flexible)
    known = "known"
    if len(choice) == 1:
        known = choice.pop().removeprefix("known = ")
    elif choice:
        choice.insert(0, "known: tuple[int, ...]")
    body += [*choice, f"write_tags(out, tagged, {target}._unknown_tags, {known})"]
    parameters = f"out: Append, {target}: {plan.class_name}, version: int"
    head = f"def _write_{plan.snake}_tags({parameters}"
    return [f"{head}) -> None:", *indent(body)]


def _known_tags(plan: StructPlan, flexible: Versions) -> list[str]:
    """Lines that set `known` to the tags that are fields of the version.

    In versions without any the function is not called, so those do not count.
    """
    blocks = []
    for version in flexible:
        tags = [field.spec.tag for field in plan.tagged if version in plan.tagged_versions(field)]
        if tags:
            numbers = ", ".join(str(tag) for tag in tags)
            literal = f"({numbers},)" if len(tags) == 1 else f"({numbers})"
            blocks.append((Versions.single(version), [f"known = {literal}"]))
    return chain(blocks, Versions(blocks[0][0].lowest, blocks[-1][0].highest))


def default_functions(plans: Sequence[StructPlan], lines: Sequence[str]) -> list[list[str]]:
    """For each struct that `lines` ask it of, the function that tells whether it says nothing.

    Comparing field by field costs a twentieth of making a struct of defaults to compare with.
    """
    made: dict[str, list[str]] = {}
    text = "\n".join(lines)
    for plan in reversed(plans):  # a struct may ask it of those inside it, which stand before it
        name = f"_is_default_{plan.snake}"
        if f"{name}(" not in text:
            continue
        tests = [_alone(field.is_not_default(f"entry.{field.slot}")) for field in plan.fields]
        tests.append("entry._unknown_tags")
        whole = " or ".join(tests)
        if len(whole) + 8 <= WIDTH:
            made[name] = [f"    return not ({whole})"]
        else:
            first, *rest = tests
            inner = [first, *(f"or {test}" for test in rest)]
            made[name] = ["    return not (", *indent(inner, 8), "    )"]
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
            lines = _value(field, form, place, imports, straight=False)
        blocks.append((type(versions).single(version), lines))
    return chain(blocks, versions)


def _present_value(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Writes a tagged value whose default is null: it is there, so it is not null."""
    if field.spec.is_array:
        return _array_value(field, form, place, imports)
    if field.spec.is_struct:
        marker = ['append(b"\\x01")'] if form.nullable else []
        return [*marker, _nested_value(field, place, imports)]
    return _value(field, form, place, imports, straight=False)


def _struct_body(plan: StructPlan, target: str, imports: Imports, *, straight: bool) -> list[str]:
    lines: list[str] = []
    for run in plan.runs:
        blocks = [
            (versions, _block(plan, run, forms, target, imports, straight=straight))
            for versions, forms in run.segments
        ]
        lines += chain(blocks, plan.versions)
    return lines


def _block(
    plan: StructPlan,
    run: Run,
    forms: tuple[Form, ...],
    target: str,
    imports: Imports,
    *,
    straight: bool,
) -> list[str]:
    """Straight-line code for one segment: numbers of neighbouring fields are written together."""
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
        if form.presence is Presence.ABSENT:
            if not item.spec.ignorable:
                imports.default(item)
                imports.wire("faults", "WireFault")
                lines += [f"if {item.is_not_default(place)}:", "    raise WireFault"]
        elif form.presence is Presence.TAGGED:
            continue
        elif item.spec.type in FORMATS and item.spec.type != "uuid":
            numbers.append(item)
        else:
            flush()
            lines += _value(item, form, place, imports, straight=straight)
    flush()
    return lines


def _numbers(fields: list[FieldPlan], target: str, imports: Imports) -> list[str]:
    if not fields:
        return []
    types = [_PACKED[field.spec.type] for field in fields]
    places = [f"{target}.{field.slot}" for field in fields]
    name, _ = imports.shape(types)
    return [f"append({name}.pack({', '.join(places)}))"]


def _tags(plan: StructPlan, form: TagsForm, target: str, imports: Imports) -> list[str]:
    if not form.flexible:
        imports.wire("faults", "WireFault")
        return [f"if {target}._unknown_tags:", "    raise WireFault"]
    if form.known:
        return [f"_write_{plan.snake}_tags(append, {target}, version)"]
    imports.wire("writing", "write_tags")
    return [
        f"if {target}._unknown_tags:",
        f"    write_tags(append, (), {target}._unknown_tags)",
        "else:",
        '    append(b"\\0")',
    ]


def _value(
    field: FieldPlan,
    form: FieldForm,
    place: str,
    imports: Imports,
    *,
    straight: bool,
) -> list[str]:
    """Writes the value at `place`."""
    spec = field.spec
    if spec.is_array:
        return _array(field, form, place, imports)
    if spec.is_struct:
        return _nested(field, form, place, imports)
    if spec.type == "uuid":
        imports.wire("faults", "WireFault")
        return [f"if len({place}) != 16:", "    raise WireFault", f"append({place})"]
    if spec.type in FORMATS:
        name, _ = imports.shape([_PACKED[spec.type]])
        return [f"append({name}.pack({place}))"]
    lines = _refuse_null(field, form, place, imports)
    kind = "string" if spec.type == "string" else "bytes"
    if kind == "string" and straight and form.compact and not form.nullable:
        imports.wire("writing", "UVARINT")
        imports.wire("writing", "compact_string_length")
        return [
            *lines,
            f"text = {place}.encode()",
            "size = len(text)",
            "append(UVARINT[size + 1] if size < 127 else compact_string_length(size))",
            "append(text)",
        ]
    compact = "compact_" if form.compact else ""
    nullable = "nullable_" if form.nullable else ""
    function = f"write_{compact}{nullable}{kind}"
    imports.wire("writing", function)
    return [*lines, f"{function}(append, {place})"]


def _refuse_null(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    """Null in a field that may be null in other versions only."""
    if form.nullable or not field.nullable:
        return []
    imports.wire("faults", "WireFault")
    return [f"if {place} is None:", "    raise WireFault"]


def _nested(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    write = _nested_value(field, place, imports)
    if not form.nullable:
        return [*_refuse_null(field, form, place, imports), write]
    null = r"\0" if form.compact else r"\xff"
    return [
        f"if {place} is None:",
        f'    append(b"{null}")',
        "else:",
        '    append(b"\\x01")',
        f"    {write}",
    ]


def _nested_value(field: FieldPlan, place: str, imports: Imports) -> str:
    return f"_write_{imports.struct_snake(field.spec.type)}(append, ({place},), version)"


def _array(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    lines = _array_value(field, form, place, imports)
    if not form.nullable:
        return [*_refuse_null(field, form, place, imports), *lines]
    null = r"\0" if form.compact else r"\xff\xff\xff\xff"
    return [f"if {place} is None:", f'    append(b"{null}")', "else:", *indent(lines)]


def _array_value(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    length = "write_compact_array_length" if form.compact else "write_array_length"
    imports.wire("writing", length)
    return [f"{length}(append, len({place}))", *_elements(field, form, place, imports)]


def _elements(field: FieldPlan, form: FieldForm, place: str, imports: Imports) -> list[str]:
    element = field.spec.element_type
    if element not in PRIMITIVE_TYPES:
        return [f"_write_{imports.struct_snake(element)}(append, {place}, version)"]
    extra = ""
    if element == "string":
        function = "write_compact_strings" if form.compact else "write_strings"
    elif element == "uuid":
        function = "write_uuids"
    elif element in FORMATS:
        letter = "B" if element == "bool" else FORMATS[element]
        function, extra = "write_numbers", f', "{letter}"'
    else:  # bytes or records, of which Kafka has no array
        function = "write_compact_bytes" if form.compact else "write_bytes"
        imports.wire("writing", function)
        return [f"for element in {place}:", f"    {function}(append, element)"]
    imports.wire("writing", function)
    return [f"{function}(append, {place}{extra})"]
