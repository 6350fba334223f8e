"""Maps the coordinator's errors to errors of older request versions and of other APIs.

Source: KIP-588 (PRODUCER_FENCED), KIP-890 (TRANSACTION_ABORTABLE), and Kafka's
AddPartitionsToTxnManager and ReplicaManager.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..releases import is_before
from ..settings import BrokerSettings

__all__ = ["checks_epoch_first", "code_known_to", "error_of_produce", "error_of_txn_offset_commit"]


#: The first release in which a partition's leader compares the producer epoch of the request with
#: the producer epoch in the partition before it asks the transaction coordinator.
_FIRST_RELEASE_WITH_EPOCH_CHECK: Final = "4.0.0"


def checks_epoch_first(settings: BrokerSettings) -> bool:
    """Returns True if a leader checks the producer epoch before it asks the coordinator."""
    return not is_before(settings.release, _FIRST_RELEASE_WITH_EPOCH_CHECK)


def code_known_to(error: BrokerResponseError, version: int, first_version_of_fenced: int) -> int:
    """Returns the error code; INVALID_PRODUCER_EPOCH instead of PRODUCER_FENCED in old versions."""
    if error.name == "PRODUCER_FENCED" and version < first_version_of_fenced:
        return code_of("INVALID_PRODUCER_EPOCH")
    return error.code


#: The errors of the partition's leader for errors of the coordinator. Old clients do not retry the
#: errors of a coordinator, so the leader returns a retriable error that needs no new metadata.
_ERRORS_OF_PRODUCE: Final[Mapping[str, str]] = MappingProxyType(
    {
        "PRODUCER_FENCED": "INVALID_PRODUCER_EPOCH",
        "CONCURRENT_TRANSACTIONS": "NOT_ENOUGH_REPLICAS",
        "COORDINATOR_LOAD_IN_PROGRESS": "NOT_ENOUGH_REPLICAS",
        "COORDINATOR_NOT_AVAILABLE": "NOT_ENOUGH_REPLICAS",
        "NOT_COORDINATOR": "NOT_ENOUGH_REPLICAS",
    }
)

_ERRORS_OF_TXN_OFFSET_COMMIT: Final[Mapping[str, str]] = MappingProxyType(
    {"PRODUCER_FENCED": "INVALID_PRODUCER_EPOCH"}
)


def error_of_produce(error: BrokerResponseError, *, knows_abortable: bool) -> BrokerResponseError:
    """Returns the error of Produce for an error of the coordinator.

    `knows_abortable` is True for Produce v11 and later, which have TRANSACTION_ABORTABLE.
    """
    return _mapped(error, _ERRORS_OF_PRODUCE, knows_abortable=knows_abortable)


def error_of_txn_offset_commit(
    error: BrokerResponseError, *, knows_abortable: bool
) -> BrokerResponseError:
    """Returns the error of TxnOffsetCommit for an error of the transaction coordinator.

    `knows_abortable` is True for TxnOffsetCommit v4 and later, which have TRANSACTION_ABORTABLE.
    """
    return _mapped(error, _ERRORS_OF_TXN_OFFSET_COMMIT, knows_abortable=knows_abortable)


def _mapped(
    error: BrokerResponseError, names: Mapping[str, str], *, knows_abortable: bool
) -> BrokerResponseError:
    name = names.get(error.name, error.name)
    if name == "TRANSACTION_ABORTABLE" and not knows_abortable:
        name = "INVALID_TXN_STATE"
    return error if name == error.name else api_error(name, error.detail)
