"""Drives the transaction manager without an event loop, by events and responses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from kproto.client.commits.offset_requests import OffsetAndMetadata
from kproto.client.commits.transactional_commit import TransactionalCommit
from kproto.client.producer.producer_state import NO_PRODUCER_ID, ProducerIdAndEpoch
from kproto.client.producer.transactions.transaction_errors import TransactionApi
from kproto.client.producer.transactions.transaction_manager import TransactionManager
from kproto.client.producer.transactions.transaction_requests import (
    AddPartitions,
    DescribeTransaction,
    EndTransaction,
    InitProducerId,
    TransactionRequest,
    TransactionResult,
)
from kproto.client.producer.transactions.transaction_state import TransactionState
from kproto.client.settings import ClientSettings
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.wire.errors import BrokerConnectionError, BrokerResponseError, KprotoError

__all__ = [
    "BOTH",
    "FIRST",
    "LOST",
    "NEXT",
    "OTHER",
    "SETTINGS",
    "TP",
    "Driven",
    "S",
    "error",
    "offsets",
]

S = TransactionState
SETTINGS = ClientSettings(api_timeout_ms=10_000, metadata_wait_ms=2_000, retry_backoff_ms=100)
FIRST = ProducerIdAndEpoch(7, 0)
NEXT = ProducerIdAndEpoch(7, 1)
TP = ("t", 0)
OTHER = ("t", 1)

BOTH = pytest.mark.parametrize("version", [1, 2])


def error(name: str) -> BrokerResponseError:
    return error_of_code(code_of(name), "a request")


LOST = BrokerConnectionError("lost")


class Driven:
    """A manager and its clock; `send` takes the next request, which must be as expected."""

    def __init__(self, version: int = 1) -> None:
        self.manager = TransactionManager(SETTINGS, "id", 60_000)
        self.version = version
        self.now = 0.0

    def has(self, state: TransactionState) -> bool:
        return self.manager.state is state

    def send(self, expected: TransactionRequest) -> None:
        assert self.manager.next_request() == expected
        self.now = max(self.now, self.manager.not_before)
        self.manager.on_sent(expected, self.now)
        assert self.manager.next_request() is None

    def answer(self, producer: ProducerIdAndEpoch | None = None, **errors: str) -> None:
        of_partitions = {("t", int(name[1:])): error(its) for name, its in errors.items()}
        self.manager.on_response(TransactionResult(producer, of_partitions), self.now)

    def describe(self, state: str) -> None:
        """Responds to DescribeTransactions with the state of the last transaction."""
        self.manager.on_response(TransactionResult(state=state), self.now)

    def fail(self, fault: KprotoError, api: TransactionApi | None = None) -> None:
        self.manager.on_error(fault, self.now, api)

    def begun(self) -> Driven:
        self.manager.initialize()
        self.manager.use_version(self.version)
        self.send(InitProducerId(NO_PRODUCER_ID))
        self.answer(FIRST)
        self.manager.begin(self.now)
        return self

    def with_partition(self) -> Driven:
        """Adds a partition to the transaction, and sends a batch to this partition."""
        if self.manager.needs_partition(TP, self.now):
            self.manager.add_partitions([TP])
            if self.version == 2:
                self.send(DescribeTransaction())
                self.describe("CompleteCommit")
            else:
                self.send(AddPartitions((TP,)))
                self.answer()
        self.manager.on_batch_sent()
        return self

    def ended(self, *, is_commit: bool = True) -> None:
        (self.manager.begin_commit if is_commit else self.manager.begin_abort)()
        self.manager.end()
        self.send(EndTransaction(is_commit))
        self.answer(NEXT if self.version == 2 else None)


def offsets(
    group_id: str = "g", on_committed: Callable[[], None] | None = None
) -> TransactionalCommit:
    found = TransactionalCommit(group_id, None, {TP: OffsetAndMetadata(5)})
    return found if on_committed is None else found._replace(on_committed=on_committed)
