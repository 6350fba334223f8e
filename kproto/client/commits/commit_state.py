"""What is done and not committed yet, when the next commit is due, and what an answer means.

Sans-IO: times are passed in, in seconds of the client's clock. `committer` sends.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping
from enum import Enum
from typing import Final, NamedTuple

from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..core.retry import Remedy, remedy_of_code
from ..metadata.cluster import TopicPartition
from .incomplete_offsets import is_told
from .membership import MEMBER_ERRORS
from .requests import ToCommit

__all__ = ["RENEW_S", "CommitResult", "CommitState", "Meaning", "judged", "meaning_of"]

_NEVER: Final = float("inf")

#: An offset that has not changed for so long, in seconds, is committed again: a group without
#: members loses its offsets some time after they were committed (offsets.retention.minutes, at
#: least one, a week by default), though somebody reads by them.
RENEW_S: Final = 3_600.0


class Meaning(Enum):
    """What an error code of a commit means for it."""

    AGAIN = "the same again, after a wait"
    SOON = "the same again, as long as a topic may be unknown that was just created"
    REFUSED = "it is not this member's to commit: the member acts on it"
    FAILED = "nothing mends it"


#: Where Kafka's table of all errors says otherwise, or less. The last two lines are of what the
#: coordinator knows of topics, which lags behind.
_MEANINGS: Final = {
    code_of(name): meaning
    for name, meaning in {
        **dict.fromkeys(MEMBER_ERRORS, Meaning.REFUSED),
        "UNKNOWN_TOPIC_OR_PARTITION": Meaning.SOON,
        "UNKNOWN_TOPIC_ID": Meaning.SOON,  # KIP-516
    }.items()
}


def meaning_of(code: int) -> Meaning:
    """What an error code of a commit means."""
    known = _MEANINGS.get(code)
    if known is not None:
        return known
    return Meaning.FAILED if remedy_of_code(code) is Remedy.FAIL else Meaning.AGAIN


class CommitResult(NamedTuple):
    """The partitions of a commit, by what became of them: committed, or with their errors."""

    committed: list[TopicPartition]
    again: dict[TopicPartition, BrokerResponseError]
    soon: dict[TopicPartition, BrokerResponseError]
    refused: dict[TopicPartition, BrokerResponseError]
    failed: dict[TopicPartition, BrokerResponseError]


def judged(answers: Mapping[TopicPartition, BrokerResponseError | None]) -> CommitResult:
    """What is to be done about the answers to a commit."""
    found = CommitResult([], {}, {}, {}, {})
    by_meaning = {
        Meaning.AGAIN: found.again,
        Meaning.SOON: found.soon,
        Meaning.REFUSED: found.refused,
        Meaning.FAILED: found.failed,
    }
    for tp, error in answers.items():
        if error is None:
            found.committed.append(tp)
        else:
            by_meaning[meaning_of(error.code)][tp] = error
    return found


class CommitState:
    """What was committed last, by partition, and where those began that have no commit.

    `next_at` is when the next commit is due that the consumer makes by itself.
    """

    def __init__(self, interval_ms: int) -> None:
        self._interval_s = interval_ms / 1000
        self._last: dict[TopicPartition, tuple[ToCommit, float]] = {}  # and when
        self._began: dict[TopicPartition, ToCommit] = {}
        self.next_at = _NEVER

    def begin(self, now: float) -> None:
        """Let the time to the next commit run."""
        self.next_at = now + self._interval_s

    def rest(self) -> None:
        """Nothing is to be committed by itself."""
        self.next_at = _NEVER

    def due(
        self,
        done: Mapping[TopicPartition, ToCommit],
        now: float,
        unchanged: Container[TopicPartition] = (),
    ) -> dict[TopicPartition, ToCommit]:
        """Returns those of `done` that were not committed yet, or were long ago, then unchanged.

        In `unchanged` partitions nothing more was processed, whatever was committed.
        """
        found = {}
        for tp, its in done.items():
            last, at = self._last.get(tp, (None, now))
            if last is None:
                if tp not in unchanged:
                    found[tp] = its
            elif tp in unchanged or _is_same(last, its):
                if now - at >= RENEW_S:
                    found[tp] = last._replace(topic_id=its.topic_id)
            else:
                found[tp] = its
        return found

    def began(self, tp: TopicPartition, its: ToCommit) -> None:
        """A partition without a commit began there, and that is to be committed."""
        self._began[tp] = its

    def begun(self, tps: Container[TopicPartition]) -> dict[TopicPartition, ToCommit]:
        """Where those of `tps` began of which that is still to be committed."""
        return {tp: its for tp, its in self._began.items() if tp in tps and tp not in self._last}

    def known(self, offsets: Mapping[TopicPartition, ToCommit], now: float) -> None:
        """The group had committed these; what was committed here meanwhile is newer."""
        for tp, its in offsets.items():
            self._last.setdefault(tp, (its, now))

    def committed(self, offsets: Mapping[TopicPartition, ToCommit], now: float) -> None:
        """The broker has these, as it said at `now`."""
        for tp, its in offsets.items():
            self._last[tp] = (its, now)
            self._began.pop(tp, None)

    def forget(self, tps: Iterable[TopicPartition]) -> None:
        """Others may commit these from now on."""
        for tp in tps:
            self._last.pop(tp, None)
            self._began.pop(tp, None)


def _is_same(last: ToCommit, its: ToCommit) -> bool:
    """Whether nothing else is to be told; what the user has told beside an offset stays."""
    tells = is_told(its.metadata) or is_told(last.metadata)
    says_else = tells and its.metadata != last.metadata
    return (last.offset, last.topic_id) == (its.offset, its.topic_id) and not says_else
