"""`EncodingProducer`: a producer with codecs; encodes keys and values before it sends records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any

from ...codecs.record_encoder import RecordEncoder
from ...records.type_variables import K, V
from ..metadata.cluster_view import ClusterView
from ..producer_record import Headers, ProducerRecord, check_many
from .acks import Acks
from .batch import Ack, Delivery
from .producer import Producer
from .settings import ProducerSettings
from .unsent_elements import send_converted

__all__ = ["EncodingProducer"]


class EncodingProducer(Producer[K, V]):
    """Encodes the keys and values of `send`, `enqueue` and `send_many` by `encoder`.

    The partitioner, the hooks and the records of a DeliveryError have the encoded keys and values.
    """

    def __init__(
        self, view: ClusterView, settings: ProducerSettings, encoder: RecordEncoder[K, V]
    ) -> None:
        self._encoder = encoder
        super().__init__(view, settings)

    async def send(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Ack:
        """Encodes and sends one record, and waits until it is acked; see `Producer.send`.

        Raises EncodeError, and sends nothing, if a codec cannot encode the key or the value.
        """
        value_bytes: Any
        key_bytes: Any
        key_bytes, value_bytes, headers = self._encoder.encode(topic, key, value, headers)
        return await super().send(
            topic,
            value_bytes,
            key=key_bytes,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
        )

    async def enqueue(
        self,
        topic: str,
        value: V | None,
        *,
        key: K | None = None,
        headers: Headers = (),
        timestamp: int | None = None,
        partition: int | None = None,
    ) -> Delivery:
        """Encodes and appends one record; see `Producer.enqueue`.

        Raises EncodeError, and sends nothing, if a codec cannot encode the key or the value.
        """
        value_bytes: Any
        key_bytes: Any
        key_bytes, value_bytes, headers = self._encoder.encode(topic, key, value, headers)
        return await super().enqueue(
            topic,
            value_bytes,
            key=key_bytes,
            headers=headers,
            timestamp=timestamp,
            partition=partition,
        )

    async def send_many(
        self, topic: str, values: Iterable[V | ProducerRecord[K, V] | None]
    ) -> Acks:
        """Encodes and sends many records, and waits until all are acked; see `Producer.send_many`.

        If a codec cannot encode a record of a list or another collection, no record is sent. An
        iterator is read while records are sent, so the records before the invalid one are sent.
        Raises EncodeError, which names the index of the record, and has the unsent elements.
        """
        check_many("values", values, one="record", of_one="send")
        return await send_converted(
            values, partial(self._encoded, topic), partial(super().send_many, topic)
        )

    def _encoded(
        self, topic: str, values: Iterable[V | ProducerRecord[K, V] | None]
    ) -> Iterator[Any]:
        encode = self._encoder.encode
        for index, each in enumerate(values):
            place = f"values[{index}]."
            if isinstance(each, ProducerRecord):
                key, value, headers = encode(topic, each.key, each.value, each.headers, place)
                yield ProducerRecord(value, key, headers, each.timestamp, each.partition)
            else:
                key, value, headers = encode(topic, None, each, (), place)
                yield ProducerRecord(value, key, headers)
