"""Emits the module that reads and writes a message in platform wheels, which mypyc compiles.

The module has only functions, and imports the message classes from the message's own module. The
message's own module uses these functions only if kproto runs compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.schema.naming import module_name
from kproto.schema.specs import MessageSpec

from .classes import class_names
from .functions import (
    decode_function,
    default_functions,
    encode_functions,
    read_function,
    read_functions,
    tags_functions,
    write_function,
    write_functions,
    write_tags_functions,
)
from .heads import head
from .imports import Imports, import_lines, sorted_names
from .plan import Style, plan_structs
from .rendering import block, rendered

__all__ = ["FOLDER", "compiled_source", "package_source"]

#: The subpackage of the generated package that has these modules.
FOLDER = "compiled"


def compiled_source(message: MessageSpec, made_from: Sequence[str]) -> str:
    """Returns the source of the module that reads and writes `message`, with relative imports.

    `made_from` are the names of the files with the definition.
    """
    plans = plan_structs(message, Style.NATIVE)
    imports = Imports()
    *inner, own = plans
    functions = []
    used = [plan for plan in inner if plan.versions]
    for plan in used:
        functions += read_functions(plan, imports)
    functions += [*tags_functions(own, imports), read_function(own, imports)]
    for plan in used:
        functions += write_functions(plan, imports)
    functions += [*write_tags_functions(own, imports), write_function(own, imports)]
    functions += default_functions(inner, imports)
    functions += [decode_function(own), *encode_functions(own)]
    imports.wire("faults", "READ_FAULTS")
    imports.wire("c_functions", "as_method")
    text = "\n".join(line for lines in functions for line in lines)
    names = [name for plan in plans for name in class_names(plan) if name in text]
    packed = [
        (plan.class_name, field.attribute, plan.slots.index(field.slot))
        for plan in plans
        for field in plan.fields
        if field.packed
    ]
    if packed:
        imports.wire("c_functions", "list_descriptor")
    lines = ["import struct"] if "struct.Struct(" in str(imports.shapes()) else []
    if "Collection[" in text:
        lines.append("from collections.abc import Collection")
    if imports.index:
        lines.append("from operator import index")
    lines += ["from typing import TYPE_CHECKING, Final", ""]
    for module, found in imports.wire_imports():
        lines += import_lines(f"...wire.{module}", found)
    base = [name for name in ("DEFAULT", "PACKED") if f" {name}" in text]
    own_module = module_name(message.name)
    base += ["decode_error", "decode_in_python", "pieces_in_python"]
    from_package = {"base": base}
    from_package[own_module] = sorted_names(names)
    for module in sorted(from_package):
        lines += import_lines(f"..{module}", from_package[module])
    lines += ["", "if TYPE_CHECKING:", "    from ...wire.native import i64"]
    return rendered(
        "compiled.py.j2",
        head(f"Reads and writes {message.name} in compiled code.", made_from, Style.NATIVE),
        imports="\n".join(lines),
        functions=[block(each) for each in functions],
        packed=packed,
        shapes=imports.shapes(),
        classes=[plan.class_name for plan in plans if plan.versions],
    )


def package_source() -> str:
    """Returns the source of the subpackage's `__init__`."""
    return (
        "\n".join(head("Reads and writes the messages on the data path in compiled code.", ()))
        + "\n"
    )
