"""`GroupSettings`: every limit of a member of a group, with its default and the reason for it."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from .assignor import ASSIGNORS, Assignor, assignors_called, cooperate
from .ignored_settings import IN_CONSUMER, unused

__all__ = ["BEATS_IN_TIME", "DEFAULT_ASSIGNORS", "GroupSettings"]

#: Those of who names none: `GroupSettings.names_assignors` tells them from the same ones, named.
DEFAULT_ASSIGNORS: Final[Sequence[str | Assignor]] = ("range", "cooperative-sticky")

#: Heartbeats are sent so often at least while the coordinator may wait for what is to be given up,
#: whatever their interval: what is not heard of in time counts as lost.
BEATS_IN_TIME: Final = 3

#: Brokers keep times of members in 32 bits.
_MOST_MS: Final = 0x7FFF_FFFF

_TIMES: Final = {
    "session_timeout_ms": 1,
    "heartbeat_interval_ms": 1,
    "max_poll_interval_ms": 1,
    "auto_commit_interval_ms": 1,
    "leave_timeout_ms": 0,
}

_PROTOCOLS: Final = ("auto", "consumer", "classic")

#: What brokers take as an instance id: the characters and the length of a topic's name.
_INSTANCE_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._-")
_LONGEST_INSTANCE: Final = 249


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """How a member of a group behaves. Times are in ms."""

    group_id: str
    #: Makes a static member (KIP-345): one that comes back under this id within its session gets
    #: the partitions that it had, without a rebalance.
    instance_id: str | None = None
    #: Without a heartbeat for so long a member is out of its group, and has nothing to read any
    #: more: 45 s, so that a short trouble of the network does not cost a rebalance (KIP-735).
    #: Brokers take 6 s to 30 min (group.min.session.timeout.ms, group.max.session.timeout.ms). In
    #: the consumer protocol it counts for nothing: there the session is the broker's
    #: (group.consumer.session.timeout.ms, 45 s as well).
    session_timeout_ms: int = 45_000
    #: How often a member says that it is alive; by the answers it hears of rebalances. In the
    #: consumer protocol it counts for nothing, too: the broker says how often
    #: (group.consumer.heartbeat.interval.ms). In any case three times in `max_poll_interval_ms`.
    heartbeat_interval_ms: int = 3_000
    #: How long a record or batch may be in the user's hands, and how long a rebalance waits for it
    #: (KIP-62). A member that is slower leaves its group.
    max_poll_interval_ms: int = 300_000
    #: How members agree on who reads what: "consumer" by their broker (KIP-848), "classic" among
    #: themselves; "auto" as the group does that is there, and by the broker where there is none.
    group_protocol: Literal["auto", "consumer", "classic"] = "auto"
    #: For members of the consumer protocol: the assignor that the broker is to use, "uniform" or
    #: "range" or what else it has (group.consumer.assignors), most members' wish counts; None
    #: for the broker's own choice.
    server_assignor: str | None = None
    #: For members of the classic protocol: names of assignors, or one's own, the preferred one
    #: first: the broker chooses one that all members have. With these members rebalance eagerly,
    #: and can be moved to cooperative-sticky alone one by one; so have Java's consumers since 3.0.
    #: Who names any has a classic group, where `group_protocol` is "auto".
    assignors: Sequence[str | Assignor] = DEFAULT_ASSIGNORS
    #: Commit what is done by itself: every `auto_commit_interval_ms`, when partitions are given
    #: up, and at the end.
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    #: Leave the group when the consumer is closed: True, False, or "auto" for dynamic members
    #: alone, as static ones are expected back.
    leave: bool | Literal["auto"] = "auto"
    #: How long the coordinator may take to hear of it that a member leaves: without it the others
    #: wait for the session to be over. As long is waited before for what is under way: for the
    #: member id to leave by, or the end of a rebalance that began with partitions to commit.
    leave_timeout_ms: int = 5_000
    #: Which of these the user gave: what counts for nothing is told of none but those.
    given: frozenset[str] = frozenset()
    #: The assignors that `assignors` names.
    chosen: tuple[Assignor, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.group_id, str) or not self.group_id:
            raise ConfigurationError(f"group is {self.group_id!r}; it must be a str, not empty")
        _check_instance(self.instance_id)
        for name, least in _TIMES.items():
            check_whole_number(name, getattr(self, name), least, _MOST_MS)
        heartbeat_due = self.group_protocol != "consumer"  # else the broker says how often
        if heartbeat_due and self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigurationError(
                f"heartbeat_interval_ms is {self.heartbeat_interval_ms} and session_timeout_ms "
                f"{self.session_timeout_ms}; the first must be smaller, best a third or less"
            )
        if not isinstance(self.auto_commit, bool):
            raise ConfigurationError(f"auto_commit is {self.auto_commit!r}; it is True or False")
        if not isinstance(self.leave, bool) and self.leave != "auto":
            raise ConfigurationError(f"leave is {self.leave!r}; it is True, False or 'auto'")
        object.__setattr__(self, "chosen", assignors_called(self.assignors))
        self._check_protocol()

    def _check_protocol(self) -> None:
        if self.group_protocol not in _PROTOCOLS:
            raise ConfigurationError(
                f"group_protocol is {self.group_protocol!r:.80}; it is one of "
                f"{', '.join(map(repr, _PROTOCOLS))}"
            )
        wish = self.server_assignor
        if wish is not None and (not isinstance(wish, str) or not wish):
            raise ConfigurationError(
                f"server_assignor is {wish!r:.80}; it must be a str, not empty, or None"
            )
        if wish is not None and self.group_protocol == "classic":
            raise ConfigurationError(
                f"server_assignor is {wish!r}, and group_protocol 'classic': members of that "
                "protocol assign by themselves; name `assignors`"
            )
        own = [each.name for each in self.chosen if each is not ASSIGNORS.get(each.name)]
        if own and (self.group_protocol == "consumer" or wish is not None):
            raise ConfigurationError(
                f"assignors has {own[0]!r} of one's own, which the consumer protocol cannot use, "
                "as the broker assigns: leave out group_protocol and server_assignor"
            )
        if self.group_protocol == "consumer":
            for sentence in unused(self.given, IN_CONSUMER, "with group_protocol 'consumer'"):
                raise ConfigurationError(f"{sentence}; leave it out")

    @property
    def beat_interval_s(self) -> float:
        """How long lies between two heartbeats of a classic group's member, in seconds.

        A rebalance waits for `max_poll_interval_ms`: who hears of it later is put out.
        """
        return min(self.heartbeat_interval_ms, self.max_poll_interval_ms / BEATS_IN_TIME) / 1000

    @property
    def names_assignors(self) -> bool:
        """Whether the user has named assignors, which only classic groups have."""
        return self.assignors is not DEFAULT_ASSIGNORS

    @property
    def cooperative(self) -> bool:
        """Whether the member keeps what it reads while the group rebalances."""
        return cooperate(self.chosen)

    @property
    def is_static(self) -> bool:
        """Whether the member comes back as who it was."""
        return self.instance_id is not None

    @property
    def leaves(self) -> bool:
        """Whether it leaves its group when it is closed, unless its user says otherwise then."""
        return not self.is_static if self.leave == "auto" else bool(self.leave)


def _check_instance(instance_id: object) -> None:
    if instance_id is None:
        return
    if (
        not isinstance(instance_id, str)
        or not 0 < len(instance_id) <= _LONGEST_INSTANCE
        or not _INSTANCE_CHARACTERS.issuperset(instance_id)
        or instance_id in (".", "..")
    ):
        raise ConfigurationError(
            f"instance_id is {instance_id!r:.300}; it has 1 to {_LONGEST_INSTANCE} characters: "
            "letters and digits of ASCII, '.', '_' and '-', and is neither '.' nor '..'"
        )
