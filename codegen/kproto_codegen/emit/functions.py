"""Emits the functions that read and write a message, its structs and their tagged fields.

This module emits function heads, loops and version tests; `readers` and `writers` emit the code for
each value.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from kproto.schema.layout import FieldForm, field_form
from kproto.schema.versions import Versions

from .blocks import StructCodeEmitter
from .code import (
    Code,
    Condition,
    For,
    Statement,
    chain,
    chains,
    choose,
    function,
    indent,
    version_test,
    when,
)
from .imports import Imports
from .plan import FieldPlan, FieldRun, Form, StructPlan, Style
from .readers import READERS, ReadCodeEmitter, fixed_size_elements, uniform_elements
from .wrapping import WIDTH
from .writers import WRITERS, NonNullWriteEmitter, WriteCodeEmitter

__all__ = [
    "decode_function",
    "default_functions",
    "encode_functions",
    "read_function",
    "read_functions",
    "read_method",
    "struct_functions",
    "tags_functions",
    "write_function",
    "write_functions",
    "write_method",
    "write_tags_functions",
]

#: The lines of a function.
Lines: TypeAlias = list[str]


def read_method(plan: StructPlan, imports: Imports) -> Lines:
    """Returns the lines of the method `_read_fields` of a message."""
    body = [
        "message = cls.__new__(cls)",
        *_layouts(plan, lambda: READERS[plan.style](plan, "message", imports)),
        "return message, pos",
    ]
    parameters = "cls, data: bytes, pos: int, version: int"
    return ["@classmethod", *function("_read_fields", parameters, "tuple[Self, int]", body)]


def read_function(plan: StructPlan, imports: Imports) -> Lines:
    """Returns the lines of the function `read_fields` of a message in NATIVE style.

    It reads as `_read_fields` does; the first argument is the class of the message.
    """
    name = plan.class_name
    imports.wire("c_functions", "new_object")
    code = _layouts(plan, lambda: READERS[plan.style](plan, "message", imports))
    body = [
        when(f"cls is not {name}", ["return cls._read_in_python(data, pos, version)"]),
        f"message = new_object({name})",
        *imports.take_variables(),
        *code,
        "return message, pos",
    ]
    parameters = f"cls: type[{name}], data: bytes, pos: i64, version: i64"
    return function("read_fields", parameters, f"tuple[{name}, i64]", body)


def decode_function(plan: StructPlan) -> Lines:
    """Returns the lines of the function `decode` of a message in NATIVE style.

    It decodes as `Message.decode` does; the first argument is the class of the message.
    """
    name = plan.class_name
    low, high = plan.versions.lowest, plan.versions.highest
    return [
        f"def decode(cls: type[{name}], data: object, version: object) -> {name}:",
        '    """Decodes a message, as `Message.decode` does."""',
        f"    if cls is not {name}:",
        "        return decode_in_python(cls, data, version)",
        "    if not isinstance(data, bytes) or not isinstance(version, int):",
        "        return decode_in_python(cls, data, version)",
        f"    if not {low} <= version <= {high}:",
        "        return decode_in_python(cls, data, version)",
        "    try:",
        "        message, end = read_fields(cls, data, 0, version)",
        "        if end == len(data):",
        "            return message",
        "    except READ_FAULTS:",
        "        pass",
        "    raise decode_error(cls, data, version)",
    ]


def read_functions(plan: StructPlan, imports: Imports) -> list[Lines]:
    """Returns the functions of `struct_functions` that read."""
    return [_read_structs(plan, imports), *tags_functions(plan, imports)[:1]]


def write_method(plan: StructPlan, imports: Imports) -> Lines:
    """Returns the lines of the method `_write_fields` of a message."""
    imports.wire("writing", "Append")
    body = _layouts(plan, lambda: WRITERS[plan.style](plan, "self", imports))
    return function("_write_fields", "self, append: Append, version: int", "None", body)


def struct_functions(plan: StructPlan, imports: Imports) -> list[Lines]:
    """Returns the functions that read and write the elements of an array of structs.

    If the struct has tagged fields, also returns the functions that read and write the tagged
    fields.
    """
    read, write = _read_structs(plan, imports), _write_structs(plan, imports)
    tags = tags_functions(plan, imports)
    return [read, *tags[:1], write, *tags[1:]]


def _read_structs(plan: StructPlan, imports: Imports) -> Lines:
    name = plan.class_name

    is_native = plan.style is Style.NATIVE
    new = "new_object(kind)" if is_native else f"new({name})"
    if is_native:
        imports.wire("c_functions", "new_object")

    def loop(code: Code) -> Code:
        return [For("_ in range(count)", (f"entry = {new}", *code, "entries.append(entry)"))]

    def together(run: FieldRun, forms: tuple[Form, ...], code: Code) -> Code:
        if plan.style is not Style.STRAIGHT:
            return code
        if plan.of_array and run.is_fixed_size(forms):
            return fixed_size_elements(plan, imports, run, forms, code)
        if plan.of_array and run.is_uniform(forms):
            return uniform_elements(plan, imports, run, forms, code)
        return code

    kind = f"{name}Collection" if plan.keys else f"list[{name}]"
    number = _number_type(plan)
    code = _layouts(plan, lambda: READERS[plan.style](plan, "entry", imports), loop, together)
    body = [
        # mypyc appends to a list inline, and to a subclass of list by a call
        f"entries = {kind}()" if plan.keys and not is_native else f"entries: list[{name}] = []",
        f"kind = {name}" if is_native else f"new = {name}.__new__",
        *imports.take_variables(),
        *code,
        f"return {kind}(entries), pos" if plan.keys and is_native else "return entries, pos",
    ]
    parameters = f"data: bytes, pos: {number}, count: {number}, version: {number}"
    return function(f"_read_{plan.snake_name}", parameters, f"tuple[{kind}, {number}]", body)


def _number_type(plan: StructPlan) -> str:
    """Returns the type of positions and versions in the emitted code."""
    return "i64" if plan.style is Style.NATIVE else "int"


def write_function(plan: StructPlan, imports: Imports) -> Lines:
    """Returns the lines of the function `write_fields` of a message in NATIVE style."""
    imports.wire("writing", "Append")
    code = _layouts(plan, lambda: WRITERS[plan.style](plan, "message", imports))
    body: Code = [f"kind = {plan.class_name}", "append: Append = pieces.append", *code]
    parameters = f"message: {plan.class_name}, pieces: list[bytes], version: i64"
    return function("write_fields", parameters, "None", body)


def encode_functions(plan: StructPlan) -> list[Lines]:
    """Returns the functions `encoded_pieces` and `encode` of a message in NATIVE style.

    They encode as the methods of `Message` do, and call these methods for other classes, and to
    explain a fault.
    """
    name = plan.class_name
    low, high = plan.versions.lowest, plan.versions.highest
    pieces = [
        f"def encoded_pieces(message: {name}, version: object) -> list[bytes]:",
        '    """Encodes a message, as `Message.encoded_pieces` does."""',
        f"    if type(message) is not {name} or not isinstance(version, int):",
        "        return pieces_in_python(message, version)",
        f"    if not {low} <= version <= {high}:",
        "        return pieces_in_python(message, version)",
        "    pieces: list[bytes] = []",
        "    try:",
        "        write_fields(message, pieces, version)",
        "    except Exception:  # noqa: BLE001 - encoding in Python explains the fault",
        "        pieces = []",
        "    return pieces or pieces_in_python(message, version)",
    ]
    encode = [
        f"def encode(message: {name}, version: object) -> bytes:",
        '    """Encodes a message, as `Message.encode` does."""',
        '    return b"".join(encoded_pieces(message, version))',
    ]
    return [pieces, encode]


def write_functions(plan: StructPlan, imports: Imports) -> list[Lines]:
    """Returns the functions of `struct_functions` that write."""
    write = _write_structs(plan, imports)
    return [write, _write_tags(plan, "entry", imports)] if plan.tagged else [write]


def write_tags_functions(plan: StructPlan, imports: Imports) -> list[Lines]:
    """Returns the function that writes the tagged fields of a message, if it has any."""
    return [_write_tags(plan, "message", imports)] if plan.tagged else []


def _write_structs(plan: StructPlan, imports: Imports) -> Lines:
    imports.wire("writing", "Append")
    imports.wire("writing", "elements")

    def loop(code: Code) -> Code:
        return [For("entry in elements(entries)", tuple(code))]

    body = _layouts(plan, lambda: WRITERS[plan.style](plan, "entry", imports), loop)
    parameters = f"append: Append, entries: Collection[{plan.class_name}], version: int"
    if plan.style is not Style.NATIVE:
        return function(f"_write_{plan.snake_name}", parameters, "None", body)
    parameters = f"pieces: list[bytes], {parameters.replace('version: int', 'version: i64')}"
    body = [f"kind = {plan.class_name}", *body]
    return function(f"_write_{plan.snake_name}", parameters, "None", body)


def _layouts(
    plan: StructPlan,
    block: Callable[[], StructCodeEmitter],
    loop: Callable[[Code], Code] = lambda code: code,
    together: Callable[[FieldRun, tuple[Form, ...], Code], Code] = lambda run, forms, code: code,
) -> Code:
    """Returns the code of all field runs for all versions, with tests of the version.

    `block` creates an emitter, and `loop` puts code into a loop. In STRAIGHT and NATIVE style each
    layout has its own loop; `together` returns the loop, or faster code that replaces the whole
    loop. In BRANCHING style all versions share one loop, and the version tests are inside it.
    """
    if plan.style is not Style.BRANCHING:
        (run,) = plan.runs
        layouts = [
            (versions, together(run, forms, loop(block().struct(run, forms))))
            for versions, forms in run.segments
        ]
        return chain(layouts, plan.versions)
    runs = [
        [(versions, block().struct(run, forms)) for versions, forms in run.segments]
        for run in plan.runs
    ]
    return loop(chains(runs, plan.versions))


def tags_functions(plan: StructPlan, imports: Imports) -> list[Lines]:
    """Returns the two functions that read and write the tagged fields of a struct.

    Returns no function if the struct has no tagged fields.
    """
    if not plan.tagged:
        return []
    imports.wire("tags", "RawTaggedField")
    target = "message" if plan.is_message else "entry"
    if plan.style is Style.NATIVE:
        return [_read_tags(plan, target, imports)]
    return [_read_tags(plan, target, imports), _write_tags(plan, target, imports)]


def _read_tags(plan: StructPlan, target: str, imports: Imports) -> Lines:
    imports.wire("reading", "read_tags")
    imports.wire("faults", "WireFault")

    def value(field: FieldPlan, form: FieldForm) -> Code:
        emitter = READERS[Style.NATIVE] if plan.style is Style.NATIVE else ReadCodeEmitter
        return emitter(plan, target, imports).value(field, form)

    refused = ["raise WireFault"]
    branches: list[tuple[Condition, Code]] = []
    for field in plan.tagged:
        if plan.tagged_versions(field):
            tests = (f"tag == {field.spec.tag}", *_tag_tests(plan, field))
            branches.append((Condition(tests), _by_version(plan, field, value)))
    other = ["unknown.append(RawTaggedField(tag, data[pos:stop]))", "continue"]
    elsewhere = [field for field in plan.tagged if not plan.always_tagged(field)]
    if elsewhere:
        numbers = ", ".join(str(field.spec.tag) for field in elsewhere)
        test = f"tag in ({numbers})" if len(elsewhere) > 1 else f"tag == {numbers}"
        branches.append((Condition((test,), comment="in other versions only"), refused))
    by_tag = choose(branches, other)
    body: Code = [
        *imports.take_variables(),
        "tags, end = read_tags(data, pos)",
        "unknown: list[RawTaggedField] = []",
        For("tag, pos, stop in tags", (by_tag, when("pos != stop", refused))),
        f"{target}._unknown_tags = unknown or None",
        "return end",
    ]
    number = _number_type(plan)
    parameters = f"{target}: {plan.class_name}, data: bytes, pos: {number}, version: {number}"
    return function(f"_read_{plan.snake_name}_tags", parameters, number, body)


def _write_tags(plan: StructPlan, target: str, imports: Imports) -> Lines:
    imports.wire("writing", "Append")
    imports.wire("writing", "write_tags")

    def value(field: FieldPlan, form: FieldForm) -> Code:
        known = field.spec.default_value() is None  # a set value is then not None
        writer = NonNullWriteEmitter if known else WriteCodeEmitter
        return writer(plan, target, imports).value(field, form)

    body: list[Statement] = ["tagged: list[RawTaggedField] = []"]
    pieces = "pieces: list[bytes] = []"
    for field in plan.tagged:
        if not plan.tagged_versions(field):
            continue
        imports.default_tests(field)
        _, is_set = field.default_tests(f"{target}.{field.slot}")
        version = _tag_tests(plan, field)
        write = [
            pieces,
            "append = pieces.append",
            *_by_version(plan, field, value),
            f'tagged.append(RawTaggedField({field.spec.tag}, b"".join(pieces)))',
        ]
        body.append(when(Condition((*version, is_set.alone)) if version else is_set, write))
        pieces = "pieces = []"
    numbers = ", ".join(str(field.spec.tag) for field in plan.tagged)
    known = f"({numbers},)" if len(plan.tagged) == 1 else f"({numbers})"
    body.append(f"write_tags(out, tagged, {target}._unknown_tags, {known})")
    number = _number_type(plan)
    parameters = f"out: Append, {target}: {plan.class_name}, version: {number}"
    return function(f"_write_{plan.snake_name}_tags", parameters, "None", body)


def _tag_tests(plan: StructPlan, field: FieldPlan) -> tuple[str, ...]:
    """Returns a tuple with the source of the test whether a version tags `field`.

    Returns an empty tuple if all flexible versions tag the field.
    """
    if plan.always_tagged(field):
        return ()
    return (version_test(plan.tagged_versions(field), plan.flexible_versions),)


def _by_version(
    plan: StructPlan, field: FieldPlan, value: Callable[[FieldPlan, FieldForm], Code]
) -> Code:
    """Returns the code for a tagged value, with version tests if its encoding varies by version."""
    versions = plan.tagged_versions(field)
    layouts = [
        (Versions.single(version), value(field, field_form(field.spec, version, flexible=True)))
        for version in versions
    ]
    return chain(layouts, versions)


def default_functions(plans: Sequence[StructPlan], imports: Imports) -> list[Lines]:
    """Returns the functions that test for defaults: one for each of `imports.tested_structs`.

    The functions compare field by field. Creating a struct with defaults and comparing with it
    would take twenty times as long.
    """
    made = []
    for plan in reversed(plans):  # outer structs first: they register the inner structs they test
        if plan.name not in imports.tested_structs:
            continue
        tests = []
        for field in plan.fields:
            imports.default_tests(field)
            is_default, _ = field.default_tests(f"entry.{field.slot}")
            tests.append(is_default.alone)
        tests.append("not entry._unknown_tags")
        head = f"def _is_default_{plan.snake_name}(entry: {plan.class_name}) -> bool:"
        made.append([head, *indent(_returned(tests))])
    return made[::-1]


def _returned(tests: Sequence[str]) -> Lines:
    """Returns the lines of a `return` that joins all tests with `and`, in ruff's format."""
    whole = str(Condition(tuple(tests)))
    if len(f"    return {whole}") <= WIDTH:
        return [f"return {whole}"]
    if len(f"        {whole}") <= WIDTH:
        return ["return (", f"    {whole}", ")"]
    first, *rest = tests
    return ["return (", *indent([first, *(f"and {test}" for test in rest)]), ")"]
