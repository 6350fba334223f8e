"""The asyncio client. `Client` is the way in; producers and consumers are made by it."""

from .admin.topics import NewTopic
from .client import Client
from .cluster.metadata import TopicPartition
from .cluster.requests import BrokerAnswer
from .consumer.committed import CommittedOffset
from .consumer.consumer import Consumer
from .consumer.errors import CommitFailedError, NoCommittedOffsetError
from .consumer.fetch_requests import FetchedPartition
from .consumer.group_consumer import GroupConsumer
from .consumer.running.failures import Failure, failure_of
from .consumer.running.settings import Retries, RetryTopic, RunSummary, Stop
from .consumer.truncation import LogTruncatedError
from .consumer.waiting import FetchedBatch, FetchedRecords, FetchedValues
from .groups.assignor import Assignor
from .groups.subscription import TopicPattern
from .observing.hooks import AckEvent, ConnectionEvent, Hooks, RequestEvent, RetryEvent
from .producer.acks import Acks
from .producer.batch import Ack, BatchDelivery, Delivery
from .producer.errors import DeliveryError
from .producer.producer import Producer
from .producer.producer_record import CompressionName, EncodedRecords, ProducerRecord
from .settings import Address, ClientSettings, parse_bootstrap

__all__ = [
    "Ack",
    "AckEvent",
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
    "FetchedBatch",
    "FetchedPartition",
    "FetchedRecords",
    "FetchedValues",
    "GroupConsumer",
    "Hooks",
    "LogTruncatedError",
    "NewTopic",
    "NoCommittedOffsetError",
    "Producer",
    "ProducerRecord",
    "RequestEvent",
    "Retries",
    "RetryEvent",
    "RetryTopic",
    "RunSummary",
    "Stop",
    "TopicPartition",
    "TopicPattern",
    "failure_of",
    "parse_bootstrap",
]
