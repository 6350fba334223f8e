"""Finds the classes in a package of messages.

The package is Kafka's (`kproto.messages`), or one that `kproto-codegen` generated.
"""

from __future__ import annotations

from importlib import import_module
from typing import Final

from .. import messages
from ..messages.base import Message
from ..schema.naming import class_name

__all__ = ["KAFKA", "message_class"]

#: The name of the package of Kafka's messages.
KAFKA: Final = messages.__name__


def message_class(package: str, name: str) -> type[Message]:
    """Returns the class of the message `name` in the package called `package`."""
    found: type[Message] = getattr(import_module(package), class_name(name))
    return found
