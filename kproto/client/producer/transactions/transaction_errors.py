"""The action for each error of each API of a transaction, as a table.

The actions are those of the handlers in TransactionManager of Kafka's Java client, except that more
errors of TxnOffsetCommit and Produce are abortable: EndTxn then aborts the transaction, or reports
that the producer cannot continue. Errors without a row have the action of `default_action`. Does no
I/O.
"""

from __future__ import annotations

from enum import Enum
from typing import Final, NamedTuple

from ....wire.errors import BrokerResponseError, KprotoError, UnsupportedVersionError
from ...core.retry import Remedy, remedy_of

__all__ = ["ERROR_ACTIONS", "ErrorAction", "ErrorRow", "TransactionApi", "action_of"]


class TransactionApi(Enum):
    """The APIs of a transaction; the values say what a request of the API does."""

    FIND_COORDINATOR = "finding the coordinator"
    INIT_PRODUCER_ID = "requesting the producer id"
    ADD_PARTITIONS = "adding partitions to the transaction"
    ADD_OFFSETS = "adding the offsets of a group to the transaction"
    TXN_OFFSET_COMMIT = "committing offsets in the transaction"
    END_TXN = "ending the transaction"
    PRODUCE = "producing in the transaction"


class ErrorAction(Enum):
    """The action of a producer after an error."""

    RETRY = "send the request again after a backoff"
    RETRY_SOON = "send the request again after a short backoff: the last transaction is ending"
    FIND_COORDINATOR = "find the coordinator, then send the request again after a backoff"
    ABORTABLE = "abort the transaction; the producer continues with the next one"
    FENCED = "the producer is fenced by another one; a new producer is needed"
    FATAL = "the producer cannot continue; a new producer is needed"


class ErrorRow(NamedTuple):
    """The `action` if a response of one of `apis` has `error`."""

    error: str
    apis: tuple[TransactionApi, ...]
    action: ErrorAction


_A = ErrorAction
_ALL: Final = tuple(TransactionApi)
_FIND, _INIT, _ADD, _ADD_OFFSETS, _COMMIT, _END, _PRODUCE = _ALL
#: The APIs that the transaction coordinator answers.
_COORDINATOR: Final = (_INIT, _ADD, _ADD_OFFSETS, _END)

ERROR_ACTIONS: Final = (
    # Coordinators.
    ErrorRow("COORDINATOR_NOT_AVAILABLE", (*_COORDINATOR, _COMMIT), _A.FIND_COORDINATOR),
    ErrorRow("NOT_COORDINATOR", (*_COORDINATOR, _COMMIT), _A.FIND_COORDINATOR),
    ErrorRow("REQUEST_TIMED_OUT", (_COMMIT,), _A.FIND_COORDINATOR),
    ErrorRow("COORDINATOR_LOAD_IN_PROGRESS", (*_COORDINATOR, _COMMIT), _A.RETRY),
    # The markers of the last transaction are not written yet.
    ErrorRow("CONCURRENT_TRANSACTIONS", (*_COORDINATOR, _COMMIT), _A.RETRY_SOON),
    # Another producer has the transactional id, or the broker has aborted the transaction after its
    # timeout. Before KIP-588 brokers return INVALID_PRODUCER_EPOCH for both.
    ErrorRow("PRODUCER_FENCED", _ALL, _A.FENCED),
    ErrorRow("INVALID_PRODUCER_EPOCH", (*_COORDINATOR, _COMMIT), _A.FENCED),
    ErrorRow("INVALID_PRODUCER_EPOCH", (_PRODUCE,), _A.ABORTABLE),  # KIP-588
    # The transactional id has another producer id, because it has expired, or no transaction.
    ErrorRow("INVALID_PRODUCER_ID_MAPPING", _ALL, _A.FATAL),
    ErrorRow("INVALID_TXN_STATE", (*_COORDINATOR, _COMMIT), _A.FATAL),
    ErrorRow("INVALID_TXN_STATE", (_PRODUCE,), _A.ABORTABLE),
    # Rights.
    ErrorRow("TRANSACTIONAL_ID_AUTHORIZATION_FAILED", (_FIND, _INIT, _PRODUCE), _A.ABORTABLE),
    ErrorRow(
        "TRANSACTIONAL_ID_AUTHORIZATION_FAILED", (_ADD, _ADD_OFFSETS, _COMMIT, _END), _A.FATAL
    ),
    ErrorRow("CLUSTER_AUTHORIZATION_FAILED", (_INIT, _PRODUCE), _A.ABORTABLE),
    ErrorRow("TOPIC_AUTHORIZATION_FAILED", (_ADD, _COMMIT, _PRODUCE), _A.ABORTABLE),
    ErrorRow("GROUP_AUTHORIZATION_FAILED", (_FIND, _ADD_OFFSETS, _COMMIT), _A.ABORTABLE),
    # The broker refused other partitions, and so attempted none.
    ErrorRow("OPERATION_NOT_ATTEMPTED", (_ADD,), _A.ABORTABLE),
    # The transaction must be aborted (KIP-890).
    ErrorRow("TRANSACTION_ABORTABLE", (_FIND, *_COORDINATOR, _COMMIT, _PRODUCE), _A.ABORTABLE),
    # The broker has lost the state of the producer; the epoch is bumped after the abort (KIP-360).
    ErrorRow("UNKNOWN_PRODUCER_ID", (_ADD, _ADD_OFFSETS, _COMMIT, _END, _PRODUCE), _A.ABORTABLE),
    ErrorRow("OUT_OF_ORDER_SEQUENCE_NUMBER", (_PRODUCE,), _A.ABORTABLE),
    # The membership of the consumer whose offsets are committed (KIP-447).
    ErrorRow("ILLEGAL_GENERATION", (_COMMIT,), _A.ABORTABLE),
    ErrorRow("UNKNOWN_MEMBER_ID", (_COMMIT,), _A.ABORTABLE),
    ErrorRow("STALE_MEMBER_EPOCH", (_COMMIT,), _A.ABORTABLE),
    ErrorRow("FENCED_MEMBER_EPOCH", (_COMMIT,), _A.ABORTABLE),
    ErrorRow("FENCED_INSTANCE_ID", (_COMMIT,), _A.ABORTABLE),
    ErrorRow("REBALANCE_IN_PROGRESS", (_COMMIT,), _A.ABORTABLE),
)

_TABLE: Final = {(api, row.error): row.action for row in ERROR_ACTIONS for api in row.apis}

#: The action, by API, for an error that no retry solves and that has no row in the table. Such an
#: error of FindCoordinator, InitProducerId or EndTxn is fatal; after such an error of any other
#: request the transaction can be aborted.
_OTHERS: Final = {
    **dict.fromkeys((_FIND, _INIT, _END), _A.FATAL),
    **dict.fromkeys((_ADD, _ADD_OFFSETS, _COMMIT, _PRODUCE), _A.ABORTABLE),
}


def action_of(api: TransactionApi, error: KprotoError) -> ErrorAction:
    """Returns the action of the producer after a request of `api` has failed with `error`."""
    name = error.name if isinstance(error, BrokerResponseError) else ""
    return _TABLE.get((api, name)) or default_action(api, error)


def default_action(api: TransactionApi, error: KprotoError) -> ErrorAction:
    """Returns the action for an error without a row in the table.

    A retriable error is retried. After a lost connection or a timeout, another broker may be the
    coordinator. A broker that lacks a version makes the producer fail, as in the Java client: the
    next transaction would fail, too.
    """
    if isinstance(error, UnsupportedVersionError) and api is not TransactionApi.PRODUCE:
        return ErrorAction.FATAL
    if remedy_of(error) is Remedy.FAIL:
        return _OTHERS[api]
    if isinstance(error, BrokerResponseError):
        return ErrorAction.RETRY
    return ErrorAction.FIND_COORDINATOR
