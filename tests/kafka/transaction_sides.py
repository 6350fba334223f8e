"""Sends requests of transactional producers to a real or embedded broker, and compares responses.

Every producer has its own connection. Producer ids differ from broker to broker, so results show
the number n instead of the n-th producer id that a broker has returned.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any, Final

from kproto.messages.add_offsets_to_txn_request import AddOffsetsToTxnRequest
from kproto.messages.add_partitions_to_txn_request import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
)
from kproto.messages.base import Request
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.describe_producers_request import DescribeProducersRequest, TopicRequest
from kproto.messages.describe_transactions_request import DescribeTransactionsRequest
from kproto.messages.end_txn_marker import EndTxnMarker
from kproto.messages.end_txn_request import EndTxnRequest
from kproto.messages.fetch_request import FetchPartition, FetchRequest, FetchTopic
from kproto.messages.find_coordinator_request import FindCoordinatorRequest
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.list_offsets_request import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsTopic,
)
from kproto.messages.list_transactions_request import ListTransactionsRequest
from kproto.messages.offset_fetch_request import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
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
from kproto.records import encode_batch, read_batches
from kproto.stored.control_records import ControlRecordType, decode_control_record
from kproto.stored.coordinator_records import CoordinatorRecord, decode_coordinator_record
from tests.support.raw_connection import RawConnection

__all__ = ["PARTITIONS", "TransactionSide"]

PATIENCE_S: Final = 20.0
PARTITIONS: Final = 3

#: The latest version of Fetch by topic names.
_FETCH: Final = 12
_MAX_BYTES: Final = 10_000_000


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


def _shown_partitions(topics: Iterable[tuple[str, Iterable[int]]]) -> object:
    """Returns (topic, partitions) of each topic, sorted.

    For an internal topic, the second item is only the number of partitions.
    """
    return sorted(
        (topic, len(list(partitions)) if topic.startswith("__") else sorted(partitions))
        for topic, partitions in topics
    )


class TransactionSide:
    """One broker, with a topic and transactional producers."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.bootstrap = bootstrap
        self.topic = topic
        #: The current producer id and epoch of each producer by its name.
        self.producers: dict[str, tuple[int, int]] = {}
        self._ids: dict[int, int] = {-1: -1}
        self._connections: dict[str, RawConnection] = {}

    def close(self) -> None:
        for connection in self._connections.values():
            connection.__exit__(None, None, None)

    def prepare(self, transactional_ids: Iterable[str], groups: Iterable[str]) -> None:
        """Creates the topic, and waits for the coordinators."""
        request = CreateTopicsRequest(
            topics=[
                CreatableTopic(name=self.topic, num_partitions=PARTITIONS, replication_factor=1)
            ],
            timeout_ms=10_000,
        )
        self.ask("admin", request, 5)
        deadline = time.monotonic() + PATIENCE_S
        while self.ask("admin", InitProducerIdRequest(transactional_id=None), 4).error_code:
            # The broker has no block of producer ids yet.
            assert time.monotonic() < deadline
            time.sleep(0.1)
        keys = [(1, each) for each in transactional_ids] + [(0, each) for each in groups]
        while keys:
            kind, key = keys[0]
            answer = self.ask(
                "admin", FindCoordinatorRequest(key_type=kind, coordinator_keys=[key]), 4
            )
            if not answer.coordinators[0].error_code:
                keys.pop(0)
                continue
            assert time.monotonic() < deadline
            time.sleep(0.1)
        for partition in range(PARTITIONS):
            while self.read(partition, committed=False)[0] != "NONE":
                assert time.monotonic() < deadline
                time.sleep(0.1)
        for transactional_id in transactional_ids:
            loading = {"COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"}
            while self.describe(transactional_id)[0] in loading:
                assert time.monotonic() < deadline
                time.sleep(0.1)

    def ask(self, name: str, request: Request[Any], version: int) -> Any:
        """Returns the response to a request on the connection of the producer `name`."""
        if name not in self._connections:
            self._connections[name] = RawConnection(self.bootstrap, name, timeout=PATIENCE_S)
        return self._connections[name].exchange(request, version)

    def shown(self, producer_id: int) -> int:
        """Returns n for the n-th distinct producer id that the broker returned."""
        return self._ids.setdefault(producer_id, len(self._ids) - 1)

    # Requests of producers. `name` names the producer, whose id and epoch may be outdated.

    def init(
        self,
        name: str,
        transactional_id: str | None,
        version: int,
        *,
        current: tuple[int, int] = (-1, -1),
        timeout_ms: int = 60_000,
    ) -> object:
        """Sends InitProducerId; returns the error, the shown producer id, and the epoch.

        If the request ends an earlier transaction, waits until the markers of that transaction are
        written.
        """
        request = InitProducerIdRequest(
            transactional_id=transactional_id, transaction_timeout_ms=timeout_ms
        )
        if version >= 3:
            request.producer_id, request.producer_epoch = current
        answer = self.ask(name, request, version)
        if not answer.error_code:
            self.producers[name] = answer.producer_id, answer.producer_epoch
        if transactional_id:
            self.wait_until_ended(transactional_id)
        return (
            error_code(answer.error_code).name,
            self.shown(answer.producer_id),
            answer.producer_epoch,
        )

    def add_partitions(
        self, name: str, transactional_id: str, partitions: Iterable[int], version: int
    ) -> object:
        producer_id, epoch = self.producers[name]
        answer = self.ask(
            name,
            AddPartitionsToTxnRequest(
                v3_and_below_transactional_id=transactional_id,
                v3_and_below_producer_id=producer_id,
                v3_and_below_producer_epoch=epoch,
                v3_and_below_topics=[
                    AddPartitionsToTxnTopic(name=self.topic, partitions=list(partitions))
                ],
            ),
            version,
        )
        return sorted(
            (each.partition_index, error_code(each.partition_error_code).name)
            for topic in answer.results_by_topic_v3_and_below
            for each in topic.results_by_partition
        )

    def add_offsets(self, name: str, transactional_id: str, group: str, version: int) -> object:
        producer_id, epoch = self.producers[name]
        answer = self.ask(
            name,
            AddOffsetsToTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                group_id=group,
            ),
            version,
        )
        return error_code(answer.error_code).name

    def commit_offset(
        self,
        name: str,
        transactional_id: str,
        group: str,
        partition: int,
        offset: int,
        version: int,
        *,
        generation: int = -1,
        member_id: str = "",
    ) -> object:
        producer_id, epoch = self.producers[name]
        request = TxnOffsetCommitRequest(
            transactional_id=transactional_id,
            group_id=group,
            producer_id=producer_id,
            producer_epoch=epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=self.topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(
                            partition_index=partition, committed_offset=offset
                        )
                    ],
                )
            ],
        )
        if version >= 3:
            request.generation_id_or_member_epoch, request.member_id = generation, member_id
        answer = self.ask(name, request, version)
        return error_code(answer.topics[0].partitions[0].error_code).name

    def produce(
        self,
        name: str,
        transactional_id: str | None,
        partition: int,
        sequence: int,
        version: int,
        *,
        count: int = 1,
        is_transactional: bool = True,
    ) -> tuple[str, int]:
        """Sends one batch with all acks; returns error and base offset."""
        producer_id, epoch = self.producers[name]
        batch = encode_batch(
            [(b"k", b"v%d" % index, (), _now_ms()) for index in range(count)],
            producer_id=producer_id,
            producer_epoch=epoch,
            base_sequence=sequence,
            is_transactional=is_transactional,
        )
        answer = self.ask(
            name,
            ProduceRequest(
                transactional_id=transactional_id,
                acks=-1,
                timeout_ms=10_000,
                topic_data=[
                    TopicProduceData(
                        name=self.topic,
                        partition_data=[PartitionProduceData(index=partition, records=batch)],
                    )
                ],
            ),
            version,
        )
        result = answer.responses[0].partition_responses[0]
        return error_code(result.error_code).name, result.base_offset

    def end(
        self, name: str, transactional_id: str, version: int, *, committed: bool
    ) -> tuple[str, int, int]:
        """Sends EndTxn; returns the error, the shown producer id, and the epoch.

        First waits until all markers of the transaction are written.
        """
        producer_id, epoch = self.producers[name]
        answer = self.ask(
            name,
            EndTxnRequest(
                transactional_id=transactional_id,
                producer_id=producer_id,
                producer_epoch=epoch,
                committed=committed,
            ),
            version,
        )
        if version >= 5 and not answer.error_code:
            self.producers[name] = answer.producer_id, answer.producer_epoch
        self.wait_until_ended(transactional_id)
        return (
            error_code(answer.error_code).name,
            self.shown(answer.producer_id),
            answer.producer_epoch,
        )

    def wait_until_ended(self, transactional_id: str) -> None:
        """Waits until no transaction of the transactional id is in a Prepare state.

        Then all markers of the transaction are written.
        """
        deadline = time.monotonic() + PATIENCE_S
        while self.describe(transactional_id)[1].startswith("Prepare"):
            assert time.monotonic() < deadline
            time.sleep(0.005)

    # State

    def describe(self, transactional_id: str) -> tuple[str, str, int, int, int, object]:
        """Returns error, state, producer id, epoch, timeout and partitions of a transaction."""
        answer = self.ask(
            "admin", DescribeTransactionsRequest(transactional_ids=[transactional_id]), 0
        )
        state = answer.transaction_states[0]
        return (
            error_code(state.error_code).name,
            state.transaction_state,
            self.shown(state.producer_id) if not state.error_code else state.producer_id,
            state.producer_epoch,
            state.transaction_timeout_ms,
            _shown_partitions((topic.topic, topic.partitions) for topic in state.topics),
        )

    def listed(self, prefix: str, states: Iterable[str] = ()) -> object:
        answer = self.ask("admin", ListTransactionsRequest(state_filters=list(states)), 0)
        return (
            error_code(answer.error_code).name,
            list(answer.unknown_state_filters),
            sorted(
                (each.transactional_id, self.shown(each.producer_id), each.transaction_state)
                for each in answer.transaction_states
                if each.transactional_id.startswith(prefix)
            ),
        )

    def active_producers(self, partition: int) -> object:
        answer = self.ask(
            "admin",
            DescribeProducersRequest(
                topics=[TopicRequest(name=self.topic, partition_indexes=[partition])]
            ),
            0,
        )
        found = answer.topics[0].partitions[0]
        return error_code(found.error_code).name, sorted(
            (
                self.shown(each.producer_id),
                each.producer_epoch,
                each.last_sequence,
                each.coordinator_epoch,
                each.current_txn_start_offset,
            )
            for each in found.active_producers
        )

    def latest(self, partition: int, *, committed: bool) -> object:
        answer = self.ask(
            "admin",
            ListOffsetsRequest(
                replica_id=-1,
                isolation_level=int(committed),
                topics=[
                    ListOffsetsTopic(
                        name=self.topic,
                        partitions=[ListOffsetsPartition(partition_index=partition, timestamp=-1)],
                    )
                ],
            ),
            6,
        )
        found = answer.topics[0].partitions[0]
        return error_code(found.error_code).name, found.offset

    def read(self, partition: int, *, committed: bool) -> Any:
        """Reads a partition from its start.

        Returns the error, the offsets, the batches and the aborted transactions.
        """
        answer = self.ask(
            "admin",
            FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=_MAX_BYTES,
                isolation_level=int(committed),
                topics=[
                    FetchTopic(
                        topic=self.topic,
                        partitions=[
                            FetchPartition(
                                partition=partition,
                                fetch_offset=0,
                                partition_max_bytes=_MAX_BYTES,
                            )
                        ],
                    )
                ],
            ),
            _FETCH,
        )
        data = answer.responses[0].partitions[0]
        batches = list(read_batches(data.records or b""))
        aborted = None
        if data.aborted_transactions is not None:
            # Kafka also lists transactions that begin after the batches.
            end = batches[-1].next_offset if batches else 0
            aborted = sorted(
                (self.shown(each.producer_id), each.first_offset)
                for each in data.aborted_transactions
                if each.first_offset < end
            )
        return (
            error_code(data.error_code).name,
            data.high_watermark,
            data.last_stable_offset,
            [self._batch(batch) for batch in batches],
            aborted,
        )

    def _batch(self, batch: Any) -> object:
        what: object = batch.record_count
        if batch.is_control:
            control = decode_control_record(batch.records()[0])
            assert isinstance(control.message, EndTxnMarker)
            what = ControlRecordType(control.type).name, control.message.coordinator_epoch
        return (
            batch.base_offset,
            what,
            self.shown(batch.producer_id),
            batch.producer_epoch,
            batch.base_sequence,
            batch.is_transactional,
            batch.attributes,
        )

    def offsets(self, group: str, *, require_stable: bool) -> object:
        answer = self.ask(
            "admin",
            OffsetFetchRequest(
                require_stable=require_stable,
                groups=[
                    OffsetFetchRequestGroup(
                        group_id=group,
                        topics=[
                            OffsetFetchRequestTopics(
                                name=self.topic, partition_indexes=list(range(PARTITIONS))
                            )
                        ],
                    )
                ],
            ),
            8,
        )
        found = answer.groups[0]
        return error_code(found.error_code).name, [
            (each.partition_index, each.committed_offset, error_code(each.error_code).name)
            for topic in found.topics
            for each in topic.partitions
        ]

    def transaction_log(self, transactional_id: str) -> list[object]:
        """Returns a transactional id's records in `__transaction_state`, without timestamps."""
        found: list[object] = []
        for partition in range(50):
            found += self._records_of(partition, transactional_id)
        return found

    def _records_of(self, partition: int, transactional_id: str) -> list[object]:
        answer = self.ask(
            "admin",
            FetchRequest(
                max_wait_ms=0,
                min_bytes=0,
                max_bytes=_MAX_BYTES,
                topics=[
                    FetchTopic(
                        topic="__transaction_state",
                        partitions=[
                            FetchPartition(partition=partition, partition_max_bytes=_MAX_BYTES)
                        ],
                    )
                ],
            ),
            _FETCH,
        )
        data = answer.responses[0].partitions[0]
        found: list[object] = []
        for batch in read_batches(data.records or b""):
            for record in batch.records():
                decoded = decode_coordinator_record(record, topic="__transaction_state")
                assert isinstance(decoded, CoordinatorRecord)
                key: Any = decoded.key
                if key.transactional_id == transactional_id:
                    found.append(self._shown_value(decoded))
        return found

    def _shown_value(self, record: CoordinatorRecord) -> object:
        value: Any = record.value
        if value is None:
            return None
        partitions = value.transaction_partitions
        return (
            record.version,
            self.shown(value.producer_id),
            value.producer_epoch,
            value.transaction_timeout_ms,
            value.transaction_status,
            None
            if partitions is None
            else _shown_partitions((each.topic, each.partition_ids) for each in partitions),
            value.transaction_start_timestamp_ms == -1,
            self.shown(value.previous_producer_id),
            self.shown(value.next_producer_id),
            value.next_producer_epoch,
            value.client_transaction_version,
        )
