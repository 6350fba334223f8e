"""Blocks writes on a connection while its broker throttles the client (KIP-219).

Since Kafka 2.0 a broker that throttles a client responds at once. For the throttle time in the
response the broker does not read from the connection, and the client does not write. If the client
sends a request during this time, the timeout of the request is extended by the time that is left.
"""

from __future__ import annotations

import asyncio
from typing import Final

from ...clock import Clock, Timer
from ...messages.base import Response

__all__ = ["Throttle", "throttle_time_ms_of"]

#: The first version whose response is sent before the throttle time, by request name. In earlier
#: versions the broker waits before it responds. Requests that the table lacks are newer: brokers
#: respond at once in every version. Source: the comments in Kafka's message definitions.
CLIENT_SIDE_FROM_VERSION: Final = {
    "AddOffsetsToTxn": 1,
    "AddPartitionsToTxn": 1,
    "AlterConfigs": 1,
    "AlterReplicaLogDirs": 1,
    "ApiVersions": 2,
    "CreateAcls": 1,
    "CreateDelegationToken": 1,
    "CreatePartitions": 1,
    "CreateTopics": 3,
    "DeleteAcls": 1,
    "DeleteGroups": 1,
    "DeleteRecords": 1,
    "DeleteTopics": 2,
    "DescribeAcls": 1,
    "DescribeConfigs": 2,
    "DescribeDelegationToken": 1,
    "DescribeGroups": 2,
    "DescribeLogDirs": 1,
    "EndTxn": 1,
    "ExpireDelegationToken": 1,
    "Fetch": 8,
    "FindCoordinator": 2,
    "Heartbeat": 2,
    "InitProducerId": 1,
    "JoinGroup": 3,
    "LeaveGroup": 2,
    "ListGroups": 2,
    "ListOffsets": 3,
    "Metadata": 6,
    "OffsetCommit": 4,
    "OffsetFetch": 4,
    "Produce": 6,
    "RenewDelegationToken": 1,
    "SyncGroup": 2,
    "TxnOffsetCommit": 1,
}


def throttle_time_ms_of(response: Response, version: int) -> int:
    """Returns the time in ms for which the client must not send after a response.

    Returns 0 if the broker does not throttle the client, or if the broker delayed the response
    instead.
    """
    throttle_ms: int = getattr(response, "throttle_time_ms", 0)
    if throttle_ms > 0:
        name = type(response)._generated().__name__.removesuffix("Response")
        if version < CLIENT_SIDE_FROM_VERSION.get(name, 0):
            return 0
    return max(throttle_ms, 0)


class Throttle:
    """Blocks the writes of one connection for the throttle time that the broker requests.

    `is_on` is True while writes are blocked. `not_before` is the time at which the throttle ends,
    in seconds of the clock.
    """

    __slots__ = ("_clock", "_ended", "_timer", "is_on", "not_before")

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._ended = asyncio.Event()
        self._timer: Timer | None = None
        self.is_on = False
        self.not_before = float("-inf")

    def begin(self, ms: int) -> None:
        """Blocks writes for `ms` from now on, unless writes are already blocked for longer."""
        until = self._clock.monotonic() + ms / 1000
        if until <= self.not_before or ms <= 0:
            return
        self.end()
        self.not_before = until
        self.is_on = True
        self._ended.clear()
        self._timer = self._clock.call_later(ms / 1000, self.end)

    def end(self) -> None:
        """Unblocks writes."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self.is_on = False
        self._ended.set()

    @property
    def remaining_s(self) -> float:
        """The remaining throttle time in seconds, 0 if writes are not blocked."""
        return max(0.0, self.not_before - self._clock.monotonic()) if self.is_on else 0.0

    async def wait_until_over(self) -> None:
        """Waits until the throttle is over, or the connection is lost."""
        while self.is_on:
            await self._ended.wait()
