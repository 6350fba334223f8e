"""Emits the class of a struct: slots, constructor, properties, and the methods of a keyed list.

`functions` emits the code that reads and writes the bytes.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from kproto.schema.specs import MessageSpec

from .code import indent
from .docstrings import class_docstring
from .imports import Imports
from .plan import FieldPlan, StructPlan, ValueKind
from .rendering import block
from .wrapping import WIDTH

__all__ = ["class_names", "class_parts", "quoted_tuple"]


def class_parts(
    message: MessageSpec, plan: StructPlan, secrets: Collection[str], imports: Imports
) -> dict[str, object]:
    """Returns the template values for a struct; the repr hides the fields in `secrets`."""
    for field in plan.fields:
        imports.default(field)
        if field.element_kind is ValueKind.UUID:
            imports.wire("uuid", "Uuid")
    hidden = [f'"{field.attribute}"' for field in plan.fields if field.spec.name in secrets]
    return {
        "class_name": plan.class_name,
        "docstring": block(class_docstring(message, plan), inside=True),
        "slots": _slots([field.slot for field in plan.fields]),
        "lazy": [
            block((_packed(field, imports) if field.packed else _lazy(field)), inside=True)
            for field in plan.fields
            if field.lazy or field.packed
        ],
        "secrets": f"{{{', '.join(hidden)}}}" if hidden else "",
        "init": block(_init(plan), inside=True),
        "keyed": bool(plan.keys),
        "key_names": quoted_tuple([field.attribute for field in plan.keys]),
        "finders": block(_finders(plan), inside=True) if plan.keys else "",
    }


def class_names(plan: StructPlan) -> list[str]:
    """Returns the names of a struct's generated classes: its class and its keyed list's class."""
    if plan.keys and not plan.is_message:
        return [plan.class_name, f"{plan.class_name}Collection"]
    return [plan.class_name]


def _init(plan: StructPlan) -> list[str]:
    """Returns the lines of `__init__`, which has a keyword argument for each field."""
    if not plan.fields:
        return ["def __init__(self) -> None:", "    self._unknown_tags = None"]
    parameters = [
        f"{field.attribute}: {field.parameter} = {field.default}" for field in plan.fields
    ]
    body = [line for field in plan.fields for line in _assignment(field)]
    body.append("self._unknown_tags = None")
    # Always one argument per line, so that a diff shows only the fields that a release changed.
    head = ["def __init__(", "    self,", "    *,"]
    return [*head, *(f"    {text}," for text in parameters), ") -> None:", *indent(body)]


def _assignment(field: FieldPlan) -> list[str]:
    name, expr = field.attribute, f"self.{field.slot}"
    if field.lazy and field.spec.is_struct:
        return [f"{expr}: {field.element} = DEFAULT if {name} is None else {name}"]
    if field.null_is_not_default:
        return [f"{expr} = {field.element}() if {name} is DEFAULT else {name}"]
    if field.spec.is_struct and not field.nullable:
        return [f"{expr} = {field.element}() if {name} is None else {name}"]
    if not field.spec.is_array:
        return [f"{expr} = {name}"]
    made = f"list({name})"
    if field.collection:
        made = f"{field.element}Collection({name})"
    elif field.of_strings:
        made = f"string_list({name})"
    if not field.nullable:
        return [f"{expr} = {made}"]
    return [f"{expr} = None if {name} is None else {made}"]


def _lazy(field: FieldPlan) -> list[str]:
    """Returns the lines of the property whose value is created at the first access."""
    name, expr = field.attribute, f"self.{field.slot}"
    return [
        "@property",
        f"def {name}(self) -> {field.annotation}:",
        '    """The value; created at the first access, because few messages carry it."""',
        f"    if {expr} is DEFAULT:",
        f"        {expr} = {field.new_default()}",
        f"    return {expr}",
        "",
        f"@{name}.setter",
        f"def {name}(self, value: {field.annotation}) -> None:",
        f"    {expr} = value",
    ]


def _packed(field: FieldPlan, imports: Imports) -> list[str]:
    """Returns the lines of the property whose numbers are decoded at the first access."""
    name, expr = field.attribute, f"self.{field.slot}"
    shapes, size = imports.array_shapes(field.spec.element_type)
    return [
        "@property",
        f"def {name}(self) -> {field.annotation}:",
        '    """The numbers; decoded from the bytes of the message at the first access."""',
        f"    if type({expr}) is PACKED:",
        f"        packed: Any = {expr}",
        f"        {expr} = [*{shapes}[len(packed) // {size}].unpack(packed)]",
        f"    return {expr}",
        "",
        f"@{name}.setter",
        f"def {name}(self, value: {field.annotation}) -> None:",
        f"    {expr} = number_list(value)",
    ]


def _finders(plan: StructPlan) -> list[str]:
    """Returns the lines of the methods `find` and `find_all` of a keyed list.

    Their parameters are the key fields.
    """
    several = len(plan.keys) > 1
    parameters = ["self", "*"]
    for key in plan.keys:
        default = f" = {key.default}" if several else ""
        parameters.append(f"{key.attribute}: {key.annotation}{default}")
    names = ", ".join(key.attribute for key in plan.keys)
    name = plan.class_name
    return [
        *_method("find", parameters, f"{name} | None"),
        '    """Returns an element with that key, or None: the first, unless elements changed."""',
        f"    return self._find({names})",
        "",
        *_method("find_all", parameters, f"list[{name}]"),
        '    """Returns every element with that key, in order."""',
        f"    return self._find_all({names})",
    ]


def _method(name: str, parameters: Sequence[str], result: str) -> list[str]:
    return [f"def {name}({', '.join(parameters)}) -> {result}:"]


def _slots(names: Sequence[str]) -> str:
    line = quoted_tuple(names)
    if len(line) + 16 <= WIDTH:
        return line
    return "(\n" + "".join(f'        "{name}",\n' for name in names) + "    )"


def quoted_tuple(names: Sequence[str]) -> str:
    """Returns the source of a tuple of strings."""
    if len(names) == 1:
        return f'("{names[0]}",)'
    return "(" + ", ".join(f'"{name}"' for name in names) + ")"
