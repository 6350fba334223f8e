"""`AssignmentListener`: the consumer, as the driver of its group membership calls it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Collection
from typing import Final, Protocol

from ...wire.errors import KprotoError
from ..metadata.cluster import TopicPartition

__all__ = ["CALLBACK_CANCELLED", "AssignmentListener", "callback_error", "wrap_exception"]

CALLBACK_CANCELLED: Final = "a callback of the consumer cancelled itself"


class AssignmentListener(Protocol):
    """The methods of a consumer that the driver of its group membership calls.

    The driver passes the partitions to add, to revoke, or to forget as lost. The driver awaits one
    call at a time.
    """

    def owned_partitions(self) -> Collection[TopicPartition]:
        """Returns the assigned partitions, including partitions that are being revoked."""
        ...

    async def revoke(self, tps: Collection[TopicPartition], until: float) -> None:
        """Revokes partitions while the member can still commit their offsets.

        The listener returns no more records of the partitions, and waits until the returned records
        are processed, at most until the time `until` (seconds of the clock). After the wait the
        listener commits, and forgets the partitions. If the generation is lost during the call, the
        driver cancels the call and calls `on_partitions_lost`. If the member begins to leave during
        the call and can still commit, the driver cancels the call and calls `revoke` for all owned
        partitions.
        """
        ...

    async def on_partitions_lost(self, tps: Collection[TopicPartition]) -> None:
        """Forgets lost partitions: returns no more records of them, and commits nothing.

        If the driver cancels the call and the member does not end, the driver next calls either
        `on_partitions_lost` again, with the partitions that the member owns at that time, or
        `assign`. In that next call the listener repeats an interrupted `on_lost` callback.
        """
        ...

    async def assign(self, tps: Collection[TopicPartition]) -> None:
        """Adds partitions and starts to read them; `tps` is empty if a rebalance added none."""
        ...

    def on_member_failed(self, error: KprotoError) -> None:
        """Handles the permanent failure of the member.

        If the member could leave the group, it has left the group before this call.
        """
        ...

    def poll_interval_exceeded(self, now: float) -> bool:
        """Returns True if the last poll was more than max_poll_interval_ms before `now`.

        During `run`, this time counts from the start of the oldest record that a handler processes,
        not from the last poll.
        """
        ...


async def callback_error(call: Awaitable[None]) -> KprotoError | None:
    """Awaits a call of the listener. Returns the error of the call, None if it succeeded.

    The caller ends the member with this error. If the user's callback raises an exception other
    than KprotoError, the result is a KprotoError that wraps the exception.
    """
    try:
        await call
    except asyncio.CancelledError as cancelled:
        task = asyncio.current_task()
        if task is not None and task.cancelling():
            raise
        return wrap_exception(CALLBACK_CANCELLED, cancelled)
    except KprotoError as error:
        return error
    except Exception as fault:  # noqa: BLE001 - a user's callback may raise any exception
        return wrap_exception("a callback of the consumer failed", fault)
    return None


def wrap_exception(what: str, fault: BaseException) -> KprotoError:
    """Returns an error with the cause `fault`; the text of the error begins with `what`."""
    error = KprotoError(f"{what}: {fault!r}")
    error.__cause__ = fault
    return error
