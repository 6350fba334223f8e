"""Describes fields and values of messages: Kafka's by the tables of kproto, others by themselves.

The tables know the names of Kafka's messages alone. A message of another package may have the same
name, so the class of a message decides which descriptions apply.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from ..messages.base import Message
from ..protocol.message_classes import MessageClasses, is_kafka_message
from ..schema.layout import LayoutField
from .field_descriptions import field_description
from .value_meanings import api_name, meaning_of, own_meaning_of

__all__ = ["KAFKA_MEANINGS", "OWN_MEANINGS", "Meanings", "header_meanings", "meanings_for"]


class Meanings(NamedTuple):
    """Two functions that describe the fields and the values of a message; "" for no description.

    The arguments of `field` are the names of the message and of the struct, and the field. The
    arguments of `value` are the names of the message, the struct and the attribute, and the value.
    """

    field: Callable[[str, str, LayoutField], str]
    value: Callable[[str, str, str, object], str]


#: The sentences of the glossary, and the meanings of Kafka's values, such as error codes.
KAFKA_MEANINGS: Final = Meanings(
    lambda message, struct, field: field_description(message, struct, field.name), meaning_of
)

#: The `about` of the definition, and only times, durations and sizes.
OWN_MEANINGS: Final = Meanings(lambda _message, _struct, field: field.spec.about, own_meaning_of)


def header_meanings(classes: MessageClasses) -> Meanings:
    """Returns the meanings for the header of a request whose api key is one of `classes`."""

    def value(message: str, struct: str, field: str, value: object) -> str:
        if field == "request_api_key" and isinstance(value, int):
            return api_name(value, classes)
        return meaning_of(message, struct, field, value)

    return KAFKA_MEANINGS._replace(value=value)


def meanings_for(cls: type[Message]) -> Meanings:
    """Returns KAFKA_MEANINGS for a message of Kafka, and OWN_MEANINGS for any other message."""
    return KAFKA_MEANINGS if is_kafka_message(cls) else OWN_MEANINGS
