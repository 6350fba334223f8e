"""Waits until a group has reached a state, for tests."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Final

from ..clock import SYSTEM_CLOCK
from .group_states import GroupState

__all__ = ["WAIT_TIMEOUT_S", "wait_for_group"]

#: How long `wait_for_group` waits: a group of slow members needs seconds to rebalance.
WAIT_TIMEOUT_S: Final = 30.0
#: Time between two looks at a group, which take about 20 µs each in the embedded broker.
_POLL_S: Final = 0.005


async def wait_for_group(
    find: Callable[[], Awaitable[GroupState | None]],
    group_id: str,
    *,
    lag: int | None,
    members: int | None,
    timeout_s: float,
    poll_s: float = _POLL_S,
) -> GroupState:
    """Calls `find` until the group exists and has reached `lag` and `members`; returns the group.

    Conditions that are None are not checked. Waits by the machine's clock: the broker's clock may
    be frozen. Raises TimeoutError, with the last state of the group, after `timeout_s`.
    """
    clock = SYSTEM_CLOCK
    deadline = clock.monotonic() + timeout_s
    while True:
        group = await find()
        if group is not None and group.has_reached(lag=lag, members=members):
            return group
        if clock.monotonic() >= deadline:
            found = "there is no such group" if group is None else f"the last state is: {group}"
            raise TimeoutError(
                f"group {group_id!r} has not reached lag={lag}, members={members} within "
                f"{timeout_s:g} s; {found}"
            )
        await clock.sleep(poll_s)
