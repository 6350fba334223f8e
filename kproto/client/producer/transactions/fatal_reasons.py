"""Why a transactional producer cannot continue, as texts for users. Does no I/O."""

from __future__ import annotations

from typing import Final

from ....wire.errors import BrokerResponseError, KprotoError

__all__ = [
    "EPOCH_LOST",
    "FENCED_ITSELF",
    "MAYBE_COMMITTED",
    "NOT_ABORTED",
    "error_name",
    "fatal_reason",
    "may_be_done",
]

#: The errors after which the coordinator may have stored the outcome, in Kafka: the append to its
#: log has timed out, or another broker has become the coordinator meanwhile.
_MAYBE_DONE: Final = ("COORDINATOR_NOT_AVAILABLE", "NOT_COORDINATOR", "UNKNOWN_SERVER_ERROR")

MAYBE_COMMITTED: Final = (
    "it is unknown whether the transaction is committed; a new producer with the transactional id "
    "starts once the transaction has ended, and then its records show it"
)
NOT_ABORTED: Final = (
    "the coordinator has not confirmed that the transaction is aborted; a new producer with the "
    "transactional id aborts it, and without one the broker does after transaction_timeout_ms"
)
FENCED_ITSELF: Final = (
    "the transaction is aborted, and a new producer is needed: a Produce request was still in "
    "flight, so the producer was fenced"
)
EPOCH_LOST: Final = (
    "the transaction is aborted, and a new producer is needed: brokers before Kafka 2.5 cannot "
    "bump the epoch of a producer, some of whose records may have been stored (KIP-360)"
)

#: The remedies of errors that make the producer fail.
_HINTS: Final = {
    "INVALID_TRANSACTION_TIMEOUT": (
        "lower transaction_timeout_ms (transaction.timeout.ms), or raise "
        "transaction.max.timeout.ms of the brokers"
    ),
    "UNSUPPORTED_VERSION": "Kafka 4.4.0 refuses to keep a prepared transaction (KIP-939)",
    "INVALID_PRODUCER_ID_MAPPING": "the transactional id has expired, or has another producer id",
}


def fatal_reason(
    error: KprotoError,
    *,
    is_fenced: bool,
    lasted_ms: int,
    timeout_ms: int,
    is_commit_in_doubt: bool,
) -> str:
    """Returns why the producer cannot continue after `error`.

    `lasted_ms` is the age of the open transaction in ms, 0 without one, and `timeout_ms` its
    timeout. `is_commit_in_doubt` is True if an EndTxn may have committed the transaction.
    """
    if lasted_ms >= timeout_ms:
        why = (
            f"the transaction lasted {lasted_ms} ms, and brokers abort a transaction after "
            f"transaction_timeout_ms ({timeout_ms})"
        )
    elif is_fenced:
        why = "another producer has taken over the transactional id"
    else:
        hint = _HINTS.get(error_name(error))
        why = "the producer cannot continue" + (f" ({hint})" if hint else "")
    return f"{why}; {MAYBE_COMMITTED}" if is_commit_in_doubt else why


def may_be_done(error: KprotoError) -> bool:
    """Returns True if a coordinator may have carried out the EndTxn that failed with `error`."""
    return not isinstance(error, BrokerResponseError) or error.name in _MAYBE_DONE


def error_name(error: KprotoError) -> str:
    """Returns the name of a broker's error; an empty text for an error of the client."""
    return error.name if isinstance(error, BrokerResponseError) else ""
