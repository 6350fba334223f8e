"""Sends the requests of transactional producers to the handlers of a cluster, without sockets."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from kproto.broker import BrokerSettings
from kproto.broker.cluster_state import ClusterState
from kproto.broker.context import Context
from kproto.broker.coordinators import CoordinatorType
from kproto.broker.groups import ClockReading
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.leader_and_isr import NO_LEADER
from kproto.broker.listeners import Endpoint
from kproto.broker.registry import by_key
from kproto.broker.storage.partition import Partition
from kproto.broker.transactions import TransactionCoordinator, TransactionMetadata
from kproto.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kproto.messages.base import Request
from kproto.messages.describe_transactions_request import DescribeTransactionsRequest
from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.offset_fetch_request import OffsetFetchRequest, OffsetFetchRequestGroup
from kproto.messages.produce_request import (
    PartitionProduceData,
    ProduceRequest,
    TopicProduceData,
)
from kproto.messages.txn_offset_commit_request import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from kproto.protocol.error_codes import error_code
from kproto.records import encode_batch
from kproto.records.memory_records import read_batches
from kproto.stored.transaction_markers import txn_marker_of
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP

__all__ = ["Play", "Producer", "name_of"]

APIS: Final = by_key(KAFKA_APIS)
NODES: Final = (1, 2, 3)
READ_COMMITTED: Final = 1


def name_of(code: int) -> str:
    return error_code(code).name


class Play:
    """A cluster of three nodes; t has two partitions, and s has one replica per partition.

    The replicas of s-0, s-1 and s-2 are the nodes 1, 2 and 3.
    """

    def __init__(self, **settings: Any) -> None:
        given: dict[str, Any] = {"transaction_state_log_num_partitions": 5, **settings}
        self.settings = BrokerSettings(offsets_topic_num_partitions=3, **given)
        self.clock = ManualClock(TIMESTAMP)
        self.state = ClusterState(self.settings)
        for node in NODES:
            self.state.register_endpoint(Endpoint(node, "localhost", 9090 + node))
        self.state.topics.add(self.state.plan_topic("t", 2))
        of_one_node = {index: (node,) for index, node in enumerate(NODES)}
        self.state.topics.add(self.state.plan_topic("s", assignments=of_one_node))

    @property
    def coordinator(self) -> TransactionCoordinator:
        return self.state.transaction_coordinator

    @property
    def now(self) -> ClockReading:
        return ClockReading(round(self.clock.monotonic() * 1000), self.clock.now_ms())

    async def wait(self, ms: float) -> None:
        await self.clock.advance(ms)

    def partition(self, topic: str, index: int = 0) -> Partition:
        return self.state.topics.named(topic).partitions[index]

    def log_of(self, transactional_id: str = "tx") -> Partition:
        """Returns the partition of `__transaction_state` that stores a transactional id."""
        self.find(transactional_id)
        found = self.coordinator._partition(transactional_id)
        assert found is not None
        return found

    def find(self, transactional_id: str = "tx") -> int:
        return self.state.coordinator(CoordinatorType.TRANSACTION, transactional_id)

    def move(self, transactional_id: str = "tx") -> None:
        """Makes the next node the coordinator of a transactional id."""
        partition = self.log_of(transactional_id)
        node = partition.leader_and_isr.leader % 3 + 1
        self.state.move_leader("__transaction_state", partition.index, node)

    def metadata(self, transactional_id: str = "tx") -> TransactionMetadata:
        found = self.coordinator.find(transactional_id, self.now)
        assert found is not None
        return found

    def send(self, request: Request[Any], version: int, node: int) -> Any:
        endpoint = Endpoint(node, "localhost", 9090 + node)
        context = Context(self.state, self.settings, endpoint, {}, self.clock)
        sent = type(request).decode(request.encode(version), version)
        return APIS[request.API_KEY].handle(context, sent, version)

    # Responses to clients

    def described(self, transactional_id: str = "tx") -> tuple[str, set[tuple[str, int]]]:
        """Returns the state of a transactional id, or an error name, and the id's partitions."""
        request = DescribeTransactionsRequest(transactional_ids=[transactional_id])
        (found,) = self.send(request, 0, self.find(transactional_id)).transaction_states
        if found.error_code:
            return name_of(found.error_code), set()
        partitions = {(it.topic, index) for it in found.topics for index in it.partitions}
        return found.transaction_state, partitions

    def fetch(self, topic: str, index: int, *, committed: bool, offset: int = 0) -> Any:
        """Fetches a partition; returns the partition's data in the Fetch response."""
        wanted = FetchPartition(partition=index, fetch_offset=offset, partition_max_bytes=1 << 20)
        request = FetchRequest(
            max_wait_ms=0,
            isolation_level=READ_COMMITTED if committed else 0,
            topics=[FetchTopic(topic=topic, partitions=[wanted])],
        )
        leader = self.partition(topic, index).leader_and_isr.leader
        ((found,),) = (it.partitions for it in self.send(request, 12, leader).responses)
        return found

    def read(self, topic: str, index: int = 0, *, committed: bool = True) -> list[str]:
        """Returns the values that a consumer reads; `committed` selects read_committed."""
        found = self.fetch(topic, index, committed=committed)
        assert found.error_code == 0
        starts = sorted(
            (it.first_offset, it.producer_id) for it in found.aborted_transactions or ()
        )
        aborted: set[int] = set()
        values = []
        for batch in read_batches(found.records or b""):
            while starts and starts[0][0] <= batch.last_offset:
                aborted.add(starts.pop(0)[1])
            if batch.is_control:
                marker = txn_marker_of(batch)
                assert marker is not None
                aborted.discard(batch.producer_id)
            elif not (batch.is_transactional and batch.producer_id in aborted):
                values += [(record.value or b"").decode() for record in batch.records()]
        return values

    def latest(self, topic: str, index: int = 0, *, committed: bool = True) -> int:
        """Returns the offset for the timestamp -1 (latest)."""
        wanted = ListOffsetsPartition(partition_index=index, timestamp=-1)
        request = ListOffsetsRequest(
            isolation_level=READ_COMMITTED if committed else 0,
            topics=[ListOffsetsTopic(name=topic, partitions=[wanted])],
        )
        leader = self.partition(topic, index).leader_and_isr.leader
        ((found,),) = (it.partitions for it in self.send(request, 7, leader).topics)
        assert found.error_code == 0
        return int(found.offset)

    def offsets(self, group: str = "g", *, require_stable: bool = False) -> dict[str, int | str]:
        """Returns offset or error of each partition of a group, such as `{"t-0": 5}`."""
        request = OffsetFetchRequest(
            groups=[OffsetFetchRequestGroup(group_id=group, topics=None)],
            require_stable=require_stable,
        )
        node = self.state.coordinator(CoordinatorType.GROUP, group)
        (found,) = self.send(request, 9, node).groups
        assert found.error_code == 0
        return {
            f"{topic.name}-{it.partition_index}": name_of(it.error_code)
            if it.error_code
            else it.committed_offset
            for topic in found.topics
            for it in topic.partitions
        }

    def markers(self, topic: str, index: int = 0) -> list[str]:
        """Returns the markers in a partition: `commit` or `abort`, producer id and epoch."""
        found = []
        for batch in self.partition(topic, index).log:
            marker = txn_marker_of(batch) if batch.is_control else None
            if marker is not None:
                kind = "commit" if marker.is_commit else "abort"
                found.append(f"{kind} {marker.producer_id} {marker.producer_epoch}")
        return found


class Producer:
    """A transactional producer; each method sends one request, and returns the error's name.

    With `version` 2, the requests have the versions of clients that bump the epoch at the end of
    each transaction; otherwise, the requests have the versions of older clients. The producer finds
    the coordinator before each request.
    """

    def __init__(self, play: Play, transactional_id: str = "tx", *, version: int = 2) -> None:
        self.play = play
        self.transactional_id = transactional_id
        self.version = version
        self.producer_id, self.epoch = -1, -1
        self._sequences: dict[tuple[str, int], int] = {}
        self._last: tuple[ProduceRequest, tuple[str, int]] | None = None

    @property
    def pair(self) -> tuple[int, int]:
        return self.producer_id, self.epoch

    def _node(self) -> int:
        node = self.play.find(self.transactional_id)
        return 1 if node == NO_LEADER else node

    def _adopt(self, producer_id: int, epoch: int) -> None:
        if (producer_id, epoch) != self.pair:
            self._sequences.clear()
        self.producer_id, self.epoch = producer_id, epoch

    def init(self, *, timeout_ms: int = 60_000, continues: bool = False) -> str:
        """Sends InitProducerId; if `continues` is true, sends the current producer id and epoch."""
        request = InitProducerIdRequest(
            transactional_id=self.transactional_id, transaction_timeout_ms=timeout_ms
        )
        if continues:
            request.producer_id, request.producer_epoch = self.pair
        answer = self.play.send(request, 5, self._node())
        if not answer.error_code:
            self._adopt(answer.producer_id, answer.producer_epoch)
        return name_of(answer.error_code)

    def add(self, *partitions: tuple[str, int]) -> str:
        """Sends AddPartitionsToTxn; returns the errors of the partitions, without repetition."""
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.transactional_id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[
                AddPartitionsToTxnTopic(
                    name=name, partitions=[index for topic, index in partitions if topic == name]
                )
                for name in dict.fromkeys(topic for topic, _ in partitions)
            ],
        )
        answer = self.play.send(request, 3, self._node())
        return _joined(
            it.partition_error_code
            for topic in answer.results_by_topic_v3_and_below
            for it in topic.results_by_partition
        )

    def produce(self, topic: str, index: int, *values: str) -> str:
        """Sends Produce with one batch."""
        records = encode_batch(
            [(None, value.encode(), (), self.play.clock.now_ms()) for value in values],
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            base_sequence=self._sequences.get((topic, index), 0),
            is_transactional=True,
        )
        data = PartitionProduceData(index=index, records=records)
        request = ProduceRequest(
            acks=-1,
            transactional_id=self.transactional_id,
            topic_data=[TopicProduceData(name=topic, partition_data=[data])],
        )
        self._last = request, (topic, index)
        error = self.produce_again()
        if error == "NONE":
            place = topic, index
            self._sequences[place] = self._sequences.get(place, 0) + len(values)
        return error

    def produce_again(self) -> str:
        """Sends the last Produce again."""
        assert self._last is not None
        request, (topic, index) = self._last
        leader = self.play.partition(topic, index).leader_and_isr.leader
        answer = self.play.send(request, 12 if self.version >= 2 else 11, max(leader, 1))
        ((found,),) = (it.partition_responses for it in answer.responses)
        return name_of(found.error_code)

    def add_offsets(self, group: str = "g") -> str:
        """Sends AddOffsetsToTxn."""
        request = AddOffsetsToTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            group_id=group,
        )
        return name_of(self.play.send(request, 3, self._node()).error_code)

    def commit_offset(
        self, offset: int, topic: str = "t", index: int = 0, group: str = "g", **member: Any
    ) -> str:
        """Sends TxnOffsetCommit."""
        committed = TxnOffsetCommitRequestPartition(
            partition_index=index, committed_offset=offset, committed_metadata=""
        )
        request = TxnOffsetCommitRequest(
            transactional_id=self.transactional_id,
            group_id=group,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            topics=[TxnOffsetCommitRequestTopic(name=topic, partitions=[committed])],
            **member,
        )
        node = self.play.state.coordinator(CoordinatorType.GROUP, group)
        answer = self.play.send(request, 5 if self.version >= 2 else 4, max(node, 1))
        return _joined(it.error_code for topic in answer.topics for it in topic.partitions)

    def end(self, *, commit: bool = True) -> str:
        """Sends EndTxn, and adopts the producer id and epoch in the response."""
        request = EndTxnRequest(
            transactional_id=self.transactional_id,
            producer_id=self.producer_id,
            producer_epoch=self.epoch,
            committed=commit,
        )
        answer = self.play.send(request, 5 if self.version >= 2 else 4, self._node())
        if not answer.error_code and self.version >= 2:
            self._adopt(answer.producer_id, answer.producer_epoch)
        return name_of(answer.error_code)


def _joined(codes: Iterable[int]) -> str:
    return " ".join(dict.fromkeys(name_of(code) for code in codes))
