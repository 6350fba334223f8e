"""Tests the epochs and partitions of share sessions, and the choice of the next request."""

from __future__ import annotations

import pytest

from kproto.client.fetch.share.acquisition import AcknowledgeType, Acquisition
from kproto.client.fetch.share.node import ACK_DELAY_S, CHOICES, RequestKind, ShareNode, Situation
from kproto.client.fetch.share.requests import (
    FetchLimits,
    SentAcks,
    acknowledge_request,
    fetch_request,
    results_of,
    take_acks,
)
from kproto.client.fetch.share.session import SessionChange, ShareSession
from kproto.client.settings import ClientSettings
from kproto.wire.uuid import Uuid

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)
NOW = 100.0


def acquired(first: int, count: int, topic_id: Uuid = A, partition: int = 0) -> Acquisition:
    last = first + count - 1
    return Acquisition(object(), 1, ("t", partition), topic_id, first, last, 1, 130.0)


def node() -> ShareNode:
    return ShareNode(1, ClientSettings())


def test_first_request_opens_the_session_with_all_partitions() -> None:
    session = ShareSession()
    assert [session.is_open] == [False]
    assert session.change_to([(A, 0), (A, 1)]) == SessionChange(0, [(A, 0), (A, 1)], [])
    session.on_answered()
    assert session.is_open
    assert session.epoch == 1


def test_later_requests_name_only_changes() -> None:
    session = ShareSession()
    session.change_to([(A, 0), (A, 1)])
    session.on_answered()
    assert session.change_to([(A, 0), (A, 1)]) == SessionChange(1, [], [])
    session.on_answered()
    assert session.change_to([(A, 1), (B, 0)]) == SessionChange(2, [(B, 0)], [(A, 0)])
    session.on_answered()
    assert list(session.partitions) == [(A, 1), (B, 0)]


def test_acknowledge_advances_the_epoch_and_keeps_the_partitions() -> None:
    session = ShareSession()
    session.change_to([(A, 0)])
    session.on_answered()
    session.on_answered()
    assert (session.epoch, list(session.partitions)) == (2, [(A, 0)])


def test_unanswered_changes_are_sent_again_in_a_new_session() -> None:
    session = ShareSession()
    session.change_to([(A, 0)])
    session.on_answered()
    session.change_to([(B, 0)])
    session.reset()
    assert session.change_to([(B, 0)]) == SessionChange(0, [(B, 0)], [])


def test_epoch_wraps_to_one() -> None:
    session = ShareSession()
    session.epoch = 0x7FFF_FFFF
    session.on_answered()
    assert session.epoch == 1


def test_table_of_requests_has_every_case() -> None:
    cases = {(opened, wants, its) for opened in (0, 1) for wants in (0, 1) for its in Situation}
    assert CHOICES.keys() == cases


@pytest.mark.parametrize(
    ("is_open", "wants", "age", "kind"),
    [
        (False, True, None, RequestKind.OPEN),
        (False, True, 0.0, RequestKind.OPEN),
        (False, False, 0.0, RequestKind.NONE),
        (False, False, ACK_DELAY_S, RequestKind.REFUSE),
        (True, True, 0.0, RequestKind.FETCH),
        (True, True, ACK_DELAY_S, RequestKind.ACKNOWLEDGE),
        (True, False, 0.0, RequestKind.NONE),
        (True, False, ACK_DELAY_S, RequestKind.ACKNOWLEDGE),
        (True, False, None, RequestKind.NONE),
    ],
)
def test_next_request_depends_on_session_and_acknowledgements(
    is_open: bool, wants: bool, age: float | None, kind: RequestKind
) -> None:
    its = node()
    its.session.epoch = int(is_open)
    if age is not None:
        its.add_pending(acquired(0, 1), NOW - age)
    assert its.next_request(NOW, wants_records=wants) is kind


def test_renewals_and_commits_are_sent_at_once() -> None:
    its = node()
    its.session.epoch = 1
    acquisition = acquired(0, 2)
    acquisition.acknowledge(0, AcknowledgeType.RENEW, NOW)
    its.add_pending(acquisition, NOW)
    assert its.next_request(NOW, wants_records=True) is RequestKind.ACKNOWLEDGE
    its = node()
    its.session.epoch = 1
    its.add_pending(acquired(0, 2), NOW)
    its.is_urgent = True
    assert its.next_request(NOW, wants_records=True) is RequestKind.ACKNOWLEDGE


def test_no_request_is_due_while_another_is_in_flight_or_in_a_backoff() -> None:
    its = node()
    its.is_busy = True
    assert its.next_request(NOW, wants_records=True) is RequestKind.NONE
    its.is_busy = False
    its.attempts.not_before = NOW + 1
    assert its.next_request(NOW, wants_records=True) is RequestKind.NONE


def test_acknowledgements_of_a_revoked_partition_wait_for_their_own_request() -> None:
    its, kept, revoked = node(), acquired(0, 2), acquired(5, 2, partition=1)
    its.add_pending(revoked, NOW)
    its.add_pending(kept, NOW + 0.01)
    assert its.take_pending_of([(A, 0)]) == [kept]
    assert its.pending == [revoked]
    assert its.pending_since == NOW
    assert its.take_pending_of([(A, 0), (A, 1)]) == [revoked]
    assert its.pending == []


def test_fetch_request_has_changes_and_acknowledgements() -> None:
    first, second = acquired(0, 3), acquired(10, 2)
    first.acknowledge_open(AcknowledgeType.ACCEPT, first.first)
    second.acknowledge(11, AcknowledgeType.RELEASE, NOW)
    sent = take_acks([second, first])
    change = SessionChange(4, [(B, 1)], [(A, 7)])
    request = fetch_request("g", "m", change, FetchLimits(500, 1, 1000, 50, 1), sent)
    assert (request.share_session_epoch, request.max_records, request.batch_size) == (4, 50, 50)
    assert request.share_acquire_mode == 1
    batches = request.topics[0].partitions[0].acknowledgement_batches
    assert [(b.first_offset, b.last_offset, b.acknowledge_types) for b in batches] == [
        (0, 2, [1]),
        (11, 11, [2]),
    ]
    assert (request.topics[1].topic_id, request.topics[1].partitions[0].partition_index) == (B, 1)
    assert request.forgotten_topics_data[0].partitions == [7]
    assert not request.is_renew_ack


def test_acknowledge_request_says_if_it_renews() -> None:
    acquisition = acquired(0, 2)
    acquisition.acknowledge(0, AcknowledgeType.RENEW, NOW)
    request = acknowledge_request("g", "m", 3, take_acks([acquisition]))
    assert request.is_renew_ack
    assert not take_acks([acquisition])  # nothing is left to send


def test_results_have_the_offsets_by_partition_without_gaps() -> None:
    states = bytes([1, 0, 2, 255])
    sent = [SentAcks(acquired(0, 4), states), SentAcks(acquired(9, 4, partition=1), states)]
    results = results_of(sent, None)
    assert [(each.partition, each.offsets) for each in results] == [
        (0, (range(1), range(2, 3))),
        (1, (range(9, 10), range(11, 12))),
    ]
    assert [each.accepted for each in results] == [(range(1),), (range(9, 10),)]
