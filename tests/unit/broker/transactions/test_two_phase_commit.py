"""Tests two-phase commit of the transaction coordinator (KIP-939)."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from kproto.broker.groups.committed_offsets import TopicPartition
from kproto.broker.transactions.transaction_decisions import ProducerIdAndEpoch
from kproto.messages import EndTxnRequest, InitProducerIdRequest
from kproto.protocol.error_codes import error_code
from tests.unit.broker.transactions.transaction_driver import Play

DAY_MS = 86_400_000
PARTITIONS = frozenset({TopicPartition("t", 0)})

VERSIONS = pytest.mark.parametrize("version", [1, 2])


def play_of(version: int, *, enable: bool = True) -> Play:
    return Play(
        transaction_version=version,
        transaction_two_phase_commit_enable=enable,
        unstable_versions=True,
    )


def initialized(play: Play, *, two_phases: bool = True, keep: bool = False) -> Any:
    request = InitProducerIdRequest(
        transactional_id="tx",
        transaction_timeout_ms=1000,
        producer_id=-1,
        producer_epoch=-1,
        enable_2pc=two_phases,
        keep_prepared_txn=keep,
    )
    return play.send(request, 6, play.find())


def identity_of(response: Any) -> ProducerIdAndEpoch:
    assert response.error_code == 0
    return ProducerIdAndEpoch(response.producer_id, response.producer_epoch)


def ongoing_of(response: Any) -> ProducerIdAndEpoch:
    return ProducerIdAndEpoch(response.ongoing_txn_producer_id, response.ongoing_txn_producer_epoch)


def begun(play: Play) -> ProducerIdAndEpoch:
    """Begins a transaction with two-phase commit."""
    producer = identity_of(initialized(play))
    version = play.coordinator.transaction_version
    play.coordinator.add_partitions("tx", producer, PARTITIONS, play.now, version)
    return producer


def ended(play: Play, producer: ProducerIdAndEpoch, *, commits: bool = True) -> str:
    request = EndTxnRequest(
        transactional_id="tx",
        producer_id=producer.producer_id,
        producer_epoch=producer.epoch,
        committed=commits,
    )
    version = 5 if play.coordinator.transaction_version == 2 else 4
    return error_code(play.send(request, version, play.find()).error_code).name


@VERSIONS
async def test_transaction_with_two_phase_commit_never_times_out(version: int) -> None:
    play = play_of(version)
    producer = begun(play)
    await play.wait(DAY_MS)
    assert play.described() == ("Ongoing", {("t", 0)})
    assert ended(play, producer) == "NONE"
    assert play.described() == ("CompleteCommit", set())


@VERSIONS
@pytest.mark.parametrize("commits", [True, False])
@pytest.mark.parametrize("times", [1, 2])
async def test_new_producer_takes_over_the_transaction_and_ends_it(
    version: int, commits: bool, times: int
) -> None:
    play = play_of(version)
    first = begun(play)
    for _ in range(times):
        response = initialized(play, keep=True)
        play.move()  # the next coordinator reads the takeover from the log
    assert ongoing_of(response) == first
    producer = identity_of(response)
    assert producer.epoch == first.epoch + times
    assert play.described() == ("Ongoing", {("t", 0)})
    assert ended(play, first, commits=commits) == "PRODUCER_FENCED"
    for _ in range(2 if version == 2 else 1):  # the second one repeats the request
        assert ended(play, producer, commits=commits) == "NONE"
    state = "CompleteCommit" if commits else "CompleteAbort"
    assert play.described() == (state, set())
    assert play.metadata().epoch == producer.epoch + (version == 2)
    assert ended(play, first, commits=commits) != "NONE"
    again = initialized(play, keep=True)
    assert ongoing_of(again) == (-1, -1)
    assert identity_of(again).epoch > producer.epoch


@VERSIONS
async def test_transaction_that_was_taken_over_is_aborted_without_keep_prepared(
    version: int,
) -> None:
    play = play_of(version)
    begun(play)
    taken_over = identity_of(initialized(play, keep=True))
    assert error_code(initialized(play).error_code).name == "CONCURRENT_TRANSACTIONS"
    assert play.described() == ("CompleteAbort", set())
    assert identity_of(initialized(play)).epoch > taken_over.epoch
    assert ended(play, taken_over) == "PRODUCER_FENCED"


async def test_exhausted_epoch_takes_over_with_a_new_producer_id() -> None:
    play = play_of(2)
    producer = identity_of(initialized(play))
    play.coordinator._keep(replace(play.metadata(), epoch=32_765))
    producer = ProducerIdAndEpoch(producer.producer_id, 32_765)
    play.coordinator.add_partitions("tx", producer, PARTITIONS, play.now, 2)
    response = initialized(play, keep=True)
    taken_over = identity_of(response)
    assert taken_over.producer_id != producer.producer_id
    assert taken_over.epoch == 0
    assert ongoing_of(response) == producer
    assert ended(play, taken_over) == "NONE"
    assert play.metadata().producer_id == taken_over.producer_id


@pytest.mark.parametrize(
    ("two_phases", "keep", "name"),
    [
        (True, False, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        (True, True, "TRANSACTIONAL_ID_AUTHORIZATION_FAILED"),
        (False, True, "UNSUPPORTED_VERSION"),
    ],
)
async def test_broker_without_the_setting_refuses(two_phases: bool, keep: bool, name: str) -> None:
    play = play_of(2, enable=False)
    response = initialized(play, two_phases=two_phases, keep=keep)
    assert error_code(response.error_code).name == name
