"""`FetchSession`: the fetch session of this consumer at one broker (KIP-227). Without I/O.

A full fetch opens a session and names every partition. The incremental fetches after it name the
partitions whose offset, limit or epochs have changed, and the broker returns partitions that have
something new. The client compares each partition with the one that it sent last, so records that it
dropped need no special case: the broker sends them again, from the offset in the session or from
the one in the next fetch. The rules are those of Kafka's FetchSessionHandler.
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

#: The first version of Fetch with sessions.
_FIRST_VERSION: Final = 7

#: From this version on, Fetch names topics by id alone (KIP-516); so does a session that such a
#: fetch has opened.
BY_TOPIC_ID: Final = 13

_NO_SESSION: Final = 0

#: The session epoch of a fetch without a session, and of a fetch that closes its session.
CLOSING: Final = -1
_OPENING: Final = 0
_LAST_EPOCH: Final = 0x7FFFFFFF

_NOT_FOUND: Final = code_of("FETCH_SESSION_ID_NOT_FOUND")
_MENDED_BY_ANOTHER: Final = (_NOT_FOUND, code_of("INVALID_FETCH_SESSION_EPOCH"))


class WantedPartition(NamedTuple):
    """The fields of one partition in a fetch request; -1 for an unknown epoch."""

    topic_id: Uuid
    offset: int
    max_bytes: int
    leader_epoch: int = -1
    last_epoch: int = -1


class ForgottenPartition(NamedTuple):
    """A partition that the broker removes from the session."""

    topic: str
    topic_id: Uuid
    partition: int


class SessionFetch(NamedTuple):
    """The session id and epoch of a fetch, the partitions that it names, and those to forget."""

    session_id: int
    epoch: int
    named: Mapping[TopicPartition, WantedPartition]
    forgotten: list[ForgottenPartition]

    @property
    def is_full(self) -> bool:
        """True if the response must have every partition."""
        return self.epoch in (CLOSING, _OPENING)


def without_session(wanted: Mapping[TopicPartition, WantedPartition]) -> SessionFetch:
    """Returns a full fetch that opens no session."""
    return SessionFetch(_NO_SESSION, CLOSING, wanted, [])


class FetchSession:
    """The session with one broker: `answered` or `lost` follows each `ask`.

    Without `is_used` every fetch is full, and opens no session.
    """

    __slots__ = ("_asked", "_by_id", "_epoch", "_held", "_id", "_is_used")

    def __init__(self, *, is_used: bool = True) -> None:
        self._is_used = is_used
        self._id = _NO_SESSION
        self._epoch = _OPENING  # of the next fetch
        self._held: dict[TopicPartition, WantedPartition] = {}
        self._by_id = False
        self._asked: SessionFetch | None = None  # is in flight

    def ask(self, wanted: Mapping[TopicPartition, WantedPartition], version: int) -> SessionFetch:
        """Returns the fetch that asks for all of `wanted`, in that version of Fetch."""
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
                # A session by names has both topics as one partition, which must stay in it.
                is_other = self._by_id and now is not None and now.topic_id != each.topic_id
                if now is None or is_other:
                    forgotten.append(ForgottenPartition(topic, each.topic_id, partition))
        return SessionFetch(self._id, self._epoch, named, forgotten)

    def answered(self, error_code: int, session_id: int, tps: Collection[TopicPartition]) -> bool:
        """Takes note of a response, which has `tps`.

        Returns False if the session was invalid: the next fetch opens another one, and may be sent
        at once. All other error codes are left to the caller.
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
            self._begin_again()  # the session of the broker has other partitions
        elif session_id == _NO_SESSION:
            self._id = _NO_SESSION  # the broker has no room for a session, or has closed it
            self._begin_again()
        else:
            self._id = session_id
            self._epoch = asked.epoch % _LAST_EPOCH + 1
        return True

    def lost(self) -> None:
        """Opens another session next: the last fetch has no response, so its epoch is in doubt."""
        self._asked = None
        self._begin_again()

    def closing(self) -> int | None:
        """Ends the session; returns its id, so that it can be closed, None without a session."""
        session_id = self._id
        self._id = _NO_SESSION
        self._begin_again()
        self._asked = None
        return session_id or None

    def _begin_again(self) -> None:
        """Makes the next fetch open a new session; the broker closes the present one then."""
        self._epoch = _OPENING
        self._held = {}
