"""Tests internal records of real brokers: offsets, transactions, metadata, control records.

All tests of a Kafka version use one node. The tests can read the log folder of this node.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

import kproto
from kproto.messages import (
    EndTxnMarker,
    LeaderChangeMessage,
    OffsetCommitKey,
    OffsetCommitRequest,
    OffsetCommitValue,
    ProduceRequest,
    TransactionLogKey,
    TransactionLogValue,
)
from kproto.messages.offset_commit_request import (
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.records import Record, RecordBatch, encode_batch, read_batches
from kproto.stored.control_records import (
    ControlRecord,
    ControlRecordType,
    decode_control_record,
    encode_control_record,
)
from kproto.stored.coordinator_records import (
    CoordinatorRecord,
    decode_coordinator_record,
    encode_coordinator_record,
)
from kproto.stored.metadata_log import (
    MetadataRecord,
    decode_metadata_record,
    encode_metadata_record,
)
from kproto.study import annotate_records, faults, nodes
from tests.support.availability import not_available
from tests.support.brokers import versions
from tests.support.transactions import Transaction
from tools.kafka import KafkaJarsError, KafkaNode, KafkaStartError
from tools.setup.java import JavaNotFoundError
from tools.storm.group_log import commits_of, read_group_log

TOPIC = "greetings"
GROUP = "readers"

OFFSETS_COMMITTED, OFFSETS_ABORTED = "offsets-committed", "offsets-aborted"


@pytest.fixture(scope="module", params=versions())
def node(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[KafkaNode, Path]]:
    """Yields a node of each version, and its log folder."""
    if request.param == "external":
        pytest.skip("the logs of an external broker are not accessible")
    logs = tmp_path_factory.mktemp(f"logs-{request.param}")
    try:
        with KafkaNode(request.param, config={"log.dirs": str(logs)}) as started:
            asyncio.run(make_topic(started.bootstrap))
            yield started, logs
    except (KafkaStartError, KafkaJarsError, JavaNotFoundError) as error:
        not_available(f"a Kafka {request.param} of the test's own", error)


async def make_topic(bootstrap: str) -> None:
    async with kproto.Client(bootstrap) as client:
        await client.create_topics(kproto.NewTopic(TOPIC, 2, 1))
        await client.topic(TOPIC)


async def records_of(client: kproto.Client, topic: str) -> list[Record]:
    return [record async for record in client.consumer(topic, stop_at_end=True)]


async def until(happened: Callable[[], Awaitable[bool]]) -> None:
    """Waits until `happened` returns true."""
    async with asyncio.timeout(60):
        while not await happened():  # noqa: ASYNC110 - the broker has no event to wait for
            await asyncio.sleep(0.2)


async def test_committed_offsets_are_decoded_and_reencoded(node: tuple[KafkaNode, Path]) -> None:
    partitions = [
        OffsetCommitRequestPartition(
            partition_index=index, committed_offset=10 + index, committed_metadata="by hand"
        )
        for index in (0, 1)
    ]
    request = OffsetCommitRequest(
        group_id=GROUP, topics=[OffsetCommitRequestTopic(name=TOPIC, partitions=partitions)]
    )
    async with kproto.Client(node[0].bootstrap) as client:

        async def committed() -> bool:
            response = await client.request(request, version=8)
            return not response.topics[0].partitions[0].error_code

        # The coordinator is available some time after the first request has created its topic.
        await until(committed)
        stored = await records_of(client, "__consumer_offsets")
    decoded = [decode_coordinator_record(record) for record in stored]
    commits = {
        (it.key.topic, it.key.partition): it.value
        for it in decoded
        if isinstance(it, CoordinatorRecord)
        and isinstance(it.key, OffsetCommitKey)
        and isinstance(it.value, OffsetCommitValue)
        and it.key.group == GROUP
    }
    assert {tp: (it.offset, it.metadata) for tp, it in commits.items()} == {
        (TOPIC, 0): (10, "by hand"),
        (TOPIC, 1): (11, "by hand"),
    }
    for record, found in zip(stored, decoded, strict=True):
        assert encode_coordinator_record(found) == (record.key, record.value)


async def test_offsets_of_transactions_are_decoded_with_their_markers(
    node: tuple[KafkaNode, Path],
) -> None:
    """`__consumer_offsets` has a control batch per transaction, which is no coordinator record."""
    group = "transactional-readers"
    async with kproto.Client(node[0].bootstrap) as client:
        for offset, name in ((5, OFFSETS_COMMITTED), (6, OFFSETS_ABORTED)):
            its = Transaction(client, name)
            await its.begin()
            await its.commit_offset(group, TOPIC, 0, offset)
            await its.end(committed=name == OFFSETS_COMMITTED)

        async def both_are_marked() -> bool:
            return len(decode_control_batches(await batches_of_offsets(client))) == 2

        await until(both_are_marked)
        batches = await batches_of_offsets(client)
        stored = await records_of(client, "__consumer_offsets")
        written = await read_group_log(client, group)
    found = decode_control_batches(batches)
    assert [record.type for record in found] == [ControlRecordType.COMMIT, ControlRecordType.ABORT]
    assert len(stored) == sum(batch.record_count for batch in batches if not batch.is_control)
    assert all(isinstance(decode_coordinator_record(it), CoordinatorRecord) for it in stored)
    assert [commit.offset for commit in commits_of(written, TOPIC)] == [5, 6]
    tree = annotate_records(
        b"".join(batch.raw for batch in batches), records_of="__consumer_offsets"
    )
    assert faults(tree) == []
    shown = [node.meaning for node in nodes(tree) if node.name == "type"]
    assert shown.count("COMMIT") == shown.count("ABORT") == 1
    assert shown.count("OffsetCommit") >= 2


async def batches_of_offsets(client: kproto.Client) -> list[RecordBatch]:
    """Returns all batches of `__consumer_offsets`, ordered by partition."""
    info = await client.topic("__consumer_offsets")
    return [
        batch
        for partition in info.partitions
        for batch in read_batches(
            (await client.fetch(info.name, partition, 0, max_wait_ms=0)).records
        )
    ]


async def transaction(client: kproto.Client, name: str, *, commit: bool) -> None:
    """Writes one record to partition 0 in a transaction, and commits or aborts the transaction."""
    its = Transaction(client, name)
    await its.begin()
    await its.add_partition(TOPIC, 0)
    now_ms = time.time_ns() // 1_000_000  # the broker would soon delete an old record
    batch = encode_batch(
        [(None, b"hello", (), now_ms)],
        base_sequence=0,
        is_transactional=True,
        producer_id=its.producer_id,
        producer_epoch=its.producer_epoch,
    )
    produced = await client.request(
        ProduceRequest(
            transactional_id=name,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[
                TopicProduceData(
                    name=TOPIC, partition_data=[PartitionProduceData(index=0, records=batch)]
                )
            ],
        ),
        version=9,
    )
    assert produced.responses[0].partition_responses[0].error_code == 0
    await its.end(committed=commit)


async def test_transaction_records_and_markers_are_reencoded(node: tuple[KafkaNode, Path]) -> None:
    async with kproto.Client(node[0].bootstrap) as client:
        await transaction(client, "kept", commit=True)
        await transaction(client, "dropped", commit=False)

        async def both_are_marked() -> bool:
            return len(await control_records(client)) == 2

        await until(both_are_marked)
        found = await control_records(client)
        stored = await records_of(client, "__transaction_state")
    assert [record.type for record in found] == [ControlRecordType.COMMIT, ControlRecordType.ABORT]
    assert all(isinstance(record.message, EndTxnMarker) for record in found)
    decoded = [decode_coordinator_record(record) for record in stored]
    names = set()
    for record, it in zip(stored, decoded, strict=True):
        assert isinstance(it, CoordinatorRecord)
        assert isinstance(it.key, TransactionLogKey)
        assert isinstance(it.value, TransactionLogValue)
        assert encode_coordinator_record(it) == (record.key, record.value)
        names.add(it.key.transactional_id)
    assert names - {OFFSETS_COMMITTED, OFFSETS_ABORTED} == {"kept", "dropped"}


async def control_records(client: kproto.Client) -> list[ControlRecord]:
    fetched = await client.fetch(TOPIC, 0, 0, max_wait_ms=0)
    return decode_control_batches(list(read_batches(fetched.records)))


def decode_control_batches(batches: list[RecordBatch]) -> list[ControlRecord]:
    """Returns the control records, and checks that each is reencoded unchanged."""
    found = []
    for batch in batches:
        for record in batch.records() if batch.is_control else ():
            found.append(decode_control_record(record))
            assert encode_control_record(found[-1]) == (record.key, record.value)
    return found


def test_metadata_log_is_decoded_and_reencoded(node: tuple[KafkaNode, Path]) -> None:
    (segment,) = (node[1] / "__cluster_metadata-0").glob("*.log")
    # The file is preallocated, so zeros follow the written batches.
    batches = whole_batches(segment.read_bytes())
    names = set()
    for batch in batches:
        for record in () if batch.is_control else batch.records():
            it = decode_metadata_record(record)
            assert isinstance(it, MetadataRecord)
            assert encode_metadata_record(it) == record.value
            names.add(type(it.message).__name__)
    assert names >= {
        "FeatureLevelRecord",
        "NoOpRecord",
        "PartitionRecord",
        "RegisterBrokerRecord",
        "RegisterControllerRecord",
        "TopicRecord",
    }
    elections = [
        record.message
        for record in decode_control_batches(batches)
        if record.type == ControlRecordType.LEADER_CHANGE
    ]
    assert elections
    for election in elections:
        assert isinstance(election, LeaderChangeMessage)
        assert election.leader_id == 1
        assert [voter.voter_id for voter in election.voters] == [1]


def test_checkpoint_of_a_new_node_is_decoded(node: tuple[KafkaNode, Path]) -> None:
    checkpoint = node[1] / "bootstrap.checkpoint"
    if not checkpoint.exists():
        checkpoint = next((node[1] / "__cluster_metadata-0").glob("*.checkpoint"))
    batches = whole_batches(checkpoint.read_bytes())
    control = decode_control_batches(batches)
    assert control[0].type == ControlRecordType.SNAPSHOT_HEADER
    assert control[-1].type == ControlRecordType.SNAPSHOT_FOOTER
    messages = [
        decode_metadata_record(record)
        for batch in batches
        if not batch.is_control
        for record in batch.records()
    ]
    assert any(
        isinstance(it, MetadataRecord) and type(it.message).__name__ == "FeatureLevelRecord"
        for it in messages
    )


def whole_batches(data: bytes) -> list[RecordBatch]:
    """Returns the batches of a log file, up to the zeros after the last batch."""
    found = []
    position = 0
    while data[position : position + 12].strip(b"\0"):
        batch = RecordBatch(data, position)
        batch.check()
        found.append(batch)
        position += batch.size_in_bytes
    return found
