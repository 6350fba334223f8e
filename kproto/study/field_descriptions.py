"""What fields are for: the sentences of the glossary."""

from __future__ import annotations

from functools import cache

from ..schema.glossary import load_glossary

__all__ = ["field_description"]


@cache
def field_description(message: str, struct: str, field: str) -> str:
    """What a field is for, in one sentence; "" where that is not known.

    Names are those of the definition; of a message's own fields `struct` is the message.
    """
    return load_glossary().field(message, struct, field) or ""
