"""`FetchSession`: what one broker remembers of this consumer's partitions (KIP-227). Without I/O.

A fetch that opens a session names every partition; those behind it name what has changed, and the
broker answers for partitions that have something new. The client goes by what it has said: a
partition is named again as soon as what is asked of it differs from that. So what was dropped here,
for whatever reason, needs no thought: it comes again from the offset that the broker remembers, or
from the one that is then sent. The rules are those of Kafka's FetchSessionHandler.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final, NamedTuple

from ...protocol.error_codes import code_of
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition

__all__ = [
    "BY_TOPIC_ID",
    "CLOSING",
    "FetchSession",
    "ForgottenPartition",
    "SessionFetch",
    "WantedPartition",
    "without_session",
]

#: Before this version of Fetch there is none.
_FIRST_VERSION: Final = 7

#: From this version on, Fetch names topics by id alone (KIP-516), and so does a session that was
#: opened by it.
BY_TOPIC_ID: Final = 13

_NO_SESSION: Final = 0

#: The session epoch of a fetch without a session, and of one that closes it.
CLOSING: Final = -1
_OPENING: Final = 0
_LAST_EPOCH: Final = 0x7FFFFFFF

_NOT_FOUND: Final = code_of("FETCH_SESSION_ID_NOT_FOUND")
_MENDED_BY_ANOTHER: Final = (_NOT_FOUND, code_of("INVALID_FETCH_SESSION_EPOCH"))


class WantedPartition(NamedTuple):
    """What is asked of one partition, with the id of its topic. -1 for an epoch that is unknown."""

    topic_id: Uuid
    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_epoch: int = -1


class ForgottenPartition(NamedTuple):
    """A partition that the session need not hold any more."""

    topic: str
    topic_id: Uuid
    partition: int


class SessionFetch(NamedTuple):
    """What a fetch says: of its session, which partitions it names, and which may be forgotten."""

    session_id: int
    epoch: int
    named: Mapping[TopicPartition, WantedPartition]
    forgotten: list[ForgottenPartition]

    @property
    def is_full(self) -> bool:
        """Whether every partition is to be answered."""
        return self.epoch in (CLOSING, _OPENING)


def without_session(wanted: Mapping[TopicPartition, WantedPartition]) -> SessionFetch:
    """A fetch that no broker remembers."""
    return SessionFetch(_NO_SESSION, CLOSING, wanted, [])


class FetchSession:
    """The session with one broker: each `ask` is followed by `answered`, or by `lost`.

    `is_used` False is for who wants none.
    """

    __slots__ = ("_asked", "_by_id", "_epoch", "_held", "_id", "_is_used")

    def __init__(self, *, is_used: bool = True) -> None:
        self._is_used = is_used
        self._id = _NO_SESSION
        self._epoch = _OPENING  # of the next fetch
        self._held: dict[TopicPartition, WantedPartition] = {}
        self._by_id = False
        self._asked: SessionFetch | None = None  # is under way

    def ask(self, wanted: Mapping[TopicPartition, WantedPartition], version: int) -> SessionFetch:
        """How to ask for all of `wanted` in that version of Fetch."""
        if self._asked is not None:
            self.lost()
        if not self._is_used or version < _FIRST_VERSION:
            asked = without_session(wanted)
        else:
            by_id = version >= BY_TOPIC_ID
            if self._by_id != by_id:
                self._begin_again()
                self._by_id = by_id
            if self._epoch == _OPENING:
                asked = SessionFetch(self._id, _OPENING, wanted, [])
            else:
                asked = self._changes(wanted)
            self._held = dict(wanted)
        self._asked = asked
        return asked

    def _changes(self, wanted: Mapping[TopicPartition, WantedPartition]) -> SessionFetch:
        held = self._held
        named = {tp: each for tp, each in wanted.items() if held.get(tp) != each}
        forgotten: list[ForgottenPartition] = []
        if len(wanted) - len(named) != len(held) or named:
            for (topic, partition), each in held.items():
                now = wanted.get((topic, partition))
                # By name it is the same one, which would then be forgotten with its new topic.
                is_other = self._by_id and now is not None and now.topic_id != each.topic_id
                if now is None or is_other:
                    forgotten.append(ForgottenPartition(topic, each.topic_id, partition))
        return SessionFetch(self._id, self._epoch, named, forgotten)

    def answered(self, error_code: int, session_id: int, tps: Collection[TopicPartition]) -> bool:
        """Take note of a response, which has `tps`; False where it was in vain.

        That is so when a session is at fault, and none is in the next fetch: it may begin at once.
        All other error codes are the caller's.
        """
        asked, self._asked = self._asked, None
        if asked is None or asked.epoch == CLOSING:
            return True
        if error_code:
            if error_code == _NOT_FOUND:
                self._id = _NO_SESSION
            self._begin_again()
            return asked.is_full or error_code not in _MENDED_BY_ANOTHER
        if not asked.is_full and any(tp not in self._held for tp in tps):
            self._begin_again()  # the broker holds what was not asked of it
        elif session_id == _NO_SESSION:
            self._id = _NO_SESSION  # it has no room for one, or has closed it
            self._begin_again()
        else:
            self._id = session_id
            self._epoch = asked.epoch % _LAST_EPOCH + 1
        return True

    def lost(self) -> None:
        """What was asked has no answer: the broker may have taken note of it, or not."""
        self._asked = None
        self._begin_again()

    def closing(self) -> int | None:
        """The id of the session that the broker may forget; None where there is none."""
        session_id = self._id
        self._id = _NO_SESSION
        self._begin_again()
        self._asked = None
        return session_id or None

    def _begin_again(self) -> None:
        """Open a new session by the next fetch, which closes the one there is, if any."""
        self._epoch = _OPENING
        self._held = {}
