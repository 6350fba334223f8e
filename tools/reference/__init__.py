"""Uses Kafka's own Java classes to check what kproto decodes and encodes.

`KafkaJavaProgram` runs a Java program on the jars of one release. Modules such as `comparison`,
`hostile` and `records` send it questions. `python -m tools.reference` runs the comparisons from the
terminal, and generates the golden vectors.
"""

from __future__ import annotations

from .classes import ReferenceUnavailableError
from .process import (
    Answer,
    JavaProgramOperation,
    KafkaJavaProgram,
    Outcome,
    ReferenceFailedError,
    question,
)

__all__ = [
    "Answer",
    "JavaProgramOperation",
    "KafkaJavaProgram",
    "Outcome",
    "ReferenceFailedError",
    "ReferenceUnavailableError",
    "question",
]
