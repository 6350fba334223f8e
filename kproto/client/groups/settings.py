"""Defines `GroupSettings`: the settings of a group member, with reasons for their defaults."""

from __future__ import annotations

import string
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError
from ..release import has_api_versions
from .assignor import ASSIGNORS, Assignor, are_cooperative, resolve_assignors
from .default_assignors import DEFAULT_ASSIGNORS
from .ignored_settings import IN_CONSUMER, ignored_settings_in

__all__ = ["MIN_HEARTBEATS", "GroupSettings", "group_defaults_of"]

#: The least number of heartbeats within `max_poll_interval_ms`; a longer `heartbeat_interval_ms` is
#: shortened. A member that learns of a rebalance too late cannot revoke in time, and loses its
#: partitions.
MIN_HEARTBEATS: Final = 3

#: Brokers store the timeouts of members in 32 bits.
_MAX_MS: Final = 0x7FFF_FFFF

_TIMES: Final = {
    "session_timeout_ms": 1,
    "heartbeat_interval_ms": 1,
    "max_poll_interval_ms": 1,
    "auto_commit_interval_ms": 1,
    "leave_timeout_ms": 0,
}

_PROTOCOLS: Final = ("auto", "consumer", "classic")

#: Brokers accept an instance id with the characters and the length of a topic name.
_INSTANCE_CHARACTERS: Final = frozenset(string.ascii_letters + string.digits + "._-")
_MAX_INSTANCE_LENGTH: Final = 249


#: The highest session timeout that brokers before 0.10 accept (group.max.session.timeout.ms).
_MAX_SESSION_BEFORE_0_10_MS: Final = 30_000


def group_defaults_of(release: str | None) -> dict[str, int]:
    """Returns the settings whose defaults differ for brokers of a release; None is a new release.

    Raises ConfigurationError if `release` is not a release of Kafka.
    """
    if has_api_versions(release):
        return {}
    return {"session_timeout_ms": _MAX_SESSION_BEFORE_0_10_MS}


@dataclass(frozen=True, slots=True)
class GroupSettings:
    """The settings of a group member. Times are in ms."""

    group_id: str
    #: Makes the member static (KIP-345): a member that rejoins with this id before its session
    #: times out gets its previous partitions without a rebalance.
    instance_id: str | None = None
    #: The broker removes a member that sends no heartbeat for this time; the member loses its
    #: partitions. With 45 s a short network outage causes no rebalance (KIP-735). Brokers accept 6
    #: s to 30 min (group.min.session.timeout.ms, group.max.session.timeout.ms); brokers before 0.10
    #: accept 30 s at most, which is the default with such a `broker_version`. The consumer
    #: protocol ignores this setting and uses the broker's timeout
    #: (group.consumer.session.timeout.ms, 45 s too).
    session_timeout_ms: int = 45_000
    #: The time between two heartbeats; their responses announce rebalances. The consumer protocol
    #: ignores this setting and uses the broker's interval (group.consumer.heartbeat.interval.ms).
    #: Members of both protocols send at least three heartbeats in `max_poll_interval_ms`.
    heartbeat_interval_ms: int = 3_000
    #: The longest time between two polls, and so for processing a record or batch; a slower member
    #: leaves its group. A rebalance waits for a member for the same time (KIP-62).
    max_poll_interval_ms: int = 300_000
    #: "consumer": the broker assigns the partitions (KIP-848). "classic": the leader of the group
    #: assigns them. "auto": the protocol of the group's members; without members "consumer", or
    #: "classic" if the coordinator does not support "consumer".
    group_protocol: Literal["auto", "consumer", "classic"] = "auto"
    #: For the consumer protocol: the assignor that the broker uses, "uniform", "range" or another
    #: of group.consumer.assignors. If members name different assignors, the broker uses the most
    #: frequent. None leaves the choice to the broker.
    server_assignor: str | None = None
    #: For the classic protocol: names of assignors, or the user's own `Assignor`s, the preferred
    #: one first; the broker chooses an assignor that all members have. Members with the default
    #: rebalance eagerly. If a rolling restart removes "range" from all members, the group
    #: rebalances cooperatively. Java's consumers have the same default since 3.0. If group_protocol
    #: is "auto", a user that names assignors gets a classic group.
    assignors: Sequence[str | Assignor] = DEFAULT_ASSIGNORS
    #: Commit processed records automatically: every `auto_commit_interval_ms`, when partitions are
    #: revoked, and when the consumer is closed.
    auto_commit: bool = True
    auto_commit_interval_ms: int = 5_000
    #: Leave the group when the consumer is closed: True, False, or "auto" for dynamic members only,
    #: because a static member is expected to rejoin.
    leave: bool | Literal["auto"] = "auto"
    #: How long a leaving member waits for the response to its leave request; without the request
    #: the other members wait until the session times out. Before the request, a leaving member may
    #: wait equally long for its member id, or for the end of a rebalance that delays its commit.
    leave_timeout_ms: int = 5_000
    #: The names of the settings that the user set: only these are reported if they are ignored.
    explicit_settings: frozenset[str] = frozenset()
    #: The `Assignor`s that `assignors` names.
    resolved_assignors: tuple[Assignor, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.group_id, str) or not self.group_id:
            raise ConfigurationError(f"group is {self.group_id!r}; it must be a str, not empty")
        _check_instance(self.instance_id)
        for name, least in _TIMES.items():
            check_whole_number(name, getattr(self, name), least, _MAX_MS)
        uses_interval = self.group_protocol != "consumer"  # else the broker sets the interval
        if uses_interval and self.heartbeat_interval_ms >= self.session_timeout_ms:
            raise ConfigurationError(
                f"heartbeat_interval_ms is {self.heartbeat_interval_ms} and session_timeout_ms "
                f"{self.session_timeout_ms}; the first must be smaller, best a third or less"
            )
        if not isinstance(self.auto_commit, bool):
            raise ConfigurationError(f"auto_commit is {self.auto_commit!r}; it is True or False")
        if not isinstance(self.leave, bool) and self.leave != "auto":
            raise ConfigurationError(f"leave is {self.leave!r}; it is True, False or 'auto'")
        object.__setattr__(self, "resolved_assignors", resolve_assignors(self.assignors))
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
                f"server_assignor is {wish!r}, and group_protocol 'classic': the leader assigns in "
                "that protocol; name `assignors`"
            )
        own = [
            each.name for each in self.resolved_assignors if each is not ASSIGNORS.get(each.name)
        ]
        if own and (self.group_protocol == "consumer" or wish is not None):
            raise ConfigurationError(
                f"assignors has {own[0]!r} of the user, which the consumer protocol cannot use, "
                "because the broker assigns: leave out group_protocol and server_assignor"
            )
        if self.group_protocol == "consumer":
            for sentence in ignored_settings_in(
                self.explicit_settings, IN_CONSUMER, "with group_protocol 'consumer'"
            ):
                raise ConfigurationError(f"{sentence}; leave it out")

    @property
    def heartbeat_interval_s(self) -> float:
        """Returns the heartbeat interval of a member of a classic group, in seconds.

        It is at most a third of `max_poll_interval_ms`, so that the member learns of a rebalance in
        time: the coordinator removes a member that does not rejoin within `max_poll_interval_ms`.
        """
        return min(self.heartbeat_interval_ms, self.max_poll_interval_ms / MIN_HEARTBEATS) / 1000

    @property
    def names_assignors(self) -> bool:
        """Returns True if the user has named assignors; only classic groups use them."""
        return self.assignors is not DEFAULT_ASSIGNORS

    @property
    def cooperative(self) -> bool:
        """Returns True if the member keeps reading its partitions while the group rebalances."""
        return are_cooperative(self.resolved_assignors)

    @property
    def is_static(self) -> bool:
        """Returns True for a static member, which rejoins with its instance id (KIP-345)."""
        return self.instance_id is not None

    @property
    def leaves(self) -> bool:
        """Returns True if a member leaves its group when its consumer is closed.

        The argument `leave` of `close` overrides this setting.
        """
        return not self.is_static if self.leave == "auto" else bool(self.leave)


def _check_instance(instance_id: object) -> None:
    if instance_id is None:
        return
    if (
        not isinstance(instance_id, str)
        or not 0 < len(instance_id) <= _MAX_INSTANCE_LENGTH
        or not _INSTANCE_CHARACTERS.issuperset(instance_id)
        or instance_id in (".", "..")
    ):
        raise ConfigurationError(
            f"instance_id is {instance_id!r:.300}; it has 1 to {_MAX_INSTANCE_LENGTH} characters: "
            "letters and digits of ASCII, '.', '_' and '-', and is neither '.' nor '..'"
        )
