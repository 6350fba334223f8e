"""`ProduceRequestBuilder`: builds the Produce requests of a producer for one connection."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from ...messages.produce_request import ProduceRequest
from ...wire.uuid import ZERO_UUID, Uuid
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from ..network.connection import BrokerConnection
from .batch import ProducerBatch
from .requests import ProduceRequestTemplate, highest_produce_version, produce_request
from .transactions.transaction_manager import TransactionManager

__all__ = ["ProduceRequestBuilder"]


class ProduceRequestBuilder:
    """Builds requests for encoded batches, with topic ids and the highest version of both sides.

    `transaction` is None for a producer without a transactional id.
    """

    def __init__(
        self, view: ClusterView, transaction: TransactionManager | None, acks: int
    ) -> None:
        self._view = view
        self._transaction = transaction
        self._acks = acks
        # The broker's timeout is shorter than the client's, so that its error response arrives.
        self._timeout_ms = view.settings.request_timeout_ms * 3 // 4
        self._templates: dict[TopicPartition, ProduceRequestTemplate] = {}

    def single(self, connection: BrokerConnection, batch: ProducerBatch) -> ProduceRequestTemplate:
        """Returns the encoded bytes around the batch in a request with a single batch.

        Reuses these bytes while the topic id and the version stay the same.
        """
        tp = batch.topic, batch.partition
        info = self._view.cluster.topics.get(batch.topic)
        topic_id = ZERO_UUID if info is None else info.topic_id
        version = connection.version_of(ProduceRequest, self._highest_version((topic_id,)))
        known = self._templates.get(tp)
        if known is None or known.topic_id is not topic_id or known.version != version:
            known = ProduceRequestTemplate(
                *tp, topic_id, self._timeout_ms, version, self._acks, self._transactional_id
            )
            self._templates[tp] = known
        return known

    def build(
        self, connection: BrokerConnection, batches: Mapping[TopicPartition, ProducerBatch]
    ) -> tuple[ProduceRequest, dict[str, Uuid], int]:
        """Returns the request for these batches, the topic ids by name, and the version."""
        topics = self._view.cluster.topics
        ids = {name: topics[name].topic_id if name in topics else ZERO_UUID for name, _ in batches}
        version = connection.version_of(ProduceRequest, self._highest_version(ids.values()))
        request = produce_request(
            list(batches.values()), ids, self._timeout_ms, self._acks, self._transactional_id
        )
        return request, ids, version

    @property
    def _transactional_id(self) -> str | None:
        return None if self._transaction is None else self._transaction.transactional_id

    def _highest_version(self, ids: Iterable[Uuid]) -> int:
        adds_partitions = self._transaction is None or self._transaction.bumps_at_end
        return highest_produce_version(ids, adds_partitions=adds_partitions)
