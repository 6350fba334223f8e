"""Emits the reader module of a message, which mypyc compiles in platform wheels.

A reader module has only functions, and imports the message classes from the message's own module.
The message's own module calls these functions only if kproto runs compiled.
"""

from __future__ import annotations

from collections.abc import Sequence

from kproto.schema.naming import module_name
from kproto.schema.specs import MessageSpec

from .classes import class_names
from .functions import read_function, read_functions, tags_functions
from .heads import head
from .imports import Imports, import_lines, sorted_names
from .plan import Style, plan_structs
from .rendering import block, rendered

__all__ = ["FOLDER", "package_source", "reader_source"]

#: The subpackage of the generated package that has these modules.
FOLDER = "readers"


def reader_source(message: MessageSpec, made_from: Sequence[str]) -> str:
    """Returns the source of the module that reads `message`, with relative imports.

    `made_from` are the names of the files with the definition.
    """
    plans = plan_structs(message, Style.NATIVE)
    imports = Imports()
    *inner, own = plans
    functions = []
    for plan in inner:
        if plan.versions:
            functions += read_functions(plan, imports)
    functions += tags_functions(own, imports)
    functions.append(read_function(own, imports))
    text = "\n".join(line for lines in functions for line in lines)
    names = [name for plan in plans for name in class_names(plan) if name in text]
    lines = ["from typing import TYPE_CHECKING", ""]
    for module, found in imports.wire_imports():
        lines += import_lines(f"...wire.{module}", found)
    if " DEFAULT" in text:
        lines.append("from ..base import DEFAULT")
    lines += import_lines(f"..{module_name(message.name)}", sorted_names(names))
    lines += ["", "if TYPE_CHECKING:", "    from ...wire.native import i64"]
    return rendered(
        "reader.py.j2",
        head(f"Reads {message.name} in compiled code.", made_from, Style.NATIVE),
        imports="\n".join(lines),
        functions=[block(each) for each in functions],
    )


def package_source() -> str:
    """Returns the source of the subpackage's `__init__`."""
    return "\n".join(head("Reads the messages on the data path in compiled code.", ())) + "\n"
