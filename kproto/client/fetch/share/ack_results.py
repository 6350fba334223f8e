"""`AckResults`: takes the acknowledgements to send, processes their answers, waits in commits."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from typing import Final, TypeAlias

from ....protocol.error_codes import code_of, error_of_code
from ....wire.errors import KprotoError, UnsupportedVersionError
from ...observing.counts import ShareCounts
from .acquisition import LockLostError
from .node import ShareNode
from .requests import (
    AcknowledgeResult,
    SentAcks,
    ShareRemedy,
    acknowledge_remedy,
    by_partition,
    results_of,
    take_acks,
)
from .session import TopicIdPartition

__all__ = ["AckCodes", "AckResults"]

#: The acknowledgement error code of each partition in a response, and its message.
AckCodes: TypeAlias = Mapping[TopicIdPartition, tuple[int, str | None]]

_NO_SESSION = code_of("SHARE_SESSION_NOT_FOUND")

_LOCK_LOST: Final = (
    "the acquisition lock had ended before the acknowledgement was sent "
    "(group.share.record.lock.duration.ms), and the broker delivers the record again"
)


class _Commit:
    """A call that waits until acknowledgements are answered: by node, the count to wait for."""

    def __init__(self, targets: dict[ShareNode, int]) -> None:
        self.targets = targets
        self.results: list[AcknowledgeResult] = []
        self.is_done = asyncio.Event()


class AckResults:
    """Reports the results of acknowledgements to `on_results`, and to commits that wait.

    Counts them in `counts`.
    """

    def __init__(
        self, on_results: Callable[[list[AcknowledgeResult]], object], counts: ShareCounts
    ) -> None:
        self._on_results = on_results
        self._counts = counts
        self._commits: list[_Commit] = []

    async def wait(
        self, nodes: Collection[ShareNode], wake: Callable[[], object]
    ) -> list[AcknowledgeResult]:
        """Waits until all present acknowledgements of `nodes` are answered; returns their results.

        Calls `wake`, so that they are sent.
        """
        targets = {}
        for node in nodes:
            if node.pending:
                targets[node] = node.sent_count + 1
                node.is_urgent = True
            elif node.answered_count < node.sent_count:
                targets[node] = node.sent_count
        if not targets:
            return []
        commit = _Commit(targets)
        self._commits.append(commit)
        wake()
        try:
            await commit.is_done.wait()
        finally:
            self._commits.remove(commit)
        return commit.results

    # Requests

    def take(self, node: ShareNode, now: float, *, can_renew: bool) -> list[SentAcks]:
        """Returns all acknowledgements to send to a node.

        Without `can_renew` reports the failure of renewals.
        """
        sent = self._locked(node, take_acks(node.take_pending()), now)
        if not can_renew:
            refused = [each for each in sent if each.acquisition.has_renewing]
            error = UnsupportedVersionError(
                f"broker {node.node} renews no locks (KIP-1222): it is older than Kafka 4.2"
            )
            self.refuse(node, refused, error)
            sent = [each for each in sent if each not in refused]
        node.sent_count += 1  # a commit waits for it, even if no acknowledgement is left
        return sent

    def take_of(
        self, fetched: Collection[TopicIdPartition], node: ShareNode, now: float
    ) -> list[SentAcks]:
        """Returns the acknowledgements of the partitions that the next fetch has.

        A fetch with acknowledgements of another partition would add it to the session. A fetch with
        renewals would be refused; they may be stored after the fetch was chosen.
        """
        sent = self._locked(node, take_acks(node.take_pending_of(fetched)), now)
        node.sent_count += bool(sent)
        if node.pending:
            self.on_left_pending(node)
        return sent

    def _locked(self, node: ShareNode, acks: list[SentAcks], now: float) -> list[SentAcks]:
        """Returns the acknowledgements whose locks may last; reports the failure of the others.

        The broker would refuse all acknowledgements of a partition in a request because of one.
        """
        kept: list[SentAcks] = []
        lost: list[SentAcks] = []
        for each in acks:
            parts = each.acquisition.split_by_lock(each.states, now)
            for states, found in zip(parts, (kept, lost), strict=True):
                if states is not None:
                    found.append(SentAcks(each.acquisition, states))
        self.refuse(node, lost, LockLostError(_LOCK_LOST))
        return kept

    # Answers

    def check_commits(self) -> None:
        """Ends the commits whose acknowledgements are all answered."""
        for commit in self._commits:
            if all(node.answered_count >= count for node, count in commit.targets.items()):
                commit.is_done.set()

    def on_answered(
        self,
        node: ShareNode,
        sent: list[SentAcks],
        codes: AckCodes,
        now: float,
        renewed_until: float,
        *,
        may_retry: bool,
    ) -> None:
        """Processes a response without an error code of the whole request.

        A partition that the response lacks has no error. Renewed locks last until `renewed_until`.
        With `may_retry`, acknowledgements with a retriable error are sent again.
        """
        results: list[AcknowledgeResult] = []
        for its, acks in by_partition(sent).items():
            code, message = codes.get(its, (0, None))
            if not code:
                for each in acks:
                    each.acquisition.on_answered(each.states, renewed_until)
                    self._counts.confirmed(each.states)
                results += results_of(acks, None)
            elif acknowledge_remedy(code) is ShareRemedy.RETRY and may_retry:
                self._send_again(node, acks, code, now)
            else:
                topic = acks[0].acquisition.topic
                what = f"acknowledging {topic}[{its[1]}]" + (f": {message}" if message else "")
                results += self._refused(acks, error_of_code(code, what))
        self._report(node, results)

    def _send_again(self, node: ShareNode, acks: list[SentAcks], code: int, now: float) -> None:
        node.attempts.failed(error_of_code(code, "acknowledging"), now)
        for each in acks:
            each.acquisition.restore(each.states)
            node.add_pending(each.acquisition, now)
        self.on_left_pending(node)

    def on_left_pending(self, node: ShareNode) -> None:
        """Makes the commits of `node` wait for the acknowledgements that are still to be sent."""
        for commit in self._commits:
            if node in commit.targets:
                commit.targets[node] = node.sent_count + 1
                node.is_urgent = True

    def refuse(self, node: ShareNode, acks: list[SentAcks], error: KprotoError) -> None:
        """Reports the failure of acknowledgements; they are not sent again."""
        if acks:
            self._report(node, self._refused(acks, error))

    def refuse_unsent(self, acks: list[SentAcks]) -> list[AcknowledgeResult]:
        """Reports and returns the failure of acceptances that could not be stored."""
        if not acks:
            return []
        results = self._refused(acks, LockLostError(_LOCK_LOST))
        self._on_results(results)
        return results

    def refuse_pending(self, node: ShareNode, error: KprotoError | None = None) -> None:
        """Reports the failure of all acknowledgements that wait to be sent to a node.

        Without `error`, the node has no session any more.
        """
        acks = take_acks(node.take_pending())
        if acks:
            node.sent_count += 1
            node.answered_count += 1
            self.refuse(node, acks, error or _no_session_error(node))
        self.check_commits()

    def _refused(self, acks: list[SentAcks], error: KprotoError) -> list[AcknowledgeResult]:
        for each in acks:
            each.acquisition.on_refused(each.states)
            self._counts.failed(each.states)
        return results_of(acks, error)

    def _report(self, node: ShareNode, results: list[AcknowledgeResult]) -> None:
        if not results:
            return
        for commit in self._commits:
            if node in commit.targets:
                commit.results += results
        self._on_results(results)


def _no_session_error(node: ShareNode) -> KprotoError:
    return error_of_code(
        _NO_SESSION,
        f"the share session at broker {node.node} has ended; the broker delivers the records again",
    )
