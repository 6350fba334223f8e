"""Finds the fields of generated classes that carry a secret.

A field carries a secret if the repr of its class hides it, or if it is the encoded message inside
an Envelope. If a message class has such a field, the unreadable bytes of a message and the bytes
after its end are hidden too, because they may contain the secret.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, Final

from ..messages.base import Message, Struct
from ..schema.naming import attribute_name, class_name
from ..schema.secrets import ENVELOPES

__all__ = ["HIDDEN", "has_secrets", "secret_attributes", "secret_attributes_of", "secret_fields"]

#: The text that replaces a secret.
HIDDEN: Final = "<hidden>"


def secret_attributes_of(cls: type[Message], struct: str) -> frozenset[str]:
    """Returns the secret attributes of the class called `struct` in the module of a message."""
    key: Any = cls  # mypy takes the class for unhashable, because its instances are
    return _secrets_of(key, struct)


@lru_cache(maxsize=4096)
def _secrets_of(cls: Any, struct: str) -> frozenset[str]:
    cls = vars(sys.modules[cls._generated().__module__]).get(struct)
    return frozenset() if cls is None else secret_attributes(cls)


def secret_attributes(cls: type[Struct]) -> frozenset[str]:
    """Returns the secret attributes of a generated message or struct class."""
    envelope = ENVELOPES.get(cls.__name__)
    return cls._SECRETS if envelope is None else cls._SECRETS | {envelope}


def secret_fields(cls: type[Message]) -> frozenset[tuple[str, str]]:
    """Returns the fields of a message that carry a secret, as pairs of message and field name."""
    spec = cls._definition()
    holders = [(spec.name, spec.fields)]
    holders += [(struct.name, struct.fields) for struct in spec.structs()]
    return frozenset(
        (spec.name, field.name)
        for name, fields in holders
        for field in fields
        if attribute_name(field.name, of_message=name == spec.name)
        in secret_attributes_of(cls, class_name(name))
    )


def has_secrets(cls: type[Message]) -> bool:
    """Returns True if the message, in any version, has a field that carries a secret."""
    key: Any = cls
    return _has_secrets(key)


@lru_cache(maxsize=4096)
def _has_secrets(cls: Any) -> bool:
    spec = cls._definition()
    names = [spec.name, *(struct.name for struct in spec.structs())]
    return any(secret_attributes_of(cls, class_name(name)) for name in names)
