"""Converts names in message definitions to names of Python attributes, classes and modules.

A name gets a trailing underscore if it is a keyword, if it is a class name that would hide a
builtin, or if the generated code uses it for something else.
"""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Final

__all__ = ["attribute_name", "class_name", "module_name", "snake_case"]

#: Names of methods of message classes, which no field of a message may have.
MESSAGE_NAMES: Final = frozenset(
    {"copy", "decode", "decode_from", "encode", "encoded_pieces", "from_json", "size", "to_json"}
)

#: Names in every struct class and in its `__init__`, which no field may have.
STRUCT_NAMES: Final = frozenset({"copy", "list", "self", "string_list", "unknown_tagged_fields"})

#: Names that a generated module or package imports or defines, which no class may have.
MODULE_NAMES: Final = frozenset(
    {
        "UniformStructs",
        "Any",
        "Append",
        "BOOLS",
        "ClassVar",
        "Collection",
        "DEFAULT",
        "Iterable",
        "KeyedList",
        "LISTENERS",
        "MODULES",
        "Message",
        "PACKED",
        "RawTaggedField",
        "Request",
        "Response",
        "Self",
        "Struct",
        "UVARINT",
        "Uuid",
        "WireFault",
    }
)

#: Names in the package `kproto.messages`, which no generated module may have.
PACKAGE_NAMES: Final = frozenset({"base", "import_module"})

#: Words that must not be split at capitals: KRaft, and 2PC, which Kafka's definitions write 2Pc.
_WHOLE_WORDS: Final = re.compile(r"KRaft|2Pc")

_WORD = re.compile(r"[A-Z]+[0-9]*(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")


def snake_case(name: str) -> str:
    """Converts to snake_case: `ISRNodes` to `isr_nodes`, `KRaftVersion` to `kraft_version`."""
    parted = _WHOLE_WORDS.sub(lambda found: f"_{found[0].capitalize()}_", name)
    return "_".join(word.lower() for word in _WORD.findall(parted))


def attribute_name(name: str, *, of_message: bool) -> str:
    """Returns the name of a field's attribute.

    `of_message` is False for a field of a nested struct.
    """
    made = snake_case(name)
    reserved = MESSAGE_NAMES | STRUCT_NAMES if of_message else STRUCT_NAMES
    return made + "_" if keyword.iskeyword(made) or made in reserved else made


def class_name(name: str) -> str:
    """Returns the class name of a message or struct."""
    hidden = keyword.iskeyword(name) or hasattr(builtins, name) or name in MODULE_NAMES
    return name + "_" if hidden else name


def module_name(name: str) -> str:
    """Returns the module name of a message."""
    made = snake_case(name)
    return made + "_" if keyword.iskeyword(made) or made in PACKAGE_NAMES else made
