"""Creates producers from the arguments of `Client.producer` and the defaults of properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..records.type_variables import K, V
from .core.open_parts import OpenParts
from .core.record_codecs import record_encoder
from .metadata.cluster_view import ClusterView
from .producer.producer import Producer
from .producer.settings import ProducerSettings

if TYPE_CHECKING:
    from ..codecs.protocols import AnyEncoder
    from .producer.run_producer import RunProducer

__all__ = ["create_producer", "create_run_producer"]


def create_producer(
    view: ClusterView,
    parts: OpenParts,
    arguments: Mapping[str, Any],
    key: AnyEncoder[K] | None = None,
    value: AnyEncoder[V] | None = None,
) -> Producer[K, V]:
    """Creates a producer, and adds it to `parts`.

    `arguments` has fields of ProducerSettings; `key` and `value` are the codecs. Raises
    ConfigurationError for an invalid argument, and for the `transactional_id` of an open producer
    in `parts`.
    """
    encoder = record_encoder(key, value)
    settings = ProducerSettings(**arguments)
    if settings.transactional_id is not None:
        parts.check_transactional_id(settings.transactional_id)
    producer: Producer[K, V]
    if encoder is None:
        producer = Producer(view, settings)
    else:
        from .producer.encoding_producer import EncodingProducer  # only if there are codecs

        producer = EncodingProducer(view, settings, encoder)
    return parts.add_producer(producer)


def create_run_producer(
    view: ClusterView, parts: OpenParts, arguments: Mapping[str, Any]
) -> RunProducer:
    """Creates the producer for a call of `GroupConsumer.run` that has a `transactional_id`.

    Raises ConfigurationError as `create_producer` does.
    """
    from .producer.run_producer import RunProducer

    return RunProducer(create_producer(view, parts, arguments))
