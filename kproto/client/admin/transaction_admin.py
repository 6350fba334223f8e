"""The calls of `Admin` for transactions and producers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from ...messages.write_txn_markers_request import WriteTxnMarkersRequest
from ...wire.checks import check_whole_number
from ...wire.errors import ConfigurationError, KprotoError
from ..core.gather import gather_all
from ..metadata.cluster import TopicPartition
from .area import AdminArea
from .arguments import checked_list, checked_names, checked_partitions
from .calls import PartCall
from .producers import ProducerState, describe_producers_call
from .transactions import (
    AbortTransactionSpec,
    ProducerIdAndEpoch,
    TransactionDescription,
    TransactionListing,
    abort_request,
    aborted,
    describe_transactions_call,
    fence_request,
    fenced,
    list_transactions_request,
    listed_transactions,
)

__all__ = ["TransactionAdmin"]


class TransactionAdmin(AdminArea):
    """Lists, describes and ends transactions; fences and describes producers."""

    async def list_transactions(
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
        if running_longer_than_ms is not None:
            check_whole_number("running_longer_than_ms", running_longer_than_ms, 0)
        request = list_transactions_request(
            checked_names("states", states),
            checked_list("producer_ids", producer_ids),
            -1 if running_longer_than_ms is None else running_longer_than_ms,
            transactional_id_pattern,
        )
        found = await self._requester.by_broker(
            "listing transactions", lambda node: request, listed_transactions, timeout_ms=timeout_ms
        )
        return sorted(
            {each._replace(coordinator=node) for node, its in found.items() for each in its}
        )

    async def describe_transactions(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, TransactionDescription]:
        """Returns transactional ids with their open transactions. Raises AdminError by id."""
        ids = checked_names("transactional_ids", transactional_ids)
        return await self._requester.by_part(describe_transactions_call(), ids, timeout_ms)

    async def abort_transaction(
        self, spec: AbortTransactionSpec, *, timeout_ms: int | None = None
    ) -> None:
        """Writes an abort marker into a partition, to end a hanging transaction (KIP-664).

        Use it only if the coordinator has no such transaction; `describe_producers` and
        `describe_transactions` show that. Raises BrokerResponseError, with INVALID_PRODUCER_EPOCH
        for a stale epoch.
        """
        if not isinstance(spec, AbortTransactionSpec):
            raise ConfigurationError(f"{spec!r:.80} is no AbortTransactionSpec")
        view = self._requester.view

        async def send(parts: Sequence[str], left_ms: int) -> dict[str, KprotoError | None]:
            try:
                leader = await view.leader(spec.topic, spec.partition)
            except KprotoError as error:
                return dict.fromkeys(parts, error)
            found = await self._requester.at_broker(
                abort_request(spec), lambda response: aborted(response, spec), leader, left_ms
            )
            if found is not None:
                view.cluster.forget([spec.topic])
            return dict.fromkeys(parts, found)

        call: PartCall[str, None] = PartCall(
            "aborting a transaction",
            build=lambda parts, left_ms: WriteTxnMarkersRequest(),
            read=lambda response, parts: {},
            changes=True,
        )
        await self._requester.whole(call, send, timeout_ms)

    async def fence_producers(
        self, transactional_ids: Iterable[str], *, timeout_ms: int | None = None
    ) -> dict[str, ProducerIdAndEpoch]:
        """Fences the producers of transactional ids, and aborts their transactions (KIP-588).

        Returns the new producer id and epoch of each id. Raises AdminError by transactional id.
        """
        ids = checked_names("transactional_ids", transactional_ids)

        async def fence(transactional_id: str, left_ms: int) -> ProducerIdAndEpoch | KprotoError:
            limit_ms = min(left_ms, self._requester.view.settings.request_timeout_ms)
            return await self._requester.at_broker(
                fence_request(transactional_id, limit_ms),
                lambda response: fenced(response, transactional_id),
                None,
                left_ms,
            )

        async def send(
            parts: Sequence[str], left_ms: int
        ) -> dict[str, ProducerIdAndEpoch | KprotoError]:
            found = await gather_all(fence(each, left_ms) for each in parts)
            return dict(zip(parts, found, strict=True))

        call: PartCall[str, ProducerIdAndEpoch] = PartCall(
            "fencing producers",
            build=lambda parts, left_ms: fence_request(parts[0], left_ms),
            read=lambda response, parts: {parts[0]: fenced(response, parts[0])},
            changes=True,
        )
        return await self._requester.run(call, send, ids, timeout_ms)

    async def force_terminate_transaction(
        self, transactional_id: str, *, timeout_ms: int | None = None
    ) -> None:
        """Aborts the transaction of a transactional id, also a prepared one (KIP-939).

        Fences its producers, as `fence_producers` does. Raises AdminError by transactional id.
        """
        await self.fence_producers([transactional_id], timeout_ms=timeout_ms)

    async def describe_producers(
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
        tps = checked_partitions("partitions", partitions)
        call = describe_producers_call()
        if broker is None:
            return await self._requester.by_part(call, tps, timeout_ms)

        async def send(
            parts: Sequence[TopicPartition], left_ms: int
        ) -> dict[TopicPartition, tuple[ProducerState, ...] | KprotoError]:
            found = await self._requester.at_broker(
                call.build(parts, left_ms),
                lambda response: call.read(response, parts),
                broker,
                left_ms,
            )
            if isinstance(found, KprotoError):
                return dict.fromkeys(parts, found)
            return dict(found)

        return await self._requester.run(call, send, tps, timeout_ms)
