"""Tests the blocking client on real brokers (newest and last 3.x release) and the embedded one."""

from __future__ import annotations

import contextlib
import threading
import uuid
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import kproto
import kproto.sync
from tests.support.any_broker import EMBEDDED, real_broker
from tests.support.brokers import Brokers
from tests.support.embedded import threaded_broker


@pytest.fixture
def blocking(broker_version: str, kafka_brokers: Brokers) -> Iterator[kproto.sync.Client]:
    with contextlib.ExitStack() as ends:
        if broker_version == EMBEDDED:
            bootstrap = ends.enter_context(threaded_broker()).bootstrap
        else:
            bootstrap = real_broker(broker_version, kafka_brokers).bootstrap
        yield ends.enter_context(kproto.sync.Client(bootstrap))


@pytest.fixture
def name(blocking: kproto.sync.Client) -> str:
    """A topic with two partitions."""
    name = f"blocking-{uuid.uuid4().hex}"
    blocking.create_topics(kproto.NewTopic(name, 2))
    return name


def test_records_come_back_by_every_way_of_reading(blocking: kproto.sync.Client, name: str) -> None:
    values = {b"%d" % number for number in range(3_000)}
    with blocking.producer() as producer:
        assert len(producer.send_many(name, values)) == 3_000
        assert producer.send(name, None, key=b"k").offset >= 0
    wanted = {*values, None}
    assert {record.value for record in blocking.consumer(name, stop_at_end=True)} == wanted
    read = blocking.consumer(name, stop_at_end=True)
    assert sum(len(fetched.values) for fetched in read.values()) == 3_001
    with blocking.consumer(name, group=name) as consumer:
        found = 0
        while found < 3_001:
            found += sum(map(len, consumer.poll(10_000).values()))
        consumer.commit()
        assert not any(consumer.lag().values())


def test_threads_share_a_producer_and_handlers_run_in_threads(
    blocking: kproto.sync.Client, name: str
) -> None:
    with blocking.producer() as producer, ThreadPoolExecutor(20) as threads:
        acks = [*threads.map(lambda number: producer.send(name, b"%d" % number), range(200))]
    assert len({(ack.partition, ack.offset) for ack in acks}) == 200
    seen: set[bytes | None] = set()
    lock = threading.Lock()

    def handle(record: kproto.Record) -> None:
        with lock:
            seen.add(record.value)
            if len(seen) == 200:
                raise kproto.Stop(done=True)

    with blocking.consumer(name, group=name) as consumer:
        assert consumer.run(handle, workers=8, order="none").handled >= 199
    committed = blocking.committed_offsets(name)
    assert sum(each.offset for each in committed.values()) >= 190


def test_transaction_commits_records_with_offsets(blocking: kproto.sync.Client, name: str) -> None:
    with blocking.producer(transactional_id=name) as producer:
        with producer.transaction() as transaction:
            producer.send(name, b"kept", partition=0)
            transaction.commit_offsets({(name, 0): 7}, group_id=name)
        with pytest.raises(LookupError), producer.transaction():  # noqa: PT012
            producer.send(name, b"aborted", partition=0)
            raise LookupError
    reader = blocking.consumer(name, stop_at_end=True, read_committed=True)
    assert [record.value for record in reader] == [b"kept"]
    assert blocking.committed_offsets(name)[name, 0].offset == 7
    assert blocking.admin.describe_consumer_groups([name])[name].group_id == name
