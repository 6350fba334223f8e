"""Defines the limits of a run, each with its reason."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final, Self

from ..wire.errors import ConfigurationError

__all__ = ["FuzzSettings"]

#: A judge that takes longer is hung. A busy machine has paused a JVM for more than five seconds.
_PATIENCE_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzSettings:
    """Limits a run against a command. Raises ConfigurationError for a limit that is not
    positive.
    """

    #: From the start of the command to its first answer: a JVM and its classes take seconds.
    start_timeout_s: float = 30.0
    #: From one answer to the next. A codec answers in microseconds; a shared machine may pause.
    answer_timeout_s: float = 5.0
    #: How much longer to wait for an answer, to distinguish a late answer from a missing one.
    late_s: float = 5.0
    #: Questions written before their answers are read: more save time; with fewer, fewer questions
    #: are asked again one by one if the command ends in between.
    at_once: int = 64
    #: Longest line of an answer, in bytes: the longest right one takes about two megabytes.
    max_line_bytes: int = 16_777_216
    #: Lines that are no answers, in one batch, before the command is ended.
    max_garbage: int = 100
    #: How often the command is restarted. A command that ends at every question is recognised by
    #: then.
    max_restarts: int = 200
    #: Starts in a row without a single answer, after which the run ends.
    max_silent_starts: int = 3
    #: Most groups of findings; further findings are counted in one more group.
    max_findings: int = 300
    #: Most questions to shrink one finding.
    shrink_attempts: int = 400
    #: Questions among them that may end in a hang or a crash, because each takes a timeout or a
    #: start.
    shrink_waits: int = 12

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ConfigurationError(f"{field.name} is {value}: it must be above 0")

    def of_a_judge(self) -> Self:
        """Returns the settings with more time: a judge is not under test, and may be slow."""
        return replace(
            self,
            start_timeout_s=max(self.start_timeout_s, _PATIENCE_S),
            answer_timeout_s=max(self.answer_timeout_s, _PATIENCE_S),
        )
