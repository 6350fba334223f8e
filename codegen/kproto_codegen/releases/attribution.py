"""Decides which imported definitions are Kafka's own, and which are half of a request's pair.

The sentences (`about`) of Kafka's own definitions are Kafka's text, and are not imported. Those of
another protocol belong to its author.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

from kproto.schema.glossary import load_glossary
from kproto.schema.specs import MessageSpec

__all__ = ["is_half", "is_kafkas"]

#: The first words of the licence comment in each of Kafka's definition files.
_LICENCE: Final = "Licensed to the Apache Software Foundation"

#: Maximum number of characters in front of the definition in which the licence is looked for.
_HEAD_CHARS: Final = 2_000


def is_kafkas(message: MessageSpec, text: str) -> bool:
    """Returns True if the definition with this text is one of Kafka's own.

    The glossary describes the message, or the file begins with Kafka's licence comment. The second
    case finds the messages of Kafka releases that the glossary does not have yet.
    """
    head = text[:_HEAD_CHARS].partition("{")[0]
    return load_glossary().message(message.name) is not None or _LICENCE in head


def is_half(message: MessageSpec, unread: Collection[tuple[str, str]]) -> bool:
    """Returns True if `message` is the request or response of a message in `unread`.

    `unread` are the messages that could not be read, as (module, name).
    """
    base = message.name.removesuffix("Request").removesuffix("Response")
    partner = {"request": f"{base}Response", "response": f"{base}Request"}.get(message.type)
    return (message.module, partner) in unread
