"""Finds definitions and classes in a package of messages.

The package is Kafka's (`kproto.messages`), or one that `kproto-codegen` generated.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType
from typing import Final

from .. import messages
from ..messages.base import Message
from ..schema.definitions import Definitions, definitions_of
from ..schema.naming import class_name
from ..wire.errors import ConfigurationError

__all__ = ["KAFKA", "definitions_in", "message_class"]

#: The name of the package of Kafka's messages.
KAFKA: Final = messages.__name__


def definitions_in(package: ModuleType) -> Definitions:
    """Returns the definitions of a package of messages.

    Raises ConfigurationError if `package` is not a generated package.
    """
    if not isinstance(getattr(package, "MODULES", None), dict):
        raise ConfigurationError(
            f"{package.__name__} is no package of messages, as kproto-codegen generates them"
        )
    return definitions_of(f"{package.__name__}.base")


def message_class(package: str, name: str) -> type[Message]:
    """Returns the class of the message `name` in the package called `package`."""
    found: type[Message] = getattr(import_module(package), class_name(name))
    return found
