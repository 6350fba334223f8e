"""Tests each decision of the transaction coordinator, as a table of metadata and request.

The expected results are those of Kafka's TransactionCoordinator (4.4.0): KIP-98, KIP-360 (a
producer that bumps its epoch), KIP-588 (PRODUCER_FENCED) and KIP-890 (transaction version 2).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import product
from typing import Any, NamedTuple

import pytest

from kproto import BrokerResponseError
from kproto.broker.groups.committed_offsets import TopicPartition
from kproto.broker.transactions import TransactionMetadata, TransactionState
from kproto.broker.transactions.transaction_decisions import (
    ProducerIdAndEpoch,
    decide_add_partitions,
    decide_end,
    decide_forced_abort,
    decide_init_producer_id,
    is_in_transaction,
)

S = TransactionState
MAPPING, FENCED = "INVALID_PRODUCER_ID_MAPPING", "PRODUCER_FENCED"
CONCURRENT, INVALID = "CONCURRENT_TRANSACTIONS", "INVALID_TXN_STATE"

IDLE = (S.EMPTY, S.COMPLETE_COMMIT, S.COMPLETE_ABORT)
PREPARED = (S.PREPARE_COMMIT, S.PREPARE_ABORT)
NEW_ID = 100
NOW = 50
#: The last epoch that a producer gets; the next one, 32,767, is for fencing.
LAST = 32_766
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def metadata(state: S = S.EMPTY, **fields: Any) -> TransactionMetadata:
    """Returns the metadata of producer id 7, whose epoch was bumped from 4 to 5."""
    given: dict[str, Any] = {
        "previous_producer_id": 7,
        "epoch": 5,
        "last_epoch": 4,
        "state": state,
        "start_ms": 10,
        "update_ms": 20,
        **fields,
    }
    if state not in IDLE:
        given.setdefault("partitions", frozenset({T0}))
    return TransactionMetadata("tx", 7, 1000, **given)


class Result(NamedTuple):
    """The state, the producer ids and the epochs after a request."""

    state: S
    producer_id: int
    epoch: int
    last_epoch: int


def result(decide: Callable[[], TransactionMetadata]) -> Result | str:
    """Returns the decision, or the name of the error."""
    try:
        decided = decide()
    except BrokerResponseError as error:
        return error.name
    return Result(decided.state, decided.producer_id, decided.epoch, decided.last_epoch)


# InitProducerId


def init(
    before: TransactionMetadata, current: tuple[int, int] | None, timeout_ms: int = 2000
) -> Result | str:
    producer = None if current is None else ProducerIdAndEpoch(*current)
    return result(
        lambda: decide_init_producer_id(before, timeout_ms, producer, NOW, lambda: NEW_ID)
    )


@pytest.mark.parametrize("state", IDLE)
@pytest.mark.parametrize(
    ("current", "expected"),
    [
        (None, (7, 6, -1)),
        ((7, 5), (7, 6, 5)),
        ((7, 4), (7, 5, 4)),  # the response to the last bump was lost
        ((7, 3), FENCED),
        ((7, 6), FENCED),
        ((8, 5), FENCED),
        ((8, LAST), FENCED),
    ],
)
def test_init_producer_id_bumps_the_epoch(
    state: S, current: tuple[int, int] | None, expected: tuple[int, int, int] | str
) -> None:
    wanted = expected if isinstance(expected, str) else Result(S.EMPTY, *expected)
    assert init(metadata(state), current) == wanted


def test_init_producer_id_of_a_new_id() -> None:
    new = metadata(epoch=-1, last_epoch=-1, previous_producer_id=-1)
    assert init(new, None) == Result(S.EMPTY, 7, 0, -1)
    assert init(new, (99, 9)) == Result(S.EMPTY, 7, 0, -1), (
        "the producer recovers from an id that has expired"
    )


@pytest.mark.parametrize("state", PREPARED)
@pytest.mark.parametrize("current", [None, (7, 5), (7, 3)])
def test_init_producer_id_waits_for_a_prepared_transaction(
    state: S, current: tuple[int, int] | None
) -> None:
    assert init(metadata(state), current) == CONCURRENT


@pytest.mark.parametrize("state", [*PREPARED, S.ONGOING, *IDLE])
def test_other_producer_id_is_fenced_first(state: S) -> None:
    assert init(metadata(state), (8, 5)) == FENCED


@pytest.mark.parametrize("current", [None, (7, 5), (7, 3)])
def test_init_producer_id_leaves_an_ongoing_transaction_to_the_caller(
    current: tuple[int, int] | None,
) -> None:
    before = metadata(S.ONGOING)
    producer = None if current is None else ProducerIdAndEpoch(*current)
    assert decide_init_producer_id(before, 1, producer, NOW, lambda: NEW_ID) is before


@pytest.mark.parametrize("state", IDLE)
@pytest.mark.parametrize(
    ("fields", "current", "expected"),
    [
        ({"epoch": LAST - 1, "last_epoch": -1}, None, (7, LAST, -1)),
        ({"epoch": LAST, "last_epoch": LAST - 1}, None, (NEW_ID, 0, -1)),
        ({"epoch": LAST, "last_epoch": LAST - 1}, (7, LAST), (NEW_ID, 0, LAST)),
        ({"epoch": LAST, "last_epoch": LAST - 1}, (7, LAST - 1), (7, LAST, LAST - 1)),
        ({"epoch": LAST, "last_epoch": LAST - 1}, (7, LAST - 2), FENCED),
        # A fence has used the highest epoch.
        ({"epoch": LAST + 1, "last_epoch": -1}, None, (NEW_ID, 0, -1)),
        ({"epoch": LAST + 1, "last_epoch": -1}, (7, LAST), FENCED),
        # The response with the new producer id was lost.
        (
            {"previous_producer_id": 6, "epoch": 0, "last_epoch": LAST},
            (6, LAST),
            (7, 0, LAST),
        ),
        ({"previous_producer_id": 6, "epoch": 0, "last_epoch": LAST}, (6, LAST - 1), FENCED),
        ({"previous_producer_id": 6, "epoch": 0, "last_epoch": -1}, (6, LAST), FENCED),
        ({"previous_producer_id": 6, "epoch": 1, "last_epoch": 0}, (6, LAST), FENCED),
    ],
)
def test_exhausted_epoch_gives_a_new_producer_id(
    state: S,
    fields: dict[str, int],
    current: tuple[int, int] | None,
    expected: tuple[int, int, int] | str,
) -> None:
    wanted = expected if isinstance(expected, str) else Result(S.EMPTY, *expected)
    assert init(metadata(state, **fields), current) == wanted


def test_init_producer_id_changes_timeout_and_times() -> None:
    before = metadata(S.COMPLETE_ABORT)
    after = decide_init_producer_id(before, 2000, None, NOW, lambda: NEW_ID)
    assert (after.timeout_ms, after.start_ms, after.update_ms) == (2000, -1, NOW)
    assert after.previous_producer_id == 7
    exhausted = metadata(S.COMPLETE_ABORT, epoch=LAST)
    after = decide_init_producer_id(exhausted, 2000, None, NOW, lambda: NEW_ID)
    assert (after.timeout_ms, after.start_ms, after.update_ms) == (2000, -1, NOW)
    assert (after.previous_producer_id, after.producer_id) == (7, NEW_ID)


# Aborts by the coordinator


@pytest.mark.parametrize(
    ("fields", "version", "expected", "next_id"),
    [
        ({}, 0, (7, 6, -1), -1),
        ({}, 1, (7, 6, -1), -1),
        ({}, 2, (7, 6, 5), -1),
        ({"epoch": LAST}, 0, (7, LAST + 1, -1), -1),
        ({"epoch": LAST}, 2, (7, LAST + 1, LAST), NEW_ID),
        ({"epoch": LAST + 1}, 0, (7, LAST + 1, -1), -1),
        ({"has_failed_fence": True}, 0, (7, 5, -1), -1),
    ],
)
def test_forced_abort_fences_the_producer(
    fields: dict[str, Any], version: int, expected: tuple[int, int, int], next_id: int
) -> None:
    before = metadata(S.ONGOING, **fields)
    after = decide_forced_abort(before, NOW, lambda: NEW_ID, version)
    assert (after.producer_id, after.epoch, after.last_epoch) == expected
    assert (after.state, after.next_producer_id) == (S.PREPARE_ABORT, next_id)
    assert (after.partitions, after.start_ms, after.update_ms) == (before.partitions, 10, NOW)
    done = after.completed(NOW + 1)
    assert (done.producer_id, done.epoch) == ((NEW_ID, 0) if next_id == NEW_ID else expected[:2])
    assert (done.partitions, done.next_producer_id) == (frozenset(), -1)
    assert not done.has_failed_fence


# AddPartitionsToTxn, and the partitions of Produce and TxnOffsetCommit


def added(
    before: TransactionMetadata | None, producer: tuple[int, int], *partitions: TopicPartition
) -> TransactionMetadata:
    return decide_add_partitions(
        before, ProducerIdAndEpoch(*producer), frozenset(partitions), NOW, 2
    )


@pytest.mark.parametrize("state", IDLE)
def test_first_partition_begins_a_transaction(state: S) -> None:
    after = added(metadata(state), (7, 5), T0)
    assert (after.state, after.partitions) == (S.ONGOING, frozenset({T0}))
    assert (after.start_ms, after.update_ms, after.client_version) == (NOW, NOW, 2)
    assert (after.producer_id, after.epoch, after.last_epoch) == (7, 5, 4)


def test_further_partition_keeps_the_start_of_the_transaction() -> None:
    after = added(metadata(S.ONGOING), (7, 5), T1)
    assert (after.partitions, after.start_ms, after.update_ms) == (frozenset({T0, T1}), 10, NOW)


def test_known_partitions_change_nothing() -> None:
    before = metadata(S.ONGOING, partitions=frozenset({T0, T1}))
    assert added(before, (7, 5), T1) is before
    assert added(before, (7, 5), T0, T1) is before


REFUSED = [
    (None, (7, 5), MAPPING),
    *((metadata(state), (8, 5), MAPPING) for state in S),
    *((metadata(state), (7, epoch), FENCED) for state in S for epoch in (4, 6)),
    *((metadata(state), (7, 5), CONCURRENT) for state in PREPARED),
]


@pytest.mark.parametrize(("before", "producer", "expected"), REFUSED)
def test_partitions_of_another_producer_are_refused(
    before: TransactionMetadata | None, producer: tuple[int, int], expected: str
) -> None:
    assert result(lambda: added(before, producer, T1)) == expected
    with pytest.raises(BrokerResponseError) as caught:
        is_in_transaction(before, ProducerIdAndEpoch(*producer), T0)
    assert caught.value.name == expected


@pytest.mark.parametrize("state", [*IDLE, S.ONGOING])
def test_partition_is_verified(state: S) -> None:
    producer = ProducerIdAndEpoch(7, 5)
    assert is_in_transaction(metadata(state), producer, T0) is (state is S.ONGOING)
    assert not is_in_transaction(metadata(state), producer, T1)


# EndTxn


def end(
    before: TransactionMetadata | None, producer: tuple[int, int], *, commit: bool, version: int
) -> TransactionMetadata:
    return decide_end(
        before,
        ProducerIdAndEpoch(*producer),
        is_commit=commit,
        client_version=version,
        now_ms=NOW,
        new_producer_id=lambda: NEW_ID,
    )


#: The outcome of EndTxn of an older client by state: for a commit, and for an abort.
V0 = {
    S.EMPTY: (INVALID, INVALID),
    S.ONGOING: ("PREPARE", "PREPARE"),
    S.PREPARE_COMMIT: (CONCURRENT, INVALID),
    S.PREPARE_ABORT: (INVALID, CONCURRENT),
    S.COMPLETE_COMMIT: ("SAME", INVALID),
    S.COMPLETE_ABORT: (INVALID, "SAME"),
}
#: The outcomes of transaction version 2, if the producer has the present epoch.
V2 = {
    S.EMPTY: (INVALID, "PREPARE"),
    S.ONGOING: ("PREPARE", "PREPARE"),
    S.PREPARE_COMMIT: (FENCED, FENCED),
    S.PREPARE_ABORT: (FENCED, FENCED),
    S.COMPLETE_COMMIT: (INVALID, "PREPARE"),
    S.COMPLETE_ABORT: (INVALID, "PREPARE"),
}
#: The outcomes of transaction version 2, if the producer has the epoch before: it repeats a request
#: whose response it did not receive.
V2_RETRY = {
    S.EMPTY: (FENCED, FENCED),
    S.ONGOING: (FENCED, FENCED),
    S.PREPARE_COMMIT: (CONCURRENT, INVALID),
    S.PREPARE_ABORT: (INVALID, CONCURRENT),
    S.COMPLETE_COMMIT: ("SAME", INVALID),
    S.COMPLETE_ABORT: (INVALID, "SAME"),
}


def end_rows() -> Iterator[Any]:
    for state, commit, version in product(V0, (True, False), (0, 1, 2)):
        column = 0 if commit else 1
        for epoch in (3, 4, 5, 6):
            expected = FENCED
            if version < 2:
                expected = V0[state][column] if epoch == 5 else FENCED
            elif epoch == 5:
                expected = V2[state][column]
            elif epoch == 4:
                expected = V2_RETRY[state][column]
            kind = "commit" if commit else "abort"
            name = f"{kind}-{state.label}-v{version}-epoch{epoch}"
            yield pytest.param(state, commit, version, epoch, expected, id=name)


@pytest.mark.parametrize(("state", "commit", "version", "epoch", "expected"), list(end_rows()))
def test_end_of_a_transaction(
    state: S, commit: bool, version: int, epoch: int, expected: str
) -> None:
    before = metadata(state)
    if expected == "SAME":
        assert end(before, (7, epoch), commit=commit, version=version) is before
        return
    found = result(lambda: end(before, (7, epoch), commit=commit, version=version))
    if expected != "PREPARE":
        assert found == expected
        return
    prepared = S.PREPARE_COMMIT if commit else S.PREPARE_ABORT
    assert found == Result(prepared, 7, *((6, 5) if version >= 2 else (5, 4)))


@pytest.mark.parametrize("state", [S.DEAD, S.PREPARE_EPOCH_FENCE])
@pytest.mark.parametrize("epoch", [4, 5])
def test_states_that_kafka_never_stores_are_refused(state: S, epoch: int) -> None:
    before = metadata(state)
    fault = "UNKNOWN_SERVER_ERROR"
    for commit in (True, False):
        for version in (0, 2):
            expected = FENCED if version == 0 and epoch == 4 else fault
            ended = partial(end, before, (7, epoch), commit=commit, version=version)
            assert result(ended) == expected
    assert init(before, (7, epoch)) == fault
    assert init(before, None) == fault
    assert result(lambda: added(before, (7, epoch), T1)) == (FENCED if epoch == 4 else fault)


@pytest.mark.parametrize("state", [None, *V0])
@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("commit", [True, False])
def test_end_for_another_producer_id_is_refused(
    state: S | None, version: int, *, commit: bool
) -> None:
    before = None if state is None else metadata(state, client_version=2)
    for producer in ((8, 4), (8, 5)):
        found = result(partial(end, before, producer, commit=commit, version=version))
        assert found == MAPPING


@pytest.mark.parametrize("commit", [True, False])
def test_end_with_the_last_epoch_takes_a_new_producer_id(*, commit: bool) -> None:
    before = metadata(S.ONGOING, epoch=LAST, last_epoch=LAST - 1, client_version=2)
    prepared = end(before, (7, LAST), commit=commit, version=2)
    assert (prepared.producer_id, prepared.epoch) == (7, LAST + 1), "the markers have it"
    assert (prepared.next_producer_id, prepared.last_epoch) == (NEW_ID, LAST)
    again = result(lambda: end(prepared, (7, LAST), commit=commit, version=2))
    assert again == CONCURRENT
    done = prepared.completed(NOW + 1)
    assert (done.producer_id, done.epoch) == (NEW_ID, 0)
    assert (done.previous_producer_id, done.next_producer_id) == (7, -1)
    assert end(done, (7, LAST), commit=commit, version=2) is done, "the response was lost"
    assert result(lambda: end(done, (7, LAST), commit=not commit, version=2)) == INVALID
    assert result(lambda: end(done, (7, LAST - 1), commit=commit, version=2)) == MAPPING
    assert result(lambda: end(done, (7, LAST), commit=commit, version=0)) == MAPPING
    begun = decide_add_partitions(
        done, ProducerIdAndEpoch(NEW_ID, 0), frozenset({T0}), NOW, client_version=2
    )
    late = result(lambda: end(begun, (7, LAST), commit=commit, version=2))
    assert late == MAPPING, "the next transaction has begun"


def test_older_client_keeps_the_last_epoch() -> None:
    before = metadata(S.ONGOING, epoch=LAST)
    prepared = end(before, (7, LAST), commit=True, version=0)
    done = prepared.completed(NOW)
    assert (done.producer_id, done.epoch, done.next_producer_id) == (7, LAST, -1)


def test_end_keeps_partitions_until_the_markers_are_written() -> None:
    prepared = end(metadata(S.ONGOING), (7, 5), commit=True, version=2)
    assert (prepared.partitions, prepared.client_version) == (frozenset({T0}), 2)
    assert (prepared.start_ms, prepared.update_ms) == (10, NOW)
    done = prepared.completed(NOW + 1)
    assert (done.partitions, done.start_ms, done.update_ms) == (frozenset(), 10, NOW + 1)


def test_abort_without_partitions_starts_and_ends_at_once() -> None:
    prepared = end(metadata(S.EMPTY, start_ms=-1), (7, 5), commit=False, version=2)
    assert (prepared.partitions, prepared.start_ms) == (frozenset(), NOW)


# Times


@pytest.mark.parametrize("state", S)
def test_only_an_ongoing_transaction_times_out(state: S) -> None:
    its = metadata(state)
    assert not its.is_timed_out(1010)
    assert its.is_timed_out(1011) is (state is S.ONGOING)


@pytest.mark.parametrize("state", S)
def test_only_an_idle_id_expires(state: S) -> None:
    its = metadata(state)
    assert not its.is_expired(119, 100)
    assert its.is_expired(120, 100) is (state in IDLE)
