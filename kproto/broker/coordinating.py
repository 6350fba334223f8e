"""What handlers about groups share: whose a group is, the time, answers that come later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..clock import Clock
from ..messages.base import Response
from .authorizer import Operation, ResourceType
from .context import Context
from .decisions import Decision, Wait
from .groups import Awaited, Group, Moment
from .refusal import refusal
from .rights import check

__all__ = [
    "answered",
    "check_coordinator",
    "check_member_request",
    "find_group",
    "find_or_create_group",
    "moment",
    "moment_by",
]

A = TypeVar("A")


def moment(context: Context) -> Moment:
    """Now, by the clock of the node."""
    return moment_by(context.clock)


def moment_by(clock: Clock) -> Moment:
    """The same where there is no request."""
    return Moment(round(clock.monotonic() * 1000), clock.now_ms())


def check_coordinator(context: Context, group_id: str) -> None:
    """Raises NOT_COORDINATOR."""
    context.cluster.offsets_topic.check(context.endpoint.node_id, group_id)


def find_group(context: Context, group_id: str) -> Group | None:
    """A group that the node coordinates, as it is now; None where there is none.

    Raises NOT_COORDINATOR.
    """
    keeper = context.cluster.offsets_topic
    return keeper.find(context.endpoint.node_id, group_id, moment(context))


def find_or_create_group(context: Context, group_id: str, *, keep: bool) -> Group:
    """The same; a group that is not there is made, and written for `keep`.

    Raises also what the log answers where that cannot be written.
    """
    keeper = context.cluster.offsets_topic
    return keeper.find_or_create(context.endpoint.node_id, group_id, moment(context), keep=keep)


def check_member_request(context: Context, group_id: str) -> None:
    """What a request of a member is refused for before it is looked at.

    Raises GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID; in that order, as Kafka.
    """
    check(context, Operation.READ, ResourceType.GROUP, group_id)
    if not group_id:
        raise refusal("INVALID_GROUP_ID", "the group id is empty")


def answered(
    context: Context, group: Group, awaited: Awaited[A], written: Callable[[A], Response]
) -> Decision:
    """The response, once the group has an answer; time goes on for the group while that waits."""

    def look() -> Decision:
        if awaited.answer is not None:
            return written(awaited.answer)
        until_ms = group.next_ms
        assert until_ms is not None, "a group in which somebody waits changes by itself"
        return Wait(until=until_ms / 1000, wake=[group], then=look_again)

    def look_again(time_is_over: bool) -> Decision:
        group.advance(moment(context))
        return look()

    return look()
