"""Looks up the glossary's sentences for fields, and caches them."""

from __future__ import annotations

from functools import cache

from ..schema.glossary import load_glossary

__all__ = ["field_description"]


@cache
def field_description(message: str, struct: str, field: str) -> str:
    """Returns the glossary's sentence for a field; "" if there is none.

    The names are those of the definition. For a field of the message itself, `struct` is the
    name of the message.
    """
    return load_glossary().field(message, struct, field) or ""
