"""`GroupSettings`: every limit of a member of a group, with its default and the reason for it."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from .assignor import Assignor, assignors_called, cooperate

__all__ = ["GroupSettings"]

#: Brokers keep times of members in 32 bits.
_MOST_MS: Final = 0x7FFF_FFFF

_TIMES: Final = {
    "session_timeout_ms": 1,
    "heartbeat_interval_ms": 1,
    "max_poll_interval_ms": 1,
    "auto_commit_interval_ms": 1,
    "leave_timeout_ms": 0,
}

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
    #: Brokers take 6 s to 30 min (group.min.session.timeout.ms, group.max.session.timeout.ms).
    session_timeout_ms: int = 45_000
    #: How often a member says that it is alive; by the answers it hears of rebalances.
    heartbeat_interval_ms: int = 3_000
    #: How long a record or batch may be in the user's hands, and how long a rebalance waits for it
    #: (KIP-62). A member that is slower leaves its group.
    max_poll_interval_ms: int = 300_000
    #: Names of assignors, or one's own, the preferred one first: the broker chooses one that all
    #: members have. With these members rebalance eagerly, and can be moved to cooperative-sticky
    #: alone one by one; so have Java's consumers since 3.0.
    assignors: Sequence[str | Assignor] = ("range", "cooperative-sticky")
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
    #: The assignors that `assignors` names.
    chosen: tuple[Assignor, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.group_id, str) or not self.group_id:
            raise ConfigurationError(f"group is {self.group_id!r}; it must be a str, not empty")
        _check_instance(self.instance_id)
        for name, least in _TIMES.items():
            check_whole_number(name, getattr(self, name), least, _MOST_MS)
        if self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigurationError(
                f"heartbeat_interval_ms is {self.heartbeat_interval_ms} and session_timeout_ms "
                f"{self.session_timeout_ms}; the first must be smaller, best a third or less"
            )
        if not isinstance(self.auto_commit, bool):
            raise ConfigurationError(f"auto_commit is {self.auto_commit!r}; it is True or False")
        if not isinstance(self.leave, bool) and self.leave != "auto":
            raise ConfigurationError(f"leave is {self.leave!r}; it is True, False or 'auto'")
        object.__setattr__(self, "chosen", assignors_called(self.assignors))

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
