"""The asyncio client. `Client` is the way in; producers and consumers are made by it."""

from .admin import NewTopic, TopicPartition
from .client import Client
from .consumer import Consumer, FetchedRecords
from .fetching import FetchedPartition
from .producer import Producer
from .producing import Ack, Acks, DeliveryError, ProducerRecord
from .settings import ClientSettings

__all__ = [
    "Ack",
    "Acks",
    "Client",
    "ClientSettings",
    "Consumer",
    "DeliveryError",
    "FetchedPartition",
    "FetchedRecords",
    "NewTopic",
    "Producer",
    "ProducerRecord",
    "TopicPartition",
]
