"""Asks a Java program which texts match a regular expression of java.util.regex or re2j.

`java/Regexes.java` decodes the questions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Literal

from .process import (
    JavaProgramOperation,
    KafkaJavaProgram,
    Outcome,
    ReferenceFailedError,
    records_question,
)

__all__ = ["matches_in_java"]


def matches_in_java(
    judge: KafkaJavaProgram,
    dialect: Literal["java", "re2j"],
    expressions: Iterable[str],
    texts: Sequence[str],
) -> Iterator[list[bool] | None]:
    """Yields, for each expression, a list with True for each text that the expression matches.

    Yields None for an expression that Java refuses. java.util.regex finds a match anywhere in the
    text; re2j matches the whole text.
    """
    tail = "\t".join(["", *map(_hex, texts)])
    questions = (
        records_question(
            JavaProgramOperation.MATCH_REGEX, f"{dialect}\t{_hex(expression)}{tail}".encode()
        )
        for expression in expressions
    )
    for answer in judge.ask(questions):
        if answer.outcome is Outcome.FAILED:
            raise ReferenceFailedError(answer.data.decode())
        accepted = answer.outcome is Outcome.DONE
        yield [digit == ord("1") for digit in answer.data] if accepted else None


def _hex(text: str) -> str:
    return text.encode().hex()
