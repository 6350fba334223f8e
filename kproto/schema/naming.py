"""Converts names of the definitions to names in Python.

The definitions are input, so a name may collide: keywords, builtins and names that the generated
code needs get a trailing underscore.
"""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Final

__all__ = ["attribute_name", "class_name", "module_name", "snake_case"]

#: Names that a message class defines itself; a field of a message must not hide them.
MESSAGE_NAMES: Final = frozenset(
    {"copy", "decode", "decode_from", "encode", "encoded_pieces", "from_json", "size", "to_json"}
)

#: Names that every struct defines itself, and the names that its `__init__` needs.
STRUCT_NAMES: Final = frozenset({"copy", "list", "self", "string_list", "unknown_tagged_fields"})

#: Names that a generated module or package imports or defines; no class may have them.
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

#: The hand-written module of `kproto.messages`, and a function that a package calls.
PACKAGE_NAMES: Final = frozenset({"base", "import_module"})

#: Words that splitting at capitals would break (KRaft, and 2PC, which Kafka writes 2Pc).
_WHOLE_WORDS: Final = re.compile(r"KRaft|2Pc")

_WORD = re.compile(r"[A-Z]+[0-9]*(?![a-z])|[A-Z]?[a-z0-9]+|[0-9]+")


def snake_case(name: str) -> str:
    """Converts a name to snake_case: `ISRNodes` is `isr_nodes`, `KRaftVersion` `kraft_version`."""
    parted = _WHOLE_WORDS.sub(lambda found: f"_{found[0].capitalize()}_", name)
    return "_".join(word.lower() for word in _WORD.findall(parted))


def attribute_name(name: str, *, of_message: bool) -> str:
    """Returns the attribute for the field called `name`, of a message or of a struct inside it."""
    made = snake_case(name)
    reserved = MESSAGE_NAMES | STRUCT_NAMES if of_message else STRUCT_NAMES
    return made + "_" if keyword.iskeyword(made) or made in reserved else made


def class_name(name: str) -> str:
    """Returns the class of the message or struct called `name`."""
    hidden = keyword.iskeyword(name) or hasattr(builtins, name) or name in MODULE_NAMES
    return name + "_" if hidden else name


def module_name(name: str) -> str:
    """Returns the module of the message called `name`."""
    made = snake_case(name)
    return made + "_" if keyword.iskeyword(made) or made in PACKAGE_NAMES else made
