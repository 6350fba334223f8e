"""`TransactionAdmin` without `await`.

`python -m tools.sync` writes this module from `kproto/client/admin/transaction_admin.py`.
"""

from __future__ import annotations

from collections.abc import Iterable

from ...client.admin.admin import Admin
from ...client.admin.producers import ProducerState
from ...client.admin.transactions import (
    AbortTransactionSpec,
    ProducerIdAndEpoch,
    TransactionDescription,
    TransactionListing,
)
from ...client.metadata.cluster import TopicPartition
from ..wrapper import Wrapper

__all__ = ["TransactionAdmin"]


class TransactionAdmin(Wrapper[Admin]):
    """Lists, describes and ends transactions; fences and describes producers."""

    __slots__ = ()

    def list_transactions(
        self,
        *,
        states: Iterable[str] = (),
        producer_ids: Iterable[int] = (),
        running_longer_than_ms: int | None = None,
        transactional_id_pattern: str | None = None,
        timeout_ms: int | None = None,
    ) -> list[TransactionListing]:
        """Returns the transactional ids of all coordinators, sorted.

        `states` are states such as "Ongoing"; `running_longer_than_ms` selects transactions that
        are open for longer (Kafka 3.8, KIP-994); `transactional_id_pattern` is a regular expression
        of RE2 (Kafka 4.1, KIP-1152). Raises AdminError by node id; its `results` have the
        transactional ids of the other brokers.
        """
        return self._call(
            self._wrapped.list_transactions,
            states=states,
            producer_ids=producer_ids,
            running_longer_than_ms=running_longer_than_ms,
            transactional_id_pattern=transactional_id_pattern,
            timeout_ms=timeout_ms,
        )

    def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, TransactionDescription]:
        """Returns transactional ids with their open transactions. Raises AdminError by id."""
        return self._call(
            self._wrapped.describe_transactions, transactional_ids, timeout_ms=timeout_ms
        )

    def abort_transaction(
        self, spec: AbortTransactionSpec, *, timeout_ms: int | None = None
    ) -> None:
        """Writes an abort marker into a partition, to end a hanging transaction (KIP-664).

        Use it only if the coordinator has no such transaction; `describe_producers` and
        `describe_transactions` show that. Raises BrokerResponseError, with INVALID_PRODUCER_EPOCH
        for a stale epoch.
        """
        self._call(self._wrapped.abort_transaction, spec, timeout_ms=timeout_ms)

    def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, ProducerIdAndEpoch]:
        """Fences the producers of transactional ids, and aborts their transactions (KIP-588).

        Returns the new producer id and epoch of each id. Raises AdminError by transactional id.
        """
        return self._call(self._wrapped.fence_producers, transactional_ids, timeout_ms=timeout_ms)

    def force_terminate_transaction(
        self, transactional_id: str, *, timeout_ms: int | None = None
    ) -> None:
        """Aborts the transaction of a transactional id, also a prepared one (KIP-939).

        Fences its producers, as `fence_producers` does. Raises AdminError by transactional id.
        """
        self._call(
            self._wrapped.force_terminate_transaction, transactional_id, timeout_ms=timeout_ms
        )

    def describe_producers(
        self,
        partitions: Iterable[TopicPartition],
        *,
        broker: int | None = None,
        timeout_ms: int | None = None,
    ) -> dict[TopicPartition, tuple[ProducerState, ...]]:
        """Returns the producers that have written to partitions, as the leaders know them.

        With `broker`, a node id, the answers are those of this replica. Raises AdminError by
        partition.
        """
        return self._call(
            self._wrapped.describe_producers, partitions, broker=broker, timeout_ms=timeout_ms
        )
