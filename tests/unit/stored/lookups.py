"""Looks up classes, record types and ids for the tests of stored records."""

from __future__ import annotations

from kproto import messages as generated
from kproto.messages.base import Message
from kproto.schema.definitions import union
from kproto.wire.uuid import Uuid


def uuid_of(high: int, low: int) -> Uuid:
    return Uuid(high.to_bytes(8, "big") + low.to_bytes(8, "big"))


def record_types_of(kind: str, module: str, suffix: str = "") -> dict[int | None, str]:
    return {
        spec.api_key: name.removesuffix(suffix)
        for name, spec in union().items()
        if spec.type == kind and spec.module == module
    }


def class_of(name: str) -> type[Message]:
    found: type[Message] = getattr(generated, name)
    return found
