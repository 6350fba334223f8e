"""Describes each message, struct and field in a sentence, for generated docstrings and `study`.

Reads the sentences from `glossary.toml` in this package. Tests check that it is complete.
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
    """Sentences by name. Each is a line of ASCII that ends with a full stop.

    `fields` has a sentence for each field name. `overrides` has sentences by field name that apply
    only in "Message.Struct", in "Message.Message" (the message's own fields) or in "Message" (all
    structs of the message). The keys of `structs` are "Struct" or "Message.Struct".
    """

    fields: Mapping[str, str]
    overrides: Mapping[str, Mapping[str, str]]
    messages: Mapping[str, str]
    structs: Mapping[str, str]

    def field(self, message: str, struct: str, field: str) -> str | None:
        """Returns the sentence for a field; None if the glossary lacks the field or the message.

        The sentences are about Kafka's messages alone: a field of the same name in another message
        may have another meaning. `struct` is the name of the struct that has the field, or the name
        of the message for its own fields. An override for the struct takes precedence over an
        override for the message. If there is no override, returns the sentence in `fields`.
        """
        if message not in self.messages:
            return None
        for scope in (f"{message}.{struct}", message):
            text = self.overrides.get(scope, {}).get(field)
            if text is not None:
                return text
        return self.fields.get(field)

    def message(self, name: str) -> str | None:
        """Returns the sentence for a message; None if the glossary lacks it."""
        return self.messages.get(name)

    def struct(self, message: str, struct: str) -> str | None:
        """Returns the sentence for a struct of a message; None if the glossary lacks it."""
        if message not in self.messages:
            return None
        return self.structs.get(f"{message}.{struct}") or self.structs.get(struct)


@cache
def load_glossary() -> Glossary:
    """Returns the glossary of Kafka's messages; reads the file at the first call."""
    tables = tomllib.loads(read_data("glossary.toml"))
    return Glossary(
        fields=tables["fields"],
        overrides=tables["overrides"],
        messages=tables["messages"],
        structs=tables["structs"],
    )
