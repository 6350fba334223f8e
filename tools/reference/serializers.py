"""Asks the Java program (`java/Serializers.java`) for the bytes of Kafka's serializers."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, TypeAlias
from uuid import UUID

from .process import (
    JavaProgramOperation,
    KafkaJavaProgram,
    Outcome,
    ReferenceFailedError,
    records_question,
)

__all__ = ["Kind", "serialize"]

Kind: TypeAlias = Literal["short", "int", "long", "uuid", "string"]
"""The serializer: ShortSerializer, IntegerSerializer, and so on."""


def serialize(
    judge: KafkaJavaProgram, wanted: Iterable[tuple[Kind, int | str | UUID]]
) -> list[bytes]:
    """Returns the bytes of each value by the serializer of its kind.

    Raises ReferenceFailedError.
    """
    lines = "\n".join(f"{kind} {_text(value)}" for kind, value in wanted)
    question = records_question(JavaProgramOperation.SERIALIZE, lines.encode())
    (answer,) = judge.ask([question])
    if answer.outcome is not Outcome.DONE:
        raise ReferenceFailedError(answer.data.decode())
    return [bytes.fromhex(line) for line in answer.data.decode().split("\n")[:-1]]


def _text(value: int | str | UUID) -> str:
    return value.encode().hex() if isinstance(value, str) else str(value)
