"""What fields are for: the sentences of the glossary, where `kproto.schema` brings one."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["about_field"]


@cache
def about_field(message: str, struct: str, field: str) -> str:
    """What a field is for, in one sentence; "" where that is not known.

    Names are those of the definition; of a message's own fields `struct` is the message.
    """
    glossary = _glossary()
    found = None if glossary is None else glossary.field(message, struct, field)
    return found or ""


@cache
def _glossary() -> Any:
    """The glossary of Kafka's own messages; None in a copy of the package that has none."""
    try:
        return import_module("..schema.glossary", __package__).load_glossary()
    except (ImportError, OSError):
        return None
