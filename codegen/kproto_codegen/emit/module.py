"""Emits the module of a message: its imports, classes and functions.

`classes` and `functions` emit the parts; the template `message.py.j2` sets the order of the parts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

from kproto.schema.naming import class_name, module_name
from kproto.schema.specs import MessageSpec
from kproto.schema.versions import Versions

from .classes import class_names, class_parts, quoted_tuple
from .code import indent
from .functions import (
    default_functions,
    read_method,
    struct_functions,
    tags_functions,
    write_method,
)
from .heads import head
from .imports import Imports, import_lines, sorted_names
from .kafka_messages import DATA_PATH
from .plan import StructPlan, Style, plan_structs
from .rendering import block, rendered

__all__ = ["BASES", "RuntimePackage", "module_source"]

#: The base class by message type; it is `Message` for all other types.
BASES: Final = {"request": "Request", "response": "Response"}


@dataclass(frozen=True, slots=True)
class RuntimePackage:
    """The package from which generated code imports its runtime (`wire`, `messages.base`).

    With `relative`, the generated package is inside the runtime package, and has relative imports.
    """

    name: str = "kproto"
    relative: bool = False

    @property
    def root(self) -> str:
        """Returns the prefix of the runtime's subpackages in an import: `..` or `kproto.`."""
        return ".." if self.relative else f"{self.name}."

    @property
    def base_module(self) -> str:
        """Returns the name under which generated code imports the module of the base classes."""
        return ".base" if self.relative else f"{self.name}.messages.base"


def module_source(
    message: MessageSpec,
    messages: Sequence[MessageSpec],
    runtime: RuntimePackage,
    secrets: Collection[str],
    made_from: Sequence[str],
) -> str:
    """Returns the source of the module of `message`; `messages` are all messages of the package.

    `secrets` are the names of fields that the repr hides. `made_from` are the names of the files
    with the definition.
    """
    # Only in `kproto.messages`, because other packages may use the same names for other messages.
    style = Style.STRAIGHT if message.name in DATA_PATH and runtime.relative else Style.BRANCHING
    plans = plan_structs(message, style)
    imports = Imports()
    *inner, own = plans
    functions = []
    for plan in inner:
        if plan.versions:  # a struct that no version uses is never read or written
            functions += struct_functions(plan, imports)
    functions += tags_functions(own, imports)
    read, write = read_method(own, imports), write_method(own, imports)
    functions += default_functions(inner, imports)
    response = _response_to(message, messages)
    structs = [class_parts(message, plan, secrets, imports) for plan in inner]
    whole = class_parts(message, own, secrets, imports) | {
        "base": _base(message, response),
        "constants": _constants(message),
        "read": block(read, inside=True),
        "write": block(write, inside=True),
    }
    return rendered(
        "message.py.j2",
        head(_about(message), made_from, style),
        imports="\n".join(_import_lines(message, plans, response, runtime, imports)),
        exports=sorted(name for plan in plans for name in class_names(plan)),
        shapes=imports.shapes(),
        structs=structs,
        message=whole,
        functions=[block(lines) for lines in functions],
        is_compiled=style is Style.STRAIGHT,
    )


def _about(message: MessageSpec) -> str:
    key = "" if message.api_key is None else f", api key {message.api_key}"
    return f"{message.name} ({message.type}{key})."


def _response_to(message: MessageSpec, messages: Sequence[MessageSpec]) -> str | None:
    """Returns the name of the response to a request; None if there is none."""
    if message.type != "request":
        return None
    expected = ("response", message.api_key, message.module)
    found = (other for other in messages if (other.type, other.api_key, other.module) == expected)
    return next((other.name for other in found), None)


def _base(message: MessageSpec, response: str | None) -> str:
    base = BASES.get(message.type, "Message")
    if base != "Request":
        return base
    return f'Request["{class_name(response)}"]' if response else "Request[Response]"


def _constants(message: MessageSpec) -> list[str]:
    flexible = message.flexible_versions.intersect(message.valid_versions)
    lines = [] if message.api_key is None else [f"API_KEY = {message.api_key}"]
    lines += [
        f"VALID_VERSIONS = {_range(message.valid_versions)}",
        f"FLEXIBLE_VERSIONS = {_range(flexible)}",
        f"LATEST_STABLE = {message.latest_stable}",
    ]
    if message.type == "request":
        lines.append(f"LISTENERS = {quoted_tuple(message.listeners)}")
    return lines


def _range(versions: Versions) -> str:
    if versions.empty:
        return "range(0)"
    return f"range({versions.lowest}, {versions.highest + 1})"


def _import_lines(
    message: MessageSpec,
    plans: Sequence[StructPlan],
    response: str | None,
    runtime: RuntimePackage,
    imports: Imports,
) -> list[str]:
    *inner, _ = plans
    fields = [field for plan in plans for field in plan.fields]
    abstract = {
        "Collection": any(plan.versions for plan in inner),
        "Iterable": any(field.spec.is_array for field in fields),
    }
    base = {
        "Struct": bool(inner),
        BASES.get(message.type, "Message"): True,
        "DEFAULT": any(field.null_is_not_default or field.lazy for field in fields),
        "KeyedList": any(plan.keys for plan in inner),
        "PACKED": any(field.packed for field in fields),
        "number_list": any(field.packed for field in fields),
        "string_list": any(field.of_strings for field in fields),
    }
    if message.type == "request" and response is None:
        base["Response"] = True
    if plans[-1].style is Style.STRAIGHT:
        imports.wire("compiled", "__compiled__")
        base["use_compiled_code"] = True
    lines = []
    if imports.shapes():
        lines.append("import struct")
    if any(abstract.values()):
        lines += import_lines("collections.abc", _used(abstract))
    if imports.index:
        lines.append("from operator import index")
    typing = {
        "TYPE_CHECKING": response is not None,
        "Any": any(field.packed for field in fields),
        "Self": True,
    }
    lines.append(f"from typing import {', '.join(_used(typing))}")
    lines.append("")
    wire = [(f"{runtime.root}wire.{module}", names) for module, names in imports.wire_imports()]
    own = (runtime.base_module, sorted_names(_used(base)))
    for module, names in [*wire, own] if runtime.relative else [own, *wire]:
        lines += import_lines(module, names)
    if response:
        known = import_lines(f".{module_name(response)}", [class_name(response)], margin=4)
        lines += ["", "if TYPE_CHECKING:", *indent(known)]
    return lines


def _used(names: dict[str, bool]) -> list[str]:
    return [name for name, used in names.items() if used]
