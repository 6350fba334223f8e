"""Asks the Java program (`java/Quotas.java`) for the measurements of Kafka's quotas."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from .process import Operation, Outcome, Reference, ReferenceFailedError, records_question

__all__ = ["Measured", "Taken", "measure"]


class Taken(NamedTuple):
    """The settings and the use of a quota; an event is a time in ms and an amount."""

    samples: int
    window_s: int
    limit: float
    events: list[tuple[int, int]]


class Measured(NamedTuple):
    """The state after an event: rate per second, its window in ms, tokens of the token bucket."""

    rate: float
    span_ms: int
    tokens: float


def measure(judge: Reference, wanted: Iterable[Taken]) -> Iterator[list[Measured]]:
    """Yields Kafka's measurements after each event of each quota. Raises ReferenceFailedError."""
    questions = (records_question(Operation.MEASURE, _lines(taken).encode()) for taken in wanted)
    for answer in judge.ask(questions):
        if answer.outcome is not Outcome.DONE:
            raise ReferenceFailedError(answer.data.decode())
        lines = (line.split() for line in answer.data.decode().splitlines())
        yield [Measured(float(rate), int(span), float(tokens)) for rate, span, tokens in lines]


def _lines(taken: Taken) -> str:
    head = f"{taken.samples} {taken.window_s} {taken.limit}"
    return "\n".join([head, *(f"{time} {value}" for time, value in taken.events)])
