"""Where a member of a consumer group is, what happens to it, and what follows: the table.

The phases are those of KIP-848, under the names that Java's consumer has for them. What is done on
the way is `membership`'s.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

__all__ = ["BEATING", "COMMITTING", "GOING", "TRANSITIONS", "Event", "Phase"]


class Phase(Enum):
    """Where a member is."""

    UNSUBSCRIBED = "in no group"
    JOINING = "sending epoch 0 until the coordinator gives another one"
    RECONCILING = "giving up and taking on, up to what is assigned"
    ACKNOWLEDGING = "telling what it holds now"
    STABLE = "holding what is assigned, as the coordinator knows"
    FENCED = "losing all, before it joins anew"
    PREPARE_LEAVING = "giving up all, before it leaves"
    LEAVING = "saying that it leaves"
    STALE = "out of the group as its user was too slow, until he asks"
    FATAL = "at its end"


class Event(Enum):
    """What happens to it."""

    WANTED = "somebody wants to read"
    JOINED = "the coordinator gave an epoch"
    ASSIGNED = "what is assigned is not what is held"
    RECONCILED = "what was to be given up and taken on is"
    ACKNOWLEDGED = "the coordinator knows what is held"
    FENCED = "the epoch or the member id does not count any more, or may not"
    GIVEN_UP = "all is given up"
    PART = "the member is to leave, for a time or for good"
    LEFT = "the coordinator knows, or had its time"
    LEFT_AS_SLOW = "the same, and nobody has asked for records since"
    ENDED = "it has left for good"


_P: TypeAlias = Phase
_E: TypeAlias = Event

#: Phase and event -> the next phase. What is not there changes nothing. A phase that comes behind
#: itself is begun anew: the step under way in it is pointless.
TRANSITIONS: Final[dict[tuple[Phase, Event], Phase]] = {
    (_P.UNSUBSCRIBED, _E.WANTED): _P.JOINING,
    (_P.UNSUBSCRIBED, _E.ENDED): _P.FATAL,
    (_P.JOINING, _E.JOINED): _P.RECONCILING,
    (_P.JOINING, _E.FENCED): _P.JOINING,
    (_P.JOINING, _E.PART): _P.PREPARE_LEAVING,
    # What is assigned meanwhile waits: what was begun is carried out and told first, as the
    # coordinator waits for that (KIP-848).
    (_P.RECONCILING, _E.RECONCILED): _P.ACKNOWLEDGING,
    (_P.RECONCILING, _E.FENCED): _P.FENCED,
    (_P.RECONCILING, _E.PART): _P.PREPARE_LEAVING,
    (_P.ACKNOWLEDGING, _E.ACKNOWLEDGED): _P.STABLE,
    (_P.ACKNOWLEDGING, _E.FENCED): _P.FENCED,
    (_P.ACKNOWLEDGING, _E.PART): _P.PREPARE_LEAVING,
    (_P.STABLE, _E.ASSIGNED): _P.RECONCILING,
    (_P.STABLE, _E.FENCED): _P.FENCED,
    (_P.STABLE, _E.PART): _P.PREPARE_LEAVING,
    (_P.FENCED, _E.GIVEN_UP): _P.JOINING,
    (_P.FENCED, _E.PART): _P.PREPARE_LEAVING,
    (_P.PREPARE_LEAVING, _E.FENCED): _P.PREPARE_LEAVING,  # what was being revoked is lost
    (_P.PREPARE_LEAVING, _E.GIVEN_UP): _P.LEAVING,
    (_P.LEAVING, _E.LEFT): _P.UNSUBSCRIBED,
    (_P.LEAVING, _E.LEFT_AS_SLOW): _P.STALE,
    (_P.LEAVING, _E.ENDED): _P.FATAL,
    (_P.STALE, _E.WANTED): _P.JOINING,
    (_P.STALE, _E.ENDED): _P.FATAL,
}

#: Phases in which a member that has an epoch says that it is alive.
BEATING: Final = frozenset((_P.RECONCILING, _P.ACKNOWLEDGING, _P.STABLE, _P.PREPARE_LEAVING))

#: Phases in which offsets can be committed: whenever there is an epoch to commit by.
COMMITTING: Final = BEATING

#: Phases of a member that is in no group, or about to leave.
GOING: Final = frozenset(
    (_P.UNSUBSCRIBED, _P.PREPARE_LEAVING, _P.LEAVING, _P.STALE, _P.FATAL),
)
