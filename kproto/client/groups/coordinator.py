"""Manages the connections of one member to the coordinator of its group.

A broker delays its response to JoinGroup and SyncGroup, so a member sends these requests on a
connection that no other part of the client uses. While the response is pending, heartbeats use a
second connection: they renew the session of a member that reads while it joins, and detect a failed
coordinator. A JoinGroup that only requests a member id is answered at once, so the member may send
it on the client's shared connection.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeVar

from ...messages.base import Request, Response
from ...messages.join_group_request import JoinGroupRequest
from ...tasks import start_task
from ..metadata.cluster_view import ClusterView
from ..network.connection import BrokerConnection
from .settings import GroupSettings

__all__ = ["CoordinatorConnections"]

R = TypeVar("R", bound=Response)

#: The coordinator answers JoinGroup at the end of the rebalance, which lasts for up to
#: `max_poll_interval_ms`. The timeout of the request is this many ms longer than the rebalance may
#: last.
_SLACK_MS: Final = 5_000

#: From this version of JoinGroup on, a member without an id gets one at once (KIP-394).
_ASSIGNS_ID: Final = 4


class CoordinatorConnections:
    """Opens and closes the connections of a member to its coordinator.

    Calls `on_moved` if another broker is found to be the coordinator while a JoinGroup or SyncGroup
    is pending.
    """

    def __init__(
        self, view: ClusterView, settings: GroupSettings, on_moved: Callable[[], None]
    ) -> None:
        self._view = view
        self._settings = settings
        self._on_moved = on_moved
        # Keys of the member's connections in the cluster view: one for the requests that the broker
        # may delay (JoinGroup, SyncGroup), one for heartbeats in the meantime.
        self._join_owner = object()
        self._heartbeat_owner = object()
        self._pending_join_node: int | None = None  # the node of a pending request
        self._nodes: dict[object, int] = {}  # owner -> the node of its connection

    async def connection(self) -> BrokerConnection:
        """Returns the connection for the member's requests.

        Only a heartbeat during a JoinGroup or SyncGroup uses another connection: see
        `heartbeat_connection`.
        """
        return await self._connection(self._join_owner)

    async def heartbeat_connection(self) -> BrokerConnection:
        """Returns a connection to the coordinator on which no JoinGroup or SyncGroup is pending."""
        if self._pending_join_node is None:
            connection = await self._connection(self._join_owner)
            if self._pending_join_node is None:
                return connection
        return await self._connection(self._heartbeat_owner)

    async def send_join_or_sync(self, request: Callable[[], Request[R]]) -> tuple[R, float]:
        """Sends the JoinGroup or SyncGroup that `request` builds.

        The coordinator answers JoinGroup when all members have joined, and SyncGroup when the
        leader has sent the assignment. Returns the response, and the time of sending in seconds of
        the clock.
        """
        connection = await self._connection(self._join_owner)
        join_or_sync = request()
        timeout_ms = max(
            self._view.settings.request_timeout_ms,
            self._settings.max_poll_interval_ms + _SLACK_MS,
        )
        self._pending_join_node = self._nodes[self._join_owner]
        sent_at = self._view.clock.monotonic()
        try:
            return await connection.request(join_or_sync, timeout_ms=timeout_ms), sent_at
        finally:
            self._pending_join_node = None

    async def request_member_id(self, request: Callable[[], Request[R]]) -> tuple[R, float]:
        """Sends the JoinGroup that `request` builds, which has no member id.

        A coordinator with KIP-394 answers such a JoinGroup at once. If the client's shared
        connection to such a coordinator is open, the JoinGroup is sent on the shared connection;
        meanwhile the member's own connection is opened for the next JoinGroup. In all other cases
        `send_join_or_sync` sends the JoinGroup. In a cluster of one broker the member's own
        connection is opened even before the coordinator is looked up. Returns the response, and the
        time of sending in seconds of the clock.
        """
        view = self._view
        brokers = list(view.cluster.brokers)
        opening: asyncio.Task[BrokerConnection] | None = None
        if len(brokers) == 1:
            opening = _open_in_background(view.connection_to(brokers[0], owner=self._join_owner))
        try:
            node = await view.group_coordinator(self._settings.group_id)
            shared = view.open_connection(node)
            if shared is None or shared.version_of(JoinGroupRequest) < _ASSIGNS_ID:
                return await self.send_join_or_sync(request)
            if opening is None:
                opening = _open_in_background(self._connection(self._join_owner))
            sent_at = view.clock.monotonic()
            answer = await shared.request(request())
            await asyncio.wait([opening])
            return answer, sent_at
        finally:
            if opening is not None and not opening.done():
                opening.cancel()
                await asyncio.wait([opening])

    def abort_pending_join(self) -> None:
        """Closes the connection of a pending JoinGroup or SyncGroup, if there is one."""
        if self._pending_join_node is not None:
            self._view.abort(self._join_owner)

    def forget(self) -> None:
        """Forgets the coordinator; the next request looks it up again."""
        self._view.forget_group_coordinator(self._settings.group_id)

    async def release(self) -> None:
        """Closes the member's connections, and waits until they are closed."""
        for owner in (self._join_owner, self._heartbeat_owner):
            self._view.abort(owner)
        for owner in (self._join_owner, self._heartbeat_owner):
            await self._view.release(owner)

    async def _connection(self, owner: object) -> BrokerConnection:
        node = await self._view.group_coordinator(self._settings.group_id)
        if self._pending_join_node not in (None, node):
            self._on_moved()
        if self._nodes.get(owner, node) != node:
            self._view.abort(owner)
        self._nodes[owner] = node
        return await self._view.connection_to(node, owner=owner)


def _open_in_background(
    opening: Coroutine[Any, Any, BrokerConnection],
) -> asyncio.Task[BrokerConnection]:
    """Starts a task that opens a connection.

    Ignores an error of the task, because the next request to the coordinator connects again and
    raises its own error.
    """
    task = start_task(opening)
    task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())
    return task
