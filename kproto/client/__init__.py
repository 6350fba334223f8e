"""The asyncio client. `Client` is the entry point; it creates producers and consumers."""

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
