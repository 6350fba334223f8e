"""Tests transactions of a producer on the embedded broker: commit, abort, fencing, bad input."""

from __future__ import annotations

import asyncio

import pytest

from kproto import (
    Client,
    ConfigurationError,
    Delivery,
    DeliveryError,
    EncodeError,
    FatalTransactionError,
    ProducerFencedError,
    TransactionAbortedError,
    TransactionError,
)
from kproto.broker import BrokerSettings
from kproto.broker.faults import Delay
from kproto.client.producer_record import EncodedRecords
from kproto.messages import (
    AddPartitionsToTxnRequest,
    EndTxnRequest,
    InitProducerIdRequest,
    ProduceRequest,
)
from kproto.protocol.connection import ReceivedRequest
from tests.unit.client.producer.transactions.transactional import (
    BOTH_VERSIONS,
    ID,
    QUICK,
    committed,
    scene,
    state_of,
    written,
)

pytestmark = BOTH_VERSIONS


# --- Commit and abort ---


async def test_records_of_all_calls_are_committed_together(version: int) -> None:
    async with (
        scene(version, partitions=2) as (_, client),
        client.producer(transactional_id=ID) as producer,
    ):
        async with producer.transaction():
            ack = await producer.send("t", b"1", partition=0)
            await producer.send_many("t", [b"2", b"3"])
            delivery = await producer.enqueue("t", b"4", partition=1)
            encoded = EncodedRecords(b"\x0e\x00\x00\x00\x01\x02\x35\x00", 1)
            batch = await producer.send_batch("t", 1, encoded)
            assert await committed(client) == []
        assert (ack.topic, ack.offset) == ("t", 0)
        assert delivery.done()
        assert batch.done()
        assert sorted(filter(None, await committed(client))) == [b"1", b"2", b"3", b"4", b"5"]


async def test_exception_in_the_block_aborts_the_transaction(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"1")
                await producer.enqueue("t", b"2")
                raise ValueError("no invoice")

        with pytest.raises(ValueError, match="no invoice") as raised:
            await block()
        assert not hasattr(raised.value, "__notes__")
        assert await state_of(client) == "CompleteAbort"
        async with producer.transaction():
            await producer.send("t", b"3")
        assert await committed(client) == [b"3"]
        assert (await written(client))[0] == b"1"


async def test_aborted_block_ends_without_an_error(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:
        async with producer.transaction() as transaction:
            await producer.send("t", b"1")
            await transaction.abort()
            with pytest.raises(ConfigurationError, match="no transaction is open"):
                await producer.send("t", b"2")
            with pytest.raises(ConfigurationError, match="has ended"):
                await transaction.commit_offsets({("t", 0): 1}, group_id="g")
            await transaction.abort()
        async with producer.transaction():
            await producer.send("t", b"3")
        assert await committed(client) == [b"3"]


async def test_many_transactions_keep_the_order_of_their_records(version: int) -> None:
    async with (
        scene(version, partitions=3) as (_, client),
        client.producer(transactional_id=ID) as producer,
    ):
        expected = []
        for number in range(30):
            try:
                async with producer.transaction():
                    values = [b"%d.%d" % (number, at) for at in range(number % 7)]
                    for value in values:
                        await producer.enqueue("t", value, partition=0)
                    await producer.enqueue("t", b"x", partition=number % 3)
                    if number % 4 == 3:
                        raise ValueError
            except ValueError:
                continue
            expected += values
            expected += [b"x"] * (number % 3 == 0)
        consumer = client.consumer([("t", 0)], stop_at_end=True, read_committed=True)
        assert [record.value async for record in consumer] == expected


async def test_embedded_broker_returns_committed_records(version: int) -> None:
    async with (
        scene(version) as (broker, client),
        client.producer() as plain,
        client.producer(transactional_id=ID) as producer,
        client.producer(transactional_id="other") as other,
    ):

        def values(*, read_committed: bool) -> list[bytes | None]:
            found = broker.records("t", read_committed=read_committed)
            return [record.value for record in found]

        await plain.send("t", b"plain")
        async with producer.transaction():
            await producer.send("t", b"committed")
        async with producer.transaction() as transaction, other.transaction():
            await producer.send("t", b"aborted")
            await other.send("t", b"other")
            await plain.send("t", b"between")
            await transaction.abort()
        async with producer.transaction():
            await producer.send("t", b"committed later")
        before = [b"plain", b"committed", b"other", b"between", b"committed later"]
        assert values(read_committed=True) == before == await committed(client)
        async with producer.transaction():
            await producer.send("t", b"open")
            await plain.send("t", b"after")
            assert values(read_committed=True) == before
            assert values(read_committed=False)[-2:] == [b"open", b"after"]
        assert values(read_committed=True) == [*before, b"open", b"after"]


async def test_empty_transaction_sends_no_request(version: int) -> None:
    asked: list[str] = []

    def note(request: ReceivedRequest) -> None:
        asked.append(request.name)

    async with scene(version) as (broker, client):
        broker.control(note, request=EndTxnRequest)
        async with client.producer(transactional_id=ID) as producer:
            async with producer.transaction():
                pass
            with pytest.raises(ValueError, match="x"):
                async with producer.transaction():
                    raise ValueError("x")
            async with producer.transaction() as transaction:
                await transaction.abort()
    assert asked == []


async def test_lingering_records_are_sent_at_the_commit(version: int) -> None:
    async with (
        scene(version) as (_, client),
        client.producer(transactional_id=ID, linger_ms=2_000) as producer,
    ):
        async with producer.transaction():
            deliveries = [await producer.enqueue("t", b"%d" % at) for at in range(5)]
        assert [each.result().offset for each in deliveries] == [0, 1, 2, 3, 4]


async def test_unsent_records_of_an_abort_fail(version: int) -> None:
    async with scene(version) as (_, client):
        async with client.producer(transactional_id=ID, linger_ms=2_000) as producer:
            async with producer.transaction() as transaction:
                delivery = await producer.enqueue("t", b"1")
                await transaction.abort()
            with pytest.raises(DeliveryError) as raised:
                await delivery
            assert isinstance(raised.value.cause, TransactionAbortedError)
        # The close of the producer does not raise the failure of a record that was aborted.
        assert await written(client) == []


async def test_call_that_waits_for_metadata_at_an_abort_sends_nothing(version: int) -> None:
    async with scene(version) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            async with producer.transaction() as transaction:
                waiting = asyncio.create_task(producer.send("later", b"1"))
                await asyncio.sleep(0.02)
                await transaction.abort()
                broker.create_topic("later")
                with pytest.raises(DeliveryError, match="aborted"):
                    await waiting
            async with producer.transaction():
                await producer.send("later", b"2")
        assert await written(client, "later") == [b"2"]


async def test_commit_waits_for_calls_that_wait_for_metadata(version: int) -> None:
    async with scene(version) as (broker, client):
        async with client.producer(transactional_id=ID) as producer:
            async with producer.transaction():
                waiting = asyncio.create_task(producer.send("later", b"1"))
                await asyncio.sleep(0.02)
                asyncio.get_running_loop().call_later(0.05, broker.create_topic, "later")
            assert waiting.done()
        assert await committed(client, "later") == [b"1"]


# --- Outside of a transaction ---


async def test_sends_outside_of_a_transaction_are_refused(version: int) -> None:
    async with scene(version) as (_, client):
        async with client.producer(transactional_id=ID) as producer:
            for send in (
                lambda: producer.send("t", b"1"),
                lambda: producer.enqueue("t", b"1"),
                lambda: producer.send_many("t", [b"1"]),
                lambda: producer.send_batch("t", 0, EncodedRecords(b"1", 1)),
            ):
                with pytest.raises(ConfigurationError, match=r"async with producer.transaction"):
                    await send()
        assert await written(client) == []


async def test_producer_has_one_transaction_at_a_time(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:
        async with producer.transaction() as first:
            with pytest.raises(ConfigurationError, match="open transaction"):
                async with producer.transaction():
                    pass
            with pytest.raises(ConfigurationError, match="begun already"):
                async with first:
                    pass
            await producer.send("t", b"1")
        with pytest.raises(ConfigurationError, match="begun already"):
            async with first:
                pass
        assert await committed(client) == [b"1"]


async def test_transaction_needs_its_block(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:
        transaction = producer.transaction()
        with pytest.raises(ConfigurationError, match="async with"):
            await transaction.abort()
        with pytest.raises(ConfigurationError, match="async with"):
            await transaction.commit_offsets({}, group_id="g")


async def test_producer_without_an_id_has_no_transactions(version: int) -> None:
    async with scene(version) as (_, client), client.producer() as producer:
        with pytest.raises(ConfigurationError, match="no transactional id"):
            producer.transaction()


async def test_first_transaction_initializes_a_producer_without_a_block(version: int) -> None:
    async with scene(version) as (_, client):
        producer = client.producer(transactional_id=ID)
        async with producer.transaction():
            await producer.send("t", b"1")
        await producer.close()
        with pytest.raises(ConfigurationError, match="closed"):
            async with producer.transaction():
                pass
        assert await committed(client) == [b"1"]


async def test_transaction_that_is_being_committed_cannot_be_aborted(version: int) -> None:
    async with scene(version) as (broker, client), client.producer(transactional_id=ID) as producer:
        received = asyncio.Event()

        def delay(request: ReceivedRequest) -> Delay:
            received.set()
            return Delay(50)

        broker.control(delay, request=EndTxnRequest)
        transaction = producer.transaction()

        async def block() -> None:
            async with transaction:
                await producer.send("t", b"1")

        task = asyncio.create_task(block())
        await received.wait()
        with pytest.raises(ConfigurationError, match="being committed"):
            await transaction.abort()
        await task
        assert await committed(client) == [b"1"]


async def test_another_task_aborts_a_transaction_whose_records_are_sent(version: int) -> None:
    async with scene(version) as (broker, client), client.producer(transactional_id=ID) as producer:
        received = asyncio.Event()

        def delay(request: ReceivedRequest) -> Delay:
            received.set()
            return Delay(50)

        broker.control(delay, request=ProduceRequest, times=1)
        transaction = producer.transaction()

        async def block() -> None:
            async with transaction:
                await producer.enqueue("t", b"1")

        task = asyncio.create_task(block())
        await received.wait()
        await transaction.abort()
        await task
        async with producer.transaction():
            await producer.send("t", b"2")
        assert await committed(client) == [b"2"]


# --- Failed records ---


async def test_awaited_failure_aborts_the_transaction_at_the_commit(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"1")
                with pytest.raises(DeliveryError):
                    await producer.send("missing", b"2")
                with pytest.raises(TransactionAbortedError, match="UNKNOWN_TOPIC"):
                    await producer.send("t", b"3")

        with pytest.raises(TransactionAbortedError) as raised:
            await block()
        assert isinstance(raised.value, TransactionError)
        assert raised.value.transactional_id == ID
        assert "UNKNOWN_TOPIC_OR_PARTITION" in str(raised.value.cause)
        assert await state_of(client) == "CompleteAbort"
        async with producer.transaction():
            await producer.send("t", b"4")
        assert await committed(client) == [b"4"]


async def test_record_that_a_broker_refuses_aborts_the_transaction(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"1")
                await producer.enqueue("t", bytes(2_000_000))

        with pytest.raises(TransactionAbortedError, match="MESSAGE_TOO_LARGE") as raised:
            await block()
        cause = raised.value.__cause__
        assert isinstance(cause, DeliveryError)
        assert [len(record.value or b"") for record in cause.records] == [2_000_000]
        async with producer.transaction():
            await producer.send("t", b"3")
        assert await committed(client) == [b"3"]


async def test_invalid_record_has_its_own_error_and_all_records_fail(version: int) -> None:
    async with scene(version) as (broker, client), client.producer(transactional_id=ID) as producer:
        broker.create_topic("compacted", configs={"cleanup.policy": "compact"})
        deliveries: list[Delivery] = []

        async def block() -> None:
            async with producer.transaction():
                deliveries.extend(
                    [
                        await producer.enqueue("compacted", b"v", key=key)
                        for key in (b"k", None, b"k")
                    ]
                )

        with pytest.raises(TransactionAbortedError, match="INVALID_RECORD"):
            await block()
        errors = [str(delivery.exception()) for delivery in deliveries]
        assert all("INVALID_RECORD" in error for error in errors)
        assert errors[0] == errors[2] != errors[1]
        assert await written(client, "compacted") == []


async def test_record_that_cannot_be_encoded_does_not_abort_the_transaction(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:
        async with producer.transaction():
            with pytest.raises(EncodeError):
                await producer.send("t", "text")  # type: ignore[arg-type]
            await producer.send("t", b"1")
        assert await committed(client) == [b"1"]


async def test_raised_failure_of_a_record_aborts_and_is_raised(version: int) -> None:
    async with scene(version) as (_, client), client.producer(transactional_id=ID) as producer:

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"1")
                await producer.send("t", bytes(2_000_000))

        with pytest.raises(DeliveryError, match="MESSAGE_TOO_LARGE"):
            await block()
        assert await state_of(client) == "CompleteAbort"


# --- Fencing ---


async def test_new_producer_fences_the_earlier_one_and_aborts_its_transaction(version: int) -> None:
    async with (
        scene(version) as (broker, client),
        Client(broker.bootstrap, QUICK) as other,
        client.producer(transactional_id=ID) as fenced,
    ):

        async def block() -> None:
            async with fenced.transaction():
                await fenced.send("t", b"1")
                async with other.producer(transactional_id=ID) as producer:
                    async with producer.transaction():
                        await producer.send("t", b"2")
                    assert await committed(client) == [b"2"]

        with pytest.raises(ProducerFencedError, match="taken over") as raised:
            await block()
        assert isinstance(raised.value, FatalTransactionError)
        assert raised.value.name == "PRODUCER_FENCED"
        for _ in range(2):
            with pytest.raises(ProducerFencedError):
                async with fenced.transaction():
                    raise AssertionError("the transaction has begun")
        with pytest.raises(ProducerFencedError):
            await fenced.send("t", b"3")
    # An exception of the block is raised itself.


async def test_fenced_producer_raises_the_exception_of_the_block(version: int) -> None:
    async with scene(version) as (broker, client), Client(broker.bootstrap, QUICK) as other:
        async with client.producer(transactional_id=ID) as fenced:

            async def block() -> None:
                async with fenced.transaction():
                    await fenced.send("t", b"1")
                    async with other.producer(transactional_id=ID):
                        await fenced.send("t", b"2")

            with pytest.raises(DeliveryError, match="INVALID_PRODUCER_EPOCH") as raised:
                await block()
            assert "taken over" in raised.value.__notes__[0]
        assert await committed(client) == []


@pytest.mark.parametrize("continues_by", ["commit", "send", "offsets", "abort"])
async def test_producer_that_was_replaced_while_it_was_stopped_is_fenced(
    version: int, continues_by: str
) -> None:
    """The producer stops, as after SIGSTOP, for longer than the timeout of its transaction."""
    async with (
        scene(version) as (broker, client),
        Client(broker.bootstrap, QUICK) as other,
        client.producer(transactional_id=ID, transaction_timeout_ms=100) as zombie,
    ):

        async def block() -> None:
            async with zombie.transaction() as transaction:
                await zombie.send("t", b"1")
                await asyncio.sleep(0.15)
                async with other.producer(transactional_id=ID) as producer:
                    async with producer.transaction():
                        await producer.send("t", b"2")
                    if continues_by == "send":
                        await zombie.enqueue("t", b"3")
                    elif continues_by == "offsets":
                        await transaction.commit_offsets({("t", 0): 9}, group_id="g")
                    elif continues_by == "abort":
                        await transaction.abort()

        with pytest.raises((FatalTransactionError, TransactionAbortedError)):
            await block()
        with pytest.raises(ProducerFencedError):
            async with zombie.transaction():
                await zombie.send("t", b"4")
        async with client.consumer([("t", 0)], group="g", auto_commit=False) as consumer:
            assert await consumer.committed(("t", 0)) == {("t", 0): None}
        async with other.producer(transactional_id=ID) as producer, producer.transaction():
            await producer.send("t", b"5")
        assert await committed(client) == [b"2", b"5"]
        assert await state_of(client) == "CompleteCommit"


async def test_transaction_that_exceeds_its_timeout_is_aborted_by_the_broker(version: int) -> None:
    async with scene(version) as (_, client):
        async with client.producer(transactional_id=ID, transaction_timeout_ms=100) as producer:

            async def block() -> None:
                async with producer.transaction():
                    await producer.send("t", b"1")
                    await asyncio.sleep(0.15)

            with pytest.raises(FatalTransactionError, match=r"transaction_timeout_ms \(100\)"):
                await block()
        assert await committed(client) == []
        assert await state_of(client) == "CompleteAbort"


async def test_timeout_above_the_limit_of_the_brokers_is_one_clear_error(version: int) -> None:
    async with scene(version) as (_, client):
        producer = client.producer(transactional_id=ID, transaction_timeout_ms=10**8)
        with pytest.raises(FatalTransactionError, match=r"transaction\.max\.timeout\.ms") as raised:
            async with producer:
                raise AssertionError("the producer is initialized")
        assert "INVALID_TRANSACTION_TIMEOUT" in str(raised.value)


# --- Closing ---


async def test_closed_producer_aborts_its_transaction(version: int) -> None:
    async with scene(version) as (_, client):
        producer = client.producer(transactional_id=ID)

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"1")
                await producer.close()

        with pytest.raises(TransactionAbortedError, match="closed"):
            await block()
        assert await state_of(client) == "CompleteAbort"


async def test_closed_client_aborts_the_transactions_of_its_producers(version: int) -> None:
    async with scene(version) as (broker, observer):
        client = Client(broker.bootstrap, QUICK)
        await client.refresh([])
        producer = client.producer(transactional_id=ID)

        async def block() -> None:
            async with producer.transaction():
                await producer.send("t", b"1")
                await client.close()

        with pytest.raises(TransactionAbortedError, match="closed"):
            await block()
        assert await state_of(observer) == "CompleteAbort"


# --- Requests of the versions ---


async def test_version_decides_which_requests_are_sent(version: int) -> None:
    versions: dict[str, int] = {}

    def note(request: ReceivedRequest) -> None:
        versions[request.name.removesuffix("Request")] = request.version

    async with scene(version) as (broker, client):
        broker.control(note)
        async with (
            client.producer(transactional_id=ID) as producer,
            producer.transaction() as transaction,
        ):
            await producer.send("t", b"1")
            await transaction.commit_offsets({("t", 0): 1}, group_id="g")
    wanted = {
        0: {
            "Produce": 11,
            "TxnOffsetCommit": 4,
            "EndTxn": 4,
            "AddPartitionsToTxn": 3,
            "AddOffsetsToTxn": 4,
        },
        2: {"Produce": 13, "TxnOffsetCommit": 5, "EndTxn": 5},
    }
    names = {*wanted[0], *wanted[2]}
    assert {name: its for name, its in versions.items() if name in names} == wanted[version]


async def test_partitions_are_added_once_in_each_transaction(version: int) -> None:
    added: list[list[int]] = []

    def note(request: ReceivedRequest) -> None:
        message = request.message
        assert isinstance(message, AddPartitionsToTxnRequest)
        added.append(sorted(message.v3_and_below_topics[0].partitions))

    async with scene(version, partitions=2) as (broker, client):
        broker.control(note, request=AddPartitionsToTxnRequest)
        async with client.producer(transactional_id=ID) as producer:
            for _ in range(2):
                async with producer.transaction():
                    await producer.send("t", b"1", partition=0)
                    await producer.send("t", b"2", partition=0)
                    await producer.send("t", b"3", partition=1)
    assert added == ([[0], [1]] * 2 if version == 0 else [])


async def test_epoch_is_kept_in_version_1_and_bumped_in_version_2(version: int) -> None:
    asked: list[str] = []

    def note(request: ReceivedRequest) -> None:
        asked.append(request.name)

    async with scene(version) as (broker, client):
        broker.control(note, request=InitProducerIdRequest)
        async with client.producer(transactional_id=ID) as producer:
            for number in range(3):
                async with producer.transaction():
                    await producer.send("t", b"%d" % number)
        batches = broker.topics["t"].partitions[0].log
        epochs = [batch.producer_epoch for batch in batches if not batch.is_control]
        sequences = [batch.base_sequence for batch in batches if not batch.is_control]
    assert epochs == ([0, 0, 0] if version == 0 else [0, 1, 2])
    assert sequences == ([0, 1, 2] if version == 0 else [0, 0, 0])
    assert asked == ["InitProducerIdRequest"]


async def test_old_broker_commits_and_aborts(version: int) -> None:
    settings = BrokerSettings(release="0.11.0.3") if version == 0 else BrokerSettings(release="2.0")
    async with scene(version, broker_settings=settings) as (_, client):
        async with client.producer(transactional_id=ID) as producer:
            async with producer.transaction() as transaction:
                await producer.send("t", b"1")
                await transaction.commit_offsets({("t", 0): 1}, group_id="g")

            async def block() -> None:
                async with producer.transaction():
                    await producer.send("t", b"2")
                    raise ValueError("x")

            with pytest.raises(ValueError, match="x"):
                await block()
            async with producer.transaction():
                await producer.send("t", b"3")
        assert await committed(client) == [b"1", b"3"]


async def test_broker_without_transactions_is_named(version: int) -> None:
    settings = BrokerSettings(release="0.10.2")
    async with scene(version, broker_settings=settings) as (_, client):
        producer = client.producer(transactional_id=ID)
        with pytest.raises(FatalTransactionError, match=r"older than Kafka 0\.11"):
            async with producer:
                raise AssertionError("the producer is initialized")
