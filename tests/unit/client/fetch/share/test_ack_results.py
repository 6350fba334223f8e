"""Tests the waits of commits for the results of acknowledgements of share groups."""

from __future__ import annotations

import asyncio

from kproto.client.fetch.share.ack_results import AckResults
from kproto.client.fetch.share.acquisition import AcknowledgeType, Acquisition, LockLostError
from kproto.client.fetch.share.node import ShareNode
from kproto.client.fetch.share.requests import AcknowledgeResult, SentAcks, take_acks
from kproto.client.observing.counts import ShareCounts
from kproto.client.settings import ClientSettings
from kproto.wire.uuid import Uuid

TOPIC_ID = Uuid(b"t" * 16)


def accepted(node: ShareNode, partition: int) -> Acquisition:
    """Returns an acquisition of two records whose acceptances wait to be sent to `node`."""
    its = Acquisition(object(), 1, ("t", partition), TOPIC_ID, 0, 1, 1, 130.0)
    its.acknowledge_open(AcknowledgeType.ACCEPT, 0)
    node.add_pending(its, 100.0)
    return its


def answer(results: AckResults, node: ShareNode, sent: list[SentAcks]) -> None:
    results.on_answered(node, sent, {}, 100.0, 130.0, may_retry=True)
    node.answered_count = node.sent_count
    results.check_commits()


async def test_commit_waits_for_acknowledgements_that_a_fetch_leaves() -> None:
    """A fetch sends only the acknowledgements of the partitions that it has."""
    node, all_results = (
        ShareNode(1, ClientSettings()),
        AckResults(lambda results: None, ShareCounts()),
    )
    accepted(node, 0)
    accepted(node, 1)
    commit = asyncio.create_task(all_results.wait([node], lambda: None))
    await asyncio.sleep(0)
    sent = take_acks(node.take_pending_of([(TOPIC_ID, 0)]))
    node.sent_count += 1
    all_results.on_left_pending(node)
    answer(all_results, node, sent)
    await asyncio.sleep(0)
    assert not commit.done()
    assert node.is_urgent
    sent = take_acks(node.take_pending())
    node.sent_count += 1
    answer(all_results, node, sent)
    assert await commit == [
        AcknowledgeResult("t", each, (range(2),), None, (range(2),)) for each in (0, 1)
    ]


def test_acknowledgement_after_its_lock_is_not_sent_beside_others() -> None:
    """A broker refuses all acknowledgements of a partition in a request because of one."""
    reported: list[AcknowledgeResult] = []
    node, results = ShareNode(1, ClientSettings()), AckResults(reported.extend, ShareCounts())
    late, valid = accepted(node, 0), accepted(node, 0)
    late.locked_until = 105.0
    (sent,) = results.take(node, 110.0, can_renew=True)
    assert sent.acquisition is valid
    (result,) = reported
    assert isinstance(result.error, LockLostError)
    assert result.offsets == (range(2),)
