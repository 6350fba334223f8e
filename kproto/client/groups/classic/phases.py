"""Where a member of a classic group is, what happens to it, and what follows: the table.

Rows stand beside the KIP that brought them. What is done on the way is `membership`'s.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, TypeAlias

__all__ = ["BEATING", "COMMITTING", "TRANSITIONS", "Event", "Phase"]


class Phase(Enum):
    """Where a member is."""

    OUT = "in no group"
    GIVING_UP = "giving up what it may not keep in a rebalance"
    JOINING = "waiting for the others to join"
    LEADING = "computing who reads what"
    SYNCING = "waiting for its assignment"
    TAKING_ON = "taking on its assignment"
    STABLE = "in a generation"
    PARTING = "giving up all, before it leaves"
    LEAVING = "saying that it leaves"
    OVER = "at its end"


class Event(Enum):
    """What happens to it."""

    WANTED = "somebody wants to read"
    REBALANCE = "the group must agree anew, by a broker or by what this member wants"
    GIVEN_UP = "what could not be kept is given up"
    JOINED = "the group has a generation, which another leads"
    LEADS = "the group has a generation, which this member leads"
    LED = "who reads what is computed"
    SYNCED = "the assignment came"
    TAKEN_ON = "the assignment is carried out"
    LOST = "the generation or the member id does not count any more, or may not"
    MOVED = "another broker coordinates"
    PART = "the member is to leave, for a time or for good"
    LEFT = "the coordinator knows, or had its time"
    ENDED = "it has left for good"


_P: TypeAlias = Phase
_E: TypeAlias = Event

#: Phase and event -> the next phase. What is not there changes nothing. A phase that comes behind
#: itself is begun anew: the step under way in it is pointless.
TRANSITIONS: Final[dict[tuple[Phase, Event], Phase]] = {
    (_P.OUT, _E.WANTED): _P.GIVING_UP,
    (_P.OUT, _E.ENDED): _P.OVER,
    # Eager members give up all before they join, cooperative ones what they do not want (KIP-429).
    (_P.GIVING_UP, _E.GIVEN_UP): _P.JOINING,
    (_P.GIVING_UP, _E.LOST): _P.GIVING_UP,  # what was being revoked is lost
    (_P.GIVING_UP, _E.PART): _P.PARTING,
    # The broker holds JoinGroup until all members have joined (KIP-62). A rebalance that begins
    # meanwhile is this one.
    (_P.JOINING, _E.JOINED): _P.SYNCING,
    (_P.JOINING, _E.LEADS): _P.LEADING,
    (_P.JOINING, _E.LOST): _P.GIVING_UP,
    (_P.JOINING, _E.MOVED): _P.JOINING,
    (_P.JOINING, _E.PART): _P.PARTING,
    (_P.LEADING, _E.LED): _P.SYNCING,
    (_P.LEADING, _E.LOST): _P.GIVING_UP,
    (_P.LEADING, _E.PART): _P.PARTING,
    (_P.SYNCING, _E.SYNCED): _P.TAKING_ON,
    (_P.SYNCING, _E.REBALANCE): _P.GIVING_UP,  # SyncGroup says so: KIP-568
    (_P.SYNCING, _E.LOST): _P.GIVING_UP,
    (_P.SYNCING, _E.MOVED): _P.SYNCING,
    (_P.SYNCING, _E.PART): _P.PARTING,
    # A rebalance waits until the assignment is carried out; so does the one by which a cooperative
    # member tells what it has given up (KIP-429).
    (_P.TAKING_ON, _E.TAKEN_ON): _P.STABLE,
    (_P.TAKING_ON, _E.LOST): _P.GIVING_UP,
    (_P.TAKING_ON, _E.PART): _P.PARTING,
    (_P.STABLE, _E.REBALANCE): _P.GIVING_UP,
    (_P.STABLE, _E.LOST): _P.GIVING_UP,
    (_P.STABLE, _E.PART): _P.PARTING,
    (_P.PARTING, _E.GIVEN_UP): _P.LEAVING,
    (_P.PARTING, _E.LOST): _P.PARTING,
    (_P.LEAVING, _E.LEFT): _P.OUT,
    (_P.LEAVING, _E.ENDED): _P.OVER,
}

#: Phases in which a member that has a generation says that it is alive. While it joins, too: the
#: answer shows that the broker is there and has not forgotten it.
BEATING: Final = frozenset(
    (
        _P.GIVING_UP,
        _P.JOINING,
        _P.LEADING,
        _P.SYNCING,
        _P.TAKING_ON,
        _P.STABLE,
        _P.PARTING,
    )
)

#: Phases in which offsets can be committed: brokers take none between JoinGroup and SyncGroup.
COMMITTING: Final = frozenset((_P.GIVING_UP, _P.JOINING, _P.TAKING_ON, _P.STABLE, _P.PARTING))
