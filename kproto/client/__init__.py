"""The asyncio client. `Client` is the entry point; it creates producers and consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy_names import lazy_names

if TYPE_CHECKING:
    from .admin.topics import NewTopic
    from .client import Client
    from .commits.errors import CommitFailedError, NoCommittedOffsetError
    from .commits.offset_requests import CommittedOffset
    from .consumer.consumer import Consumer
    from .consumer.group_consumer import GroupConsumer
    from .consumer.share_consumer import ShareConsumer
    from .fetch.completed_fetch import FetchedBatch, FetchedRecords, FetchedValues
    from .fetch.fetch_requests import FetchedPartition
    from .fetch.position_validation import LogTruncatedError
    from .fetch.share.acquisition import LockLostError, ShareRecord
    from .fetch.share.requests import AcknowledgeResult
    from .groups.assignor import Assignor
    from .groups.subscription import TopicPattern
    from .metadata.cluster import TopicPartition
    from .metadata.request_router import BrokerAnswer
    from .observing.hooks import AckEvent, ConnectionEvent, Hooks, RequestEvent, RetryEvent
    from .processing.failure_headers import Failure, failure_of
    from .processing.handler_transaction import HandlerTransaction
    from .processing.handlers import Stop
    from .processing.run_summary import RunSummary, ShareRunSummary
    from .processing.settings import Retries, RetryTopic
    from .producer.acks import Acks
    from .producer.batch import Ack, BatchDelivery, Delivery
    from .producer.errors import (
        DeliveryError,
        FatalTransactionError,
        TransactionAbortedError,
        TransactionError,
    )
    from .producer.producer import Producer
    from .producer.settings import CompressionName
    from .producer.transactions.open_transaction import OpenTransaction
    from .producer.transactions.prepared_transaction import PreparedTransactionState
    from .producer.transactions.transaction import Transaction
    from .producer_record import EncodedRecords, ProducerRecord
    from .settings import Address, ClientSettings, parse_bootstrap

__all__ = [
    "Ack",
    "AckEvent",
    "AcknowledgeResult",
    "Acks",
    "Address",
    "Assignor",
    "BatchDelivery",
    "BrokerAnswer",
    "Client",
    "ClientSettings",
    "CommitFailedError",
    "CommittedOffset",
    "CompressionName",
    "ConnectionEvent",
    "Consumer",
    "Delivery",
    "DeliveryError",
    "EncodedRecords",
    "Failure",
    "FatalTransactionError",
    "FetchedBatch",
    "FetchedPartition",
    "FetchedRecords",
    "FetchedValues",
    "GroupConsumer",
    "HandlerTransaction",
    "Hooks",
    "LockLostError",
    "LogTruncatedError",
    "NewTopic",
    "NoCommittedOffsetError",
    "OpenTransaction",
    "PreparedTransactionState",
    "Producer",
    "ProducerRecord",
    "RequestEvent",
    "Retries",
    "RetryEvent",
    "RetryTopic",
    "RunSummary",
    "ShareConsumer",
    "ShareRecord",
    "ShareRunSummary",
    "Stop",
    "TopicPartition",
    "TopicPattern",
    "Transaction",
    "TransactionAbortedError",
    "TransactionError",
    "failure_of",
    "parse_bootstrap",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "Ack": ".producer.batch",
            "AckEvent": ".observing.hooks",
            "AcknowledgeResult": ".fetch.share.requests",
            "Acks": ".producer.acks",
            "Address": ".settings",
            "Assignor": ".groups.assignor",
            "BatchDelivery": ".producer.batch",
            "BrokerAnswer": ".metadata.request_router",
            "Client": ".client",
            "ClientSettings": ".settings",
            "CommitFailedError": ".commits.errors",
            "CommittedOffset": ".commits.offset_requests",
            "CompressionName": ".producer.settings",
            "ConnectionEvent": ".observing.hooks",
            "Consumer": ".consumer.consumer",
            "Delivery": ".producer.batch",
            "DeliveryError": ".producer.errors",
            "EncodedRecords": ".producer_record",
            "Failure": ".processing.failure_headers",
            "FatalTransactionError": ".producer.errors",
            "FetchedBatch": ".fetch.completed_fetch",
            "FetchedPartition": ".fetch.fetch_requests",
            "FetchedRecords": ".fetch.completed_fetch",
            "FetchedValues": ".fetch.completed_fetch",
            "GroupConsumer": ".consumer.group_consumer",
            "HandlerTransaction": ".processing.handler_transaction",
            "Hooks": ".observing.hooks",
            "LockLostError": ".fetch.share.acquisition",
            "LogTruncatedError": ".fetch.position_validation",
            "NewTopic": ".admin.topics",
            "NoCommittedOffsetError": ".commits.errors",
            "OpenTransaction": ".producer.transactions.open_transaction",
            "PreparedTransactionState": ".producer.transactions.prepared_transaction",
            "Producer": ".producer.producer",
            "ProducerRecord": ".producer_record",
            "RequestEvent": ".observing.hooks",
            "Retries": ".processing.settings",
            "RetryEvent": ".observing.hooks",
            "RetryTopic": ".processing.settings",
            "RunSummary": ".processing.run_summary",
            "ShareConsumer": ".consumer.share_consumer",
            "ShareRecord": ".fetch.share.acquisition",
            "ShareRunSummary": ".processing.run_summary",
            "Stop": ".processing.handlers",
            "TopicPartition": ".metadata.cluster",
            "TopicPattern": ".groups.subscription",
            "Transaction": ".producer.transactions.transaction",
            "TransactionAbortedError": ".producer.errors",
            "TransactionError": ".producer.errors",
            "failure_of": ".processing.failure_headers",
            "parse_bootstrap": ".settings",
        },
    )
