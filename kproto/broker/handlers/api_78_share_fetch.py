"""ShareFetch (78), v1 to v2.

v1      a member of a share group acquires records, and acknowledges earlier ones (KIP-932)
v2      acquire mode (KIP-1206), renewals of acquisition locks (KIP-1222)

The acknowledgements take effect before the fetch. As in Kafka, the response waits for `min_bytes`
of records that can be acquired, or for `max_wait_ms`; in this time the end of an acquisition lock
can make records available again. All partitions of a response share `max_bytes` equally. A request
that creates one share session too many gets SHARE_SESSION_LIMIT_REACHED after `max_wait_ms`.

The session ends with its connection, and the records that its member holds become available.

Left out: the fetch quota. Kafka may return more record batches than the acquired records need.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ...messages.share_fetch_request import ShareFetchRequest
from ...messages.share_fetch_response import AcquiredRecords as WireAcquired
from ...messages.share_fetch_response import (
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
    ShareFetchableTopicResponse,
    ShareFetchResponse,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check
from ..authorizer import Operation, ResourceType
from ..context import Context
from ..registry import Decision, DelayedResponse, handles
from ..share import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    AcquireMode,
    ShareSession,
    TopicIdPartition,
)
from ..watchable import Watchable
from .share_acknowledgements import acknowledge, current_leader
from .share_partition_reading import SharePartitionRead, ShareReader
from .share_request_checks import LEADER_ERRORS, check_member_id, leader_endpoints

_FIRST_VERSION_OF_MODES: Final = 2


class ShareFetchOperation:
    """Executes one ShareFetch: acknowledges first, then reads until the response can be sent.

    `session` is the share session of the member. `reader` is None if the request fetches nothing.
    """

    def __init__(
        self,
        context: Context,
        request: ShareFetchRequest,
        session: ShareSession,
        acknowledged: dict[TopicIdPartition, BrokerResponseError | None],
        reader: ShareReader | None,
    ) -> None:
        self.context = context
        self.request = request
        self.session = session
        self.acknowledged = acknowledged
        self.reader = reader
        self.deadline = context.deadline(max(0, request.max_wait_ms))

    def respond(self, *, is_deadline: bool) -> Decision:
        """Returns the response, or a `DelayedResponse` until there is something to send."""
        reader = self.reader
        if reader is None:
            return self._response([])
        now = self.context.now
        reader.advance(now)
        is_deadline = is_deadline and self.context.clock.monotonic() >= self.deadline
        if is_deadline or self.request.max_wait_ms <= 0 or reader.is_enough(now):
            return self._response(reader.read(now))
        watched: Sequence[Watchable] = reader.watched
        lock_ms = reader.next_deadline_ms
        deadline = self.deadline if lock_ms is None else min(self.deadline, lock_ms / 1000)
        return DelayedResponse(
            deadline=deadline,
            watched=watched,
            try_complete=lambda at_deadline: self.respond(is_deadline=at_deadline),
        )

    def _response(self, reads: list[SharePartitionRead]) -> ShareFetchResponse:
        context, request = self.context, self.request
        assert request.group_id is not None
        config = context.share_partitions.config_of(request.group_id)
        response = ShareFetchResponse(acquisition_lock_timeout_ms=config.lock_duration_ms)
        if request.share_session_epoch == FINAL_EPOCH:
            context.share_partitions.end_session(self.session, context.now)
        is_first = request.share_session_epoch == INITIAL_EPOCH
        parts: dict[TopicIdPartition, PartitionData] = {}
        for read in reads:
            data = self._partition(read, response)
            if is_first or read.acquired or read.error is not None:
                parts[read.tp] = data
            if read.acquired:
                self.session.on_records_sent(read.tp)
        for tp, error in self.acknowledged.items():
            data = parts.setdefault(tp, PartitionData(partition_index=tp.partition, records=b""))
            if error is not None:
                data.acknowledge_error_code = error.code
        for tp, data in parts.items():
            topic = response.responses.find(topic_id=tp.topic_id)
            if topic is None:
                topic = ShareFetchableTopicResponse(topic_id=tp.topic_id)
                response.responses.append(topic)
            topic.partitions.append(data)
        return response

    def _partition(self, read: SharePartitionRead, response: ShareFetchResponse) -> PartitionData:
        data = PartitionData(partition_index=read.tp.partition, records=b"")
        if read.error is not None:
            data.error_code = read.error.code
            leader = current_leader(self.context, read.tp.topic_id, read.tp.partition)
            if read.error.name in LEADER_ERRORS and leader is not None:
                data.current_leader = LeaderIdAndEpoch(leader_id=leader[0], leader_epoch=leader[1])
                for it in leader_endpoints(self.context, leader[0]):
                    if response.node_endpoints.find(node_id=it.node_id) is None:
                        response.node_endpoints.append(
                            NodeEndpoint(
                                node_id=it.node_id, host=it.host, port=it.port, rack=it.rack
                            )
                        )
        elif read.acquired:
            data.records = read.records
            data.acquired_records = [
                WireAcquired(
                    first_offset=it.first, last_offset=it.last, delivery_count=it.deliveries
                )
                for it in read.acquired
            ]
        return data


@handles(ShareFetchRequest, versions=range(1, 3))
def share_fetch(context: Context, request: ShareFetchRequest, version: int) -> Decision:
    """Applies acknowledgements, acquires records for the member, and returns them."""
    try:
        context.check_share_groups()
        if request.group_id is None:
            raise api_error("INVALID_REQUEST", "")
        check(context, Operation.READ, ResourceType.GROUP, request.group_id)
        check_member_id(request.member_id)
        _check_renewal(request, version)
        session = _session(context, request)
        operation = _operation(context, request, version, session)
    except BrokerResponseError as error:
        return _refused(context, request, error)
    return operation.respond(is_deadline=False)


def _check_renewal(request: ShareFetchRequest, version: int) -> None:
    """Raises INVALID_REQUEST if a request with renewals also fetches records."""
    if version < _FIRST_VERSION_OF_MODES or not request.is_renew_ack:
        return
    if request.max_bytes or request.min_bytes or request.max_records or request.max_wait_ms:
        raise api_error("INVALID_REQUEST", "a request with renewals fetches no records")


def _session(context: Context, request: ShareFetchRequest) -> ShareSession:
    """Returns the share session of a request, with the partitions to fetch.

    Raises INVALID_REQUEST, SHARE_SESSION_NOT_FOUND, INVALID_SHARE_SESSION_EPOCH and
    SHARE_SESSION_LIMIT_REACHED.
    """
    sessions = context.share_partitions.sessions
    group_id, member_id = request.group_id or "", request.member_id or ""
    added = [
        TopicIdPartition(topic.topic_id, it.partition_index)
        for topic in request.topics
        for it in topic.partitions
    ]
    epoch = request.share_session_epoch
    if epoch == FINAL_EPOCH:
        return sessions.find(group_id, member_id)
    if epoch == INITIAL_EPOCH:
        if any(it.acknowledgement_batches for topic in request.topics for it in topic.partitions):
            raise api_error("INVALID_REQUEST", "the first request of a session acknowledges")
        return sessions.create(group_id, member_id, context.connection_id, added)
    session = sessions.at_epoch(group_id, member_id, epoch)
    forgotten = [
        TopicIdPartition(topic.topic_id, index)
        for topic in request.forgotten_topics_data
        for index in topic.partitions
    ]
    session.update(added, forgotten)
    return session


def _refused(context: Context, request: ShareFetchRequest, error: BrokerResponseError) -> Decision:
    response = ShareFetchResponse(error_code=error.code, error_message=None)
    if error.name != "SHARE_SESSION_LIMIT_REACHED" or request.max_wait_ms <= 0:
        return response
    return DelayedResponse(
        deadline=context.deadline(request.max_wait_ms),
        watched=[],
        try_complete=lambda is_deadline: response,
    )


def _operation(
    context: Context, request: ShareFetchRequest, version: int, session: ShareSession
) -> ShareFetchOperation:
    group_id, member_id = request.group_id or "", request.member_id or ""
    is_renew = version >= _FIRST_VERSION_OF_MODES and request.is_renew_ack
    batches = {
        TopicIdPartition(topic.topic_id, it.partition_index): it.acknowledgement_batches
        for topic in request.topics
        for it in topic.partitions
        if it.acknowledgement_batches
    }
    acknowledged = acknowledge(context, group_id, member_id, batches, version, is_renew=is_renew)
    reader = None
    if request.share_session_epoch != FINAL_EPOCH and not is_renew and session.partitions:
        mode = AcquireMode.BATCH_OPTIMIZED
        if version >= _FIRST_VERSION_OF_MODES:
            mode = (
                AcquireMode.RECORD_LIMIT
                if request.share_acquire_mode == AcquireMode.RECORD_LIMIT
                else AcquireMode.BATCH_OPTIMIZED
            )
        reader = ShareReader(context, request, mode, tuple(session.partitions))
    return ShareFetchOperation(context, request, session, acknowledged, reader)
