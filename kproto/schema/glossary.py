"""What each message, struct and field name means, in sentences: for docstrings and for study.

Owns: reading `glossary.toml`, which lies beside this file, and the order in which its entries
answer. Must not know: definitions, versions or how a docstring is laid out. Whether the glossary
is complete is a matter for its tests.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache

from .data_files import read_data

__all__ = ["Glossary", "load_glossary"]


@dataclass(frozen=True, slots=True)
class Glossary:
    """Sentences by name. Each is one line of plain ASCII that ends with a full stop.

    `overrides` maps "Message.Struct", "Message.Message" (the message's own fields) or "Message"
    (every struct of the message) to sentences by field name. `structs` has both "Struct" and
    "Message.Struct" as keys.
    """

    fields: Mapping[str, str]
    overrides: Mapping[str, Mapping[str, str]]
    messages: Mapping[str, str]
    structs: Mapping[str, str]

    def field(self, message: str, struct: str, field: str) -> str | None:
        """What a field means, or None when the glossary does not know its name.

        `struct` is the name of the struct that has the field; for the message's own fields it is
        the message's name. The narrowest entry answers: the struct's, the message's, the general.
        """
        for scope in (f"{message}.{struct}", message):
            text = self.overrides.get(scope, {}).get(field)
            if text is not None:
                return text
        return self.fields.get(field)

    def message(self, name: str) -> str | None:
        """What a message is for, or None when the glossary does not know it."""
        return self.messages.get(name)

    def struct(self, message: str, struct: str) -> str | None:
        """What a struct of a message holds, or None when the glossary does not know its name."""
        return self.structs.get(f"{message}.{struct}") or self.structs.get(struct)


@cache
def load_glossary() -> Glossary:
    """Returns the glossary of Kafka's own messages. It is read once and shared."""
    tables = tomllib.loads(read_data("glossary.toml"))
    return Glossary(
        fields=tables["fields"],
        overrides=tables["overrides"],
        messages=tables["messages"],
        structs=tables["structs"],
    )
