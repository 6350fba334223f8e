"""Finds the leader of a partition as producers and consumers do."""

from __future__ import annotations

from kproto import Client

__all__ = ["leader_of"]


async def leader_of(client: Client, topic: str, partition: int) -> int:
    """Returns the leader's node id; waits for metadata and retries as a producer does.

    Raises BrokerResponseError if the partition does not exist, or has no leader in time.
    """
    view = client._view
    return await view.retrying(lambda: view.leader(topic, partition), responses=False)
