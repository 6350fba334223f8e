"""Uses Kafka's own Java classes to judge what kproto reads and writes.

`Reference` runs a small program of ours on the jars of one release; `comparison`, `hostile` and
`vectors` ask it questions. `python -m tools.reference` does the same from the terminal.
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
