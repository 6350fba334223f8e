"""Which fields of a message carry a secret, and what is shown instead of one.

The fields are those that the generated classes never print. Where a message has any, the bytes
that could not be read, and those behind its end, are hidden too, as the secret may stand in them.
"""

from __future__ import annotations

import sys
from functools import lru_cache
from typing import Any, Final

from ..messages.base import Message, Struct
from ..schema.naming import class_name
from ..schema.secrets import ENVELOPES

__all__ = ["HIDDEN", "has_secrets", "secret_attributes", "secret_attributes_of"]

#: What stands in place of a secret.
HIDDEN: Final = "<hidden>"


def secret_attributes_of(cls: type[Message], struct: str) -> frozenset[str]:
    """The attributes of the struct with that class name, of a message, that carry a secret."""
    key: Any = cls  # which mypy takes for what its instances are: not hashable
    return _secrets_of(key, struct)


@lru_cache(maxsize=4096)
def _secrets_of(cls: Any, struct: str) -> frozenset[str]:
    made = vars(sys.modules[cls._generated().__module__]).get(struct)
    return frozenset() if made is None else secret_attributes(made)


def secret_attributes(made: type[Struct]) -> frozenset[str]:
    """The attributes of a generated class that carry a secret."""
    envelope = ENVELOPES.get(made.__name__)
    return made._SECRETS if envelope is None else made._SECRETS | {envelope}


def has_secrets(cls: type[Message]) -> bool:
    """Whether any version of the message has a field that carries a secret."""
    key: Any = cls
    return _has_secrets(key)


@lru_cache(maxsize=4096)
def _has_secrets(cls: Any) -> bool:
    spec = cls._definition()
    names = [spec.name, *(struct.name for struct in spec.structs())]
    return any(secret_attributes_of(cls, class_name(name)) for name in names)
