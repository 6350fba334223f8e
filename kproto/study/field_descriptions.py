"""Describes fields by the sentences of the glossary."""

from __future__ import annotations

from functools import cache

from ..schema.glossary import load_glossary

__all__ = ["field_description"]


@cache
def field_description(message: str, struct: str, field: str) -> str:
    """Returns the purpose of a field, in one sentence; "" if the glossary has none.

    Names are those of the definition. For a message's own fields, `struct` is the message.
    """
    return load_glossary().field(message, struct, field) or ""
