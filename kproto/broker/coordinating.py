"""What handlers about groups share: whose a group is, the time, answers that come later."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..clock import Clock
from ..messages.base import Response
from .api_error import api_error
from .authorization import check
from .authorizer import Operation, ResourceType
from .context import Context
from .decisions import Decision, Wait
from .groups import AnyGroup, ClassicGroup, ClockReading, ConsumerGroup, PendingResult

__all__ = [
    "check_consumer_protocol",
    "check_coordinator",
    "check_member_request",
    "clock_reading",
    "find_group",
    "find_or_create_group",
    "join_classic_group",
    "join_consumer_group",
    "read_clock",
    "respond_when_complete",
]

A = TypeVar("A")


def clock_reading(context: Context) -> ClockReading:
    """Now, by the clock of the node."""
    return read_clock(context.clock)


def read_clock(clock: Clock) -> ClockReading:
    """The same where there is no request."""
    return ClockReading(round(clock.monotonic() * 1000), clock.now_ms())


def check_coordinator(context: Context, group_id: str) -> None:
    """Raises NOT_COORDINATOR."""
    context.cluster.offsets_topic.check(context.endpoint.node_id, group_id)


def check_consumer_protocol(context: Context) -> None:
    """Raises UNSUPPORTED_VERSION where no group may be of the consumer protocol."""
    if not context.settings.has_consumer_protocol:
        raise api_error("UNSUPPORTED_VERSION", "the consumer protocol is not enabled on the broker")


def find_group(context: Context, group_id: str) -> AnyGroup | None:
    """A group that the node coordinates, as it is now; None where there is none.

    Raises NOT_COORDINATOR.
    """
    coordinator = context.cluster.offsets_topic
    return coordinator.find(context.endpoint.node_id, group_id, clock_reading(context))


def find_or_create_group(context: Context, group_id: str) -> AnyGroup:
    """The same; a group that is not there is made, and not written."""
    coordinator = context.cluster.offsets_topic
    return coordinator.find_or_create(context.endpoint.node_id, group_id, clock_reading(context))


def join_classic_group(context: Context, group_id: str) -> AnyGroup:
    """The group for a member of the classic protocol that has no id yet; it may be a new one.

    Raises NOT_COORDINATOR, and what the log answers where that cannot be written.
    """
    coordinator = context.cluster.offsets_topic
    return coordinator.to_join(context.endpoint.node_id, group_id, clock_reading(context))


def join_consumer_group(context: Context, group_id: str) -> ConsumerGroup:
    """The group for a member of the consumer protocol that joins; it may be a new one.

    Raises NOT_COORDINATOR, and GROUP_ID_NOT_FOUND for a classic group that stays one.
    """
    coordinator = context.cluster.offsets_topic
    return coordinator.consumer_group(context.endpoint.node_id, group_id, clock_reading(context))


def check_member_request(context: Context, group_id: str) -> None:
    """What a request of a member is refused for before it is looked at.

    Raises GROUP_AUTHORIZATION_FAILED, INVALID_GROUP_ID; in that order, as Kafka.
    """
    check(context, Operation.READ, ResourceType.GROUP, group_id)
    if not group_id:
        raise api_error("INVALID_GROUP_ID", "the group id is empty")


def respond_when_complete(
    context: Context,
    group: ClassicGroup,
    pending: PendingResult[A],
    respond: Callable[[A], Response],
) -> Decision:
    """The response, once the group has an answer; time goes on for the group while that waits."""

    def look() -> Decision:
        if pending.answer is not None:
            return respond(pending.answer)
        until_ms = group.next_deadline_ms
        assert until_ms is not None, "a group in which somebody waits changes by itself"
        return Wait(until=until_ms / 1000, wake=[group], then=look_again)

    def look_again(time_is_over: bool) -> Decision:
        group.advance(clock_reading(context))
        return look()

    return look()
