"""Holds the connections of one member to the coordinator of its group.

JoinGroup and SyncGroup, which a broker holds, have a connection of their own. While the broker
holds one, heartbeats use another connection: they keep the session alive for a member that reads
while it joins, and detect a coordinator that is gone and will never answer. Knows no membership.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from ...messages.base import Request, Response
from ...messages.join_group_request import JoinGroupRequest
from ..metadata.cluster_view import ClusterView
from ..network.connection import BrokerConnection
from .settings import GroupSettings

__all__ = ["Coordinator"]

R = TypeVar("R", bound=Response)

#: The coordinator answers JoinGroup when the rebalance is over; it may need a moment for that.
_SLACK_MS: Final = 5_000

#: From this version of JoinGroup on who has no member id yet is given one at once (KIP-394).
_GIVES_ID: Final = 4


class Coordinator:
    """Connects to the coordinator; calls `on_coordinator_moved` if it moves while it holds a
    request.
    """

    def __init__(
        self, view: ClusterView, settings: GroupSettings, moved: Callable[[], None]
    ) -> None:
        self._view = view
        self._settings = settings
        self._moved = moved
        self._held = object()  # has the connection whose requests the broker may hold
        self._beside = object()  # that for heartbeats meanwhile
        self._held_by: int | None = None  # the node that has such a request
        self._nodes: dict[object, int] = {}  # where these connections go

    async def connection(self) -> BrokerConnection:
        """Returns the connection for requests that the broker may hold."""
        return await self._connection(self._held)

    async def free_connection(self) -> BrokerConnection:
        """Returns a connection on which the broker holds no request now."""
        if self._held_by is None:
            connection = await self._connection(self._held)
            if self._held_by is None:
                return connection
        return await self._connection(self._beside)

    async def ask_and_wait(self, request: Callable[[], Request[R]]) -> tuple[R, float]:
        """Returns the response to a request that the coordinator holds until all members have
        joined.

        Returns the time of sending too, in seconds of the clock.
        """
        connection = await self._connection(self._held)
        asked = request()
        timeout_ms = max(
            self._view.settings.request_timeout_ms,
            self._settings.max_poll_interval_ms + _SLACK_MS,
        )
        self._held_by = self._nodes[self._held]
        sent_at = self._view.clock.monotonic()
        try:
            return await connection.request(asked, timeout_ms=timeout_ms), sent_at
        finally:
            self._held_by = None

    async def ask_for_id(self, request: Callable[[], Request[R]]) -> tuple[R, float]:
        """Does the same for a JoinGroup without a member id, which is answered at once (KIP-394).

        Uses the shared connection if there is one, while the connection of the next JoinGroup
        opens: before the coordinator is known if it can only be one broker.
        """
        view = self._view
        brokers = list(view.cluster.brokers)
        opening: asyncio.Task[BrokerConnection] | None = None
        if len(brokers) == 1:
            opening = _begun(view.connection_to(brokers[0], owner=self._held))
        try:
            node = await view.group_coordinator(self._settings.group_id)
            shared = view.connection_at_hand(node)
            if shared is None or shared.version_of(JoinGroupRequest) < _GIVES_ID:
                return await self.ask_and_wait(request)
            if opening is None:
                opening = _begun(self._connection(self._held))
            sent_at = view.clock.monotonic()
            answer = await shared.request(request())
            await asyncio.wait([opening])
            return answer, sent_at
        finally:
            if opening is not None and not opening.done():
                opening.cancel()
                await asyncio.wait([opening])

    def give_up(self) -> None:
        """Closes the connection on which the broker holds a request."""
        if self._held_by is not None:
            self._view.abort(self._held)

    def forget(self) -> None:
        """Drops the coordinator; the next request finds it again."""
        self._view.forget_group_coordinator(self._settings.group_id)

    async def release(self) -> None:
        """Closes the connections."""
        for owner in (self._held, self._beside):
            self._view.abort(owner)
        for owner in (self._held, self._beside):
            await self._view.release(owner)

    async def _connection(self, owner: object) -> BrokerConnection:
        node = await self._view.group_coordinator(self._settings.group_id)
        if self._held_by not in (None, node):  # who holds a request coordinates no more
            self._moved()
        if self._nodes.get(owner, node) != node:
            self._view.abort(owner)
        self._nodes[owner] = node
        return await self._view.connection_to(node, owner=owner)


def _begun(opening: Coroutine[Any, Any, BrokerConnection]) -> asyncio.Task[BrokerConnection]:
    """Retrieves an error of opening a connection: the next request raises it."""
    task = asyncio.create_task(opening)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return task
