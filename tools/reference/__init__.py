"""Uses Kafka's own Java classes to check what kproto decodes and encodes.

`Reference` runs a Java program on the jars of one release. `comparison`, `hostile` and `vectors`
send it questions. `python -m tools.reference` runs them from the terminal.
"""

from __future__ import annotations

from .classes import ReferenceUnavailableError
from .process import Answer, Operation, Outcome, Reference, ReferenceFailedError, question

__all__ = [
    "Answer",
    "Operation",
    "Outcome",
    "Reference",
    "ReferenceFailedError",
    "ReferenceUnavailableError",
    "question",
]
