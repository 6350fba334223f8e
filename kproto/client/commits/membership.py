"""Defines the interface of a group member that the group consumer and the committer use."""

from __future__ import annotations

from typing import Any, Protocol, TypeVar

from ...wire.errors import BrokerResponseError
from ...wire.uuid import Uuid
from ..metadata.cluster import TopicPartition
from .offset_requests import Identity

__all__ = ["GroupMembership"]

S_contra = TypeVar("S_contra", contravariant=True)


class GroupMembership(Protocol[S_contra]):
    """A member of a group, of the classic or the consumer protocol.

    S_contra is the type of the subscription.
    """

    @property
    def identity(self) -> Identity | None:
        """The member id with its generation or epoch; None if the member may not commit now."""
        ...

    @property
    def assignment_valid_until(self) -> float:
        """The time until which the member certainly owns its partitions.

        The time is in seconds of the clock.
        """
        ...

    def start(self) -> None:
        """Joins the group once there is a subscription."""
        ...

    async def leave(self, leave: bool, reason: str) -> None:
        """Revokes all partitions, leaves the group only if `leave` is True, and ends the member.

        A member of the classic protocol sends `reason` to the coordinator (KIP-800).
        """
        ...

    async def close(self) -> None:
        """Ends the member at once, without a request to the coordinator."""
        ...

    def subscribe(self, subscription: S_contra) -> None:
        """Replaces the subscription."""
        ...

    def unsubscribe(self) -> None:
        """Revokes all partitions; a dynamic member leaves the group."""
        ...

    def request_rejoin(self, reason: str) -> None:
        """Requests a rebalance of a classic group; brokers log the reason (KIP-800)."""
        ...

    def on_topics_changed(self) -> None:
        """Compares the topics and partitions of the subscription with new metadata."""
        ...

    def on_poll(self) -> None:
        """Rejoins the group if the member has left it because polls were too far apart."""
        ...

    def is_assigned(self, tp: TopicPartition, topic_id: Uuid) -> bool:
        """Returns True if partition `tp` is assigned, and its topic has the id `topic_id`."""
        ...

    def on_commit_refused(self, error: BrokerResponseError, identity: Any) -> None:
        """Acts on the error of a request, e.g. rejoins the group.

        The request is an OffsetCommit or an OffsetFetch that was sent with `identity`.
        """
        ...
