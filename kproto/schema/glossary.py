"""The meaning of each message, struct and field name in sentences, for docstrings and `study`.

Reads `glossary.toml` in this package, and orders its entries from narrow to general. Does not know
definitions, versions or the form of a docstring. Tests check that the glossary is complete.
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
        """Returns the meaning of a field; None if the glossary does not know its name.

        `struct` is the name of the field's struct; for the message's own fields it is the message's
        name. The narrowest entry wins: the struct's, then the message's, then the general one.
        """
        for scope in (f"{message}.{struct}", message):
            text = self.overrides.get(scope, {}).get(field)
            if text is not None:
                return text
        return self.fields.get(field)

    def message(self, name: str) -> str | None:
        """Returns the purpose of a message; None if the glossary does not know it."""
        return self.messages.get(name)

    def struct(self, message: str, struct: str) -> str | None:
        """Returns the content of a struct of a message; None for an unknown name."""
        return self.structs.get(f"{message}.{struct}") or self.structs.get(struct)


@cache
def load_glossary() -> Glossary:
    """Returns the glossary of Kafka's own messages; reads the file once."""
    tables = tomllib.loads(read_data("glossary.toml"))
    return Glossary(
        fields=tables["fields"],
        overrides=tables["overrides"],
        messages=tables["messages"],
        structs=tables["structs"],
    )
