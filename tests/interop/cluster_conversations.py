"""Sends requests about brokers and coordinators to a real and to the embedded broker."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kproto.messages.describe_cluster_request import DescribeClusterRequest
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.offset_for_leader_epoch_request import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from tests.support.batches import batch_bytes

from .conversations import Said
from .talk import PATIENCE_S, Talk, error

__all__ = ["CLUSTER_CONVERSATIONS"]

GROUP, TRANSACTION, SHARE, NOTHING = 0, 1, 2, 7


def finding_coordinators(talk: Talk) -> Said:
    def ask(version: int, key_type: int, *keys: str) -> list[object]:
        if version >= 4:
            request = FindCoordinatorRequest(key_type=key_type, coordinator_keys=keys)
            answer = talk.ask(request, version)
            return [
                (
                    found.key,
                    error(found.error_code),
                    found.node_id,
                    bool(found.host),
                    found.port > 0,
                )
                for found in answer.coordinators
            ]
        kind: dict[str, Any] = {"key_type": key_type} if version else {}
        answer = talk.ask(FindCoordinatorRequest(key=keys[0], **kind), version)
        message = answer.error_message if not answer.error_code else bool(answer.error_message)
        found = error(answer.error_code), answer.node_id, bool(answer.host), answer.port > 0
        return [*found, message]

    versions = talk.versions(FindCoordinatorRequest)
    deadline = time.monotonic() + PATIENCE_S
    for kind in (
        GROUP,
        TRANSACTION,
    ):  # creates internal topics
        while "COORDINATOR_NOT_AVAILABLE" in str(ask(4, kind, "g")):
            assert time.monotonic() < deadline, "the coordinator did not start"
            time.sleep(0.1)
    for version in versions:
        yield (version, "group"), ask(version, GROUP, "g")
        yield (version, "no name"), ask(version, GROUP, "")
        if version >= 1:
            for kind in (TRANSACTION, SHARE, NOTHING):
                yield (version, kind), ask(version, kind, "g")
        if version >= 4:
            yield (version, "many"), ask(version, GROUP, "a", "b", "a")
            yield (version, "none"), ask(version, GROUP)


def finding_ends_of_epochs(talk: Talk) -> Said:
    name = talk.create("epochs")
    talk.append(name, batch_bytes(3))

    def ask(
        version: int,
        epoch: int,
        *,
        topic: str = name,
        partition: int = 0,
        current: int = -1,
        replica_id: int = -1,
    ) -> object:
        known = {"current_leader_epoch": current} if version >= 2 else {}
        wanted = OffsetForLeaderPartition(partition=partition, leader_epoch=epoch, **known)
        by = {"replica_id": replica_id} if version >= 3 else {}
        request = OffsetForLeaderEpochRequest(
            topics=[OffsetForLeaderTopic(topic=topic, partitions=[wanted])], **by
        )
        ((found,),) = (each.partitions for each in talk.ask(request, version).topics)
        return error(found.error_code), found.partition, found.leader_epoch, found.end_offset

    for version in talk.versions(OffsetForLeaderEpochRequest):
        for epoch in (0, 1, 5, -1, -2):
            yield (version, epoch), ask(version, epoch)
        yield (version, "topic"), ask(version, 0, topic="nope")
        yield (version, "partition"), ask(version, 0, partition=9)
        if version >= 2:
            yield (version, "current"), ask(version, 0, current=0)
            yield (version, "later"), ask(version, 0, current=3)
        if version >= 3:
            yield (version, "debugging"), ask(version, 0, replica_id=-2)
            yield (version, "follower"), ask(version, 0, replica_id=1)


def describing_the_cluster(talk: Talk) -> Said:
    def ask(version: int, endpoint_type: int = 1, *, operations: bool = False) -> object:
        kind: dict[str, Any] = {"endpoint_type": endpoint_type} if version else {}
        request = DescribeClusterRequest(include_cluster_authorized_operations=operations, **kind)
        answer = talk.ask(request, version)
        brokers = [
            (node.broker_id, bool(node.host), node.port > 0, node.rack, node.is_fenced)
            for node in answer.brokers
        ]
        return (
            error(answer.error_code),
            bool(answer.error_message),
            answer.endpoint_type,
            bool(answer.cluster_id),
            answer.controller_id,
            brokers,
            answer.cluster_authorized_operations,
        )

    for version in talk.versions(DescribeClusterRequest):
        yield (version, "plain"), ask(version)
        yield (version, "operations"), ask(version, operations=True)
        if version:
            for endpoint_type in (-1, 0, 2, 3, 7):
                yield (version, endpoint_type), ask(version, endpoint_type)


CLUSTER_CONVERSATIONS: tuple[Callable[[Talk], Said], ...] = (
    finding_coordinators,
    finding_ends_of_epochs,
    describing_the_cluster,
)
