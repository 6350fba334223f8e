"""Tests the action for each error of each API of a transaction."""

from __future__ import annotations

from collections import Counter

import pytest

from kproto.client.producer.transactions.transaction_errors import (
    ERROR_ACTIONS,
    ErrorAction,
    TransactionApi,
    action_of,
)
from kproto.protocol.error_codes import ERRORS, code_of, error_of_code
from kproto.wire.errors import (
    AuthenticationError,
    BrokerConnectionError,
    KprotoError,
    RequestTimeoutError,
)

A = ErrorAction
COLUMNS = tuple(TransactionApi)

#: The action by error, for FindCoordinator, InitProducerId, AddPartitionsToTxn, AddOffsetsToTxn,
#: TxnOffsetCommit, EndTxn and Produce.
EXPECTED = {
    "COORDINATOR_LOAD_IN_PROGRESS": "R R R R R R R",
    "COORDINATOR_NOT_AVAILABLE": "R C C C C C R",
    "NOT_COORDINATOR": "R C C C C C R",
    "CONCURRENT_TRANSACTIONS": "R S S S S S R",
    "NETWORK_EXCEPTION": "R R R R R R R",
    "REQUEST_TIMED_OUT": "R R R R C R R",
    "PRODUCER_FENCED": "X X X X X X X",
    "INVALID_PRODUCER_EPOCH": "F X X X X X A",
    "INVALID_PRODUCER_ID_MAPPING": "F F F F F F F",
    "INVALID_TXN_STATE": "F F F F F F A",
    "TRANSACTIONAL_ID_AUTHORIZATION_FAILED": "A A F F F F A",
    "CLUSTER_AUTHORIZATION_FAILED": "F A A A A F A",
    "TOPIC_AUTHORIZATION_FAILED": "F F A A A F A",
    "GROUP_AUTHORIZATION_FAILED": "A F A A A F A",
    "TRANSACTION_ABORTABLE": "A A A A A A A",
    "UNKNOWN_PRODUCER_ID": "F F A A A A A",
    "OUT_OF_ORDER_SEQUENCE_NUMBER": "F F A A A F A",
    "ILLEGAL_GENERATION": "F F A A A F A",
    "FENCED_INSTANCE_ID": "F F A A A F A",
    "INVALID_TRANSACTION_TIMEOUT": "F F A A A F A",
    "UNKNOWN_TOPIC_OR_PARTITION": "R R R R R R R",
    "INVALID_REQUEST": "F F A A A F A",
    "UNKNOWN_SERVER_ERROR": "F F A A A F A",
}
LETTERS = {
    "R": A.RETRY,
    "S": A.RETRY_SOON,
    "C": A.FIND_COORDINATOR,
    "A": A.ABORTABLE,
    "X": A.FENCED,
    "F": A.FATAL,
}


@pytest.mark.parametrize("name", EXPECTED)
def test_action_of_each_api(name: str) -> None:
    error = error_of_code(code_of(name), "a request")
    found = [action_of(api, error) for api in COLUMNS]
    assert found == [LETTERS[letter] for letter in EXPECTED[name].split()]


@pytest.mark.parametrize("error", [BrokerConnectionError("lost"), RequestTimeoutError("late")])
def test_lost_request_finds_the_coordinator_again(error: KprotoError) -> None:
    assert {action_of(api, error) for api in COLUMNS} == {A.FIND_COORDINATOR}


def test_error_of_the_client_is_not_retried() -> None:
    error = AuthenticationError("refused")
    assert action_of(TransactionApi.END_TXN, error) is A.FATAL
    assert action_of(TransactionApi.TXN_OFFSET_COMMIT, error) is A.ABORTABLE


@pytest.mark.parametrize("api", TransactionApi)
def test_each_code_has_an_action(api: TransactionApi) -> None:
    retries = {A.RETRY, A.RETRY_SOON, A.FIND_COORDINATOR}
    for code, known in ERRORS.items():
        if code:
            action = action_of(api, error_of_code(code, "a request"))
            assert (action in retries) == known.retriable, known.name


def test_table_has_one_row_for_each_error_and_api() -> None:
    counts = Counter((row.error, api) for row in ERROR_ACTIONS for api in row.apis)
    assert set(counts.values()) == {1}
    for row in ERROR_ACTIONS:
        code_of(row.error)
