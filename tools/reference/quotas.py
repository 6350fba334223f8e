"""Asks the Java program (`java/Quotas.java`) for the measurements of Kafka's quotas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .process import (
    JavaProgramOperation,
    KafkaJavaProgram,
    Outcome,
    ReferenceFailedError,
    records_question,
)

__all__ = ["QuotaMeasurement", "QuotaUse", "measure"]


class QuotaUse(NamedTuple):
    """The settings of a quota, and its use: each event is a time in ms and an amount."""

    samples: int
    window_s: int
    limit: float
    events: list[tuple[int, int]]


class QuotaMeasurement(NamedTuple):
    """The state after an event: the rate per second, and the tokens of the token bucket.

    `span_ms` is the time over which the rate is measured.
    """

    rate: float
    span_ms: int
    tokens: float


def measure(
    judge: KafkaJavaProgram, wanted: Iterable[QuotaUse]
) -> Iterator[list[QuotaMeasurement]]:
    """Yields Kafka's measurements after each event of each quota. Raises ReferenceFailedError."""
    questions = (
        records_question(JavaProgramOperation.MEASURE, _lines(taken).encode()) for taken in wanted
    )
    for answer in judge.ask(questions):
        if answer.outcome is not Outcome.DONE:
            raise ReferenceFailedError(answer.data.decode())
        lines = (line.split() for line in answer.data.decode().splitlines())
        yield [
            QuotaMeasurement(float(rate), int(span), float(tokens)) for rate, span, tokens in lines
        ]


def _lines(taken: QuotaUse) -> str:
    head = f"{taken.samples} {taken.window_s} {taken.limit}"
    return "\n".join([head, *(f"{time} {value}" for time, value in taken.events)])
