"""Holds the share partitions and the share sessions of one broker (KIP-932).

A share partition is loaded from the share coordinator at its first fetch. It is dropped when the
leader epoch of its partition changes, when its writes are fenced, and when the connection of the
last session of its group on this broker is closed.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Final

from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..group_configs import reset_duration_ms
from ..groups import ClockReading
from ..storage.partition import Partition
from ..topics import Topic
from .share_coordinator import ShareCoordinator
from .share_partition import SharePartition
from .share_partition_config import SharePartitionConfig
from .share_sessions import ShareSession, ShareSessionCache
from .share_state import (
    UNINITIALIZED_OFFSET,
    SharePartitionKey,
    ShareStateWrite,
)

__all__ = ["SharePartitionManager"]

logger = logging.getLogger("kproto.broker")

#: The leader's errors by errors of the share coordinator, from Kafka's SharePartition.
_ERRORS_OF_COORDINATOR: Final = {
    "NOT_COORDINATOR": "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_LOAD_IN_PROGRESS": "COORDINATOR_NOT_AVAILABLE",
    "COORDINATOR_NOT_AVAILABLE": "COORDINATOR_NOT_AVAILABLE",
    "GROUP_ID_NOT_FOUND": "GROUP_ID_NOT_FOUND",
    "UNKNOWN_TOPIC_OR_PARTITION": "UNKNOWN_TOPIC_OR_PARTITION",
    "FENCED_LEADER_EPOCH": "NOT_LEADER_OR_FOLLOWER",
    "FENCED_STATE_EPOCH": "NOT_LEADER_OR_FOLLOWER",
}
_OTHER_ERROR: Final = "UNKNOWN_SERVER_ERROR"

#: The errors after which a share partition is loaded again.
_FENCING: Final = frozenset(
    {"NOT_LEADER_OR_FOLLOWER", "GROUP_ID_NOT_FOUND", "UNKNOWN_TOPIC_OR_PARTITION"}
)


class SharePartitionManager:
    """Holds the share partitions that one broker leads, by key, and its share sessions."""

    def __init__(
        self,
        coordinator: ShareCoordinator,
        config_of: Callable[[str], SharePartitionConfig],
        *,
        max_sessions: int,
    ) -> None:
        self.sessions = ShareSessionCache(max_sessions)
        self._coordinator = coordinator
        self._config_of = config_of
        self._partitions: dict[SharePartitionKey, SharePartition] = {}
        #: Removes the watcher of each share partition's leader.
        self._unwatch: dict[SharePartitionKey, Callable[[], None]] = {}
        #: The groups of the sessions of each open connection that have ended.
        self._ended: dict[str, set[str]] = {}

    def find(self, key: SharePartitionKey) -> SharePartition | None:
        """Returns a loaded share partition; None if it is not loaded."""
        return self._partitions.get(key)

    def config_of(self, group_id: str) -> SharePartitionConfig:
        """Returns the configs of the share partitions of a group."""
        return self._config_of(group_id)

    def load(
        self, key: SharePartitionKey, topic: Topic, partition: Partition, now: ClockReading
    ) -> SharePartition:
        """Returns a share partition; reads its state from the share coordinator if necessary.

        The caller has checked that the broker leads the partition. Raises the errors of reading,
        and OFFSET_NOT_AVAILABLE.
        """
        found = self._partitions.get(key)
        if found is not None:
            return found
        epoch = partition.log.epochs.current
        try:
            state = self._coordinator.read(key, epoch, now)
        except BrokerResponseError as error:
            raise _translated(error) from None
        start_offset = state.start_offset
        if start_offset == UNINITIALIZED_OFFSET:
            start_offset = self._initial_offset(key.group_id, partition, now)
        found = SharePartition(
            state,
            start_offset,
            epoch,
            partial(self._config_of, key.group_id),
            partial(self._store, key),
        )
        self._partitions[key] = found
        drop = partial(self._drop, key)
        partition.moved.watchers.add(drop)
        self._unwatch[key] = partial(partition.moved.watchers.discard, drop)
        return found

    def _initial_offset(self, group_id: str, partition: Partition, now: ClockReading) -> int:
        """Returns the start offset that share.auto.offset.reset determines.

        Raises OFFSET_NOT_AVAILABLE if no record is new enough for the duration, as in Kafka.
        """
        reset = self._config_of(group_id).auto_offset_reset
        if reset == "earliest":
            return partition.log.start_offset
        duration_ms = reset_duration_ms(reset)
        if duration_ms is not None:
            found = partition.log.offset_for_time(now.timestamp_ms - duration_ms)
            if found is None:
                raise api_error(
                    "OFFSET_NOT_AVAILABLE", "no record is as new as share.auto.offset.reset asks"
                )
            return found.offset
        return partition.high_watermark

    def _store(self, key: SharePartitionKey, write: ShareStateWrite, now: ClockReading) -> None:
        try:
            self._coordinator.write(key, write, now)
        except BrokerResponseError as error:
            found = _translated(error)
            if found.name in _FENCING:
                self._drop(key)
            raise found from None

    def _drop(self, key: SharePartitionKey) -> None:
        """Removes a share partition, and lets waiting requests check it again."""
        found = self._partitions.pop(key, None)
        if found is not None:
            self._unwatch.pop(key)()
            found.notify()

    # Sessions

    def end_session(self, session: ShareSession, now: ClockReading) -> None:
        """Removes a session, and releases the records that its member has acquired.

        As in Kafka, releases only records of the partitions of the session.
        """
        self.sessions.remove(session)
        self._ended.setdefault(session.connection_id, set()).add(session.group_id)
        for tp in session.partitions:
            found = self._partitions.get(SharePartitionKey(session.group_id, *tp))
            if found is not None:
                try:
                    found.release(session.member_id, now)
                except BrokerResponseError as error:
                    logger.warning("the records of a member are not released: %s", error)

    def on_disconnect(self, connection_id: str, now: ClockReading) -> None:
        """Ends the sessions of a closed connection.

        Drops the share partitions of each group whose last session belonged to the connection.
        """
        for session in self.sessions.of_connection(connection_id):
            self.end_session(session, now)
        for group_id in self._ended.pop(connection_id, ()):
            if not self.sessions.has_group(group_id):
                for key in tuple(self._partitions):
                    if key.group_id == group_id:
                        self._drop(key)

    def advance(self, now: ClockReading, group_id: str | None = None) -> None:
        """Ends the expired acquisition locks of a group; None stands for all groups."""
        for key, found in tuple(self._partitions.items()):
            if group_id in (None, key.group_id):
                found.advance(now)


def _translated(error: BrokerResponseError) -> BrokerResponseError:
    """Returns the error that the leader returns for an error of the share coordinator."""
    return api_error(_ERRORS_OF_COORDINATOR.get(error.name, _OTHER_ERROR), error.detail)
