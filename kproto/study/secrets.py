"""Which fields of a message carry a secret, and what is shown instead of one.

The fields are those that the generated classes never print. Where a message has any, the bytes
that could not be read, and those behind its end, are hidden too, as the secret may stand in them.
"""

from __future__ import annotations

import sys
from typing import Final

from ..messages.base import Message
from ..schema.layout import StructLayout

__all__ = ["HIDDEN", "has_secrets", "secrets_of"]

#: Fields that hold whole requests and responses of others, which may carry secrets.
_ENVELOPES: Final = {"EnvelopeRequest": "request_data", "EnvelopeResponse": "response_data"}

#: What stands in place of a secret.
HIDDEN: Final = "<hidden>"


def secrets_of(cls: type[Message], struct: str) -> frozenset[str]:
    """The attributes of the struct with that class name, of a message, that carry a secret."""
    made = vars(sys.modules[cls._generated().__module__]).get(struct)
    found: frozenset[str] = getattr(made, "_SECRETS", frozenset())
    return found | {_ENVELOPES[struct]} if struct in _ENVELOPES else found


def has_secrets(cls: type[Message], shape: StructLayout) -> bool:
    """Whether the message, or a struct inside it, has a field that carries a secret."""
    if secrets_of(cls, shape.class_name):
        return True
    inner = [(field.type.element or field.type).struct for field in shape.all_fields()]
    return any(has_secrets(cls, struct) for struct in inner if struct is not None)
