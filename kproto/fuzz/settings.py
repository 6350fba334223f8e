"""Defines the limits of a run against a command."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Final, Self

from ..wire.errors import ConfigurationError

__all__ = ["FuzzSettings"]

#: The timeouts of a judge are at least this long, in seconds. A busy machine may pause a JVM for
#: several seconds.
_PATIENCE_S: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FuzzSettings:
    """The limits of a run against a command.

    Raises ConfigurationError for a limit that is not positive.
    """

    #: Maximum seconds from the start of the command to its first answer. A JVM needs several
    #: seconds.
    start_timeout_s: float = 30.0
    #: Maximum seconds from an answer to the next answer. A codec needs microseconds, but a shared
    #: machine may pause.
    answer_timeout_s: float = 5.0
    #: How many seconds to wait after the timeout of an answer, to distinguish a late answer from a
    #: missing answer.
    late_s: float = 5.0
    #: How many cases are sent before their answers are read. A higher number saves time. If the
    #: command ends, all unanswered cases are sent again one by one.
    at_once: int = 64
    #: Maximum length of an answer's line in bytes. The longest right answer has about two
    #: megabytes.
    max_line_bytes: int = 16_777_216
    #: Maximum number of lines that are not answers, until the cases that were sent at once are
    #: answered. If the command writes more such lines, it is restarted.
    max_garbage: int = 100
    #: Maximum number of restarts of the command. A command that needs more restarts probably ends
    #: at each case.
    max_restarts: int = 200
    #: If the command never answered after this many starts, the run ends.
    max_silent_starts: int = 3
    #: Maximum number of findings. Later faults of other causes are grouped by kind and operation.
    max_findings: int = 300
    #: Maximum number of cases that are sent to shrink the example of a finding.
    shrink_attempts: int = 400
    #: Shrinking stops after this number of cases that end in a hang or a crash, because each of
    #: them takes a timeout or a restart.
    shrink_waits: int = 12

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if not value > 0:
                raise ConfigurationError(f"{field.name} is {value}: it must be above 0")

    def of_a_judge(self) -> Self:
        """Returns a copy with longer timeouts, because a judge is not tested and may be slow."""
        return replace(
            self,
            start_timeout_s=max(self.start_timeout_s, _PATIENCE_S),
            answer_timeout_s=max(self.answer_timeout_s, _PATIENCE_S),
        )
