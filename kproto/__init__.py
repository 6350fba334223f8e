"""Implements Kafka's protocol; its messages are generated from Kafka's own definitions.

`kproto.Client` is the entry point; `kproto.sync.Client` is the client without asyncio. `import
kproto` is fast, because each public name is loaded at its first use. The packages can be used by
themselves: `kproto.messages` (a class for every message), `kproto.records` (record batches),
`kproto.protocol` (both sides of a connection without I/O), `kproto.broker` (a broker in memory),
`kproto.schema` (the definitions).

`kproto.__compiled__` is True if the codecs run compiled, from a platform wheel. If the environment
variable KPROTO_PURE is 1, such a wheel runs its Python sources instead.
"""

from __future__ import annotations

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .client import (
        Ack,
        AckEvent,
        AcknowledgeResult,
        Acks,
        Assignor,
        BrokerAnswer,
        Client,
        ClientSettings,
        CommitFailedError,
        CommittedOffset,
        ConnectionEvent,
        Consumer,
        Delivery,
        DeliveryError,
        Failure,
        FatalTransactionError,
        FetchedBatch,
        FetchedPartition,
        FetchedRecords,
        FetchedValues,
        GroupConsumer,
        HandlerTransaction,
        Hooks,
        LockLostError,
        LogTruncatedError,
        NewTopic,
        NoCommittedOffsetError,
        OpenTransaction,
        PreparedTransactionState,
        Producer,
        ProducerRecord,
        RequestEvent,
        Retries,
        RetryEvent,
        RetryTopic,
        RunSummary,
        ShareConsumer,
        ShareRecord,
        ShareRunSummary,
        Stop,
        TopicPattern,
        Transaction,
        TransactionAbortedError,
        TransactionError,
        failure_of,
    )
    from .client.admin import Admin, AdminError
    from .codecs.undecodable import Undecodable
    from .protocol.broker_errors import (
        AuthorizationError,
        ClusterAuthorizationError,
        CoordinatorNotAvailableError,
        FencedInstanceIdError,
        FencedMemberEpochError,
        GroupAuthorizationError,
        GroupIdNotFoundError,
        IllegalGenerationError,
        InvalidRecordStateError,
        InvalidShareSessionEpochError,
        InvalidTopicError,
        LeaderNotAvailableError,
        NotControllerError,
        NotCoordinatorError,
        NotEnoughReplicasError,
        NotLeaderOrFollowerError,
        OffsetOutOfRangeError,
        ProducerFencedError,
        RebalanceInProgressError,
        RecordTooLargeError,
        ShareSessionLimitReachedError,
        ShareSessionNotFoundError,
        StaleMemberEpochError,
        TopicAuthorizationError,
        TopicExistsError,
        TransactionalIdAuthorizationError,
        UnknownMemberIdError,
        UnknownTopicIdError,
        UnknownTopicOrPartitionError,
    )
    from .protocol.sasl import BearerToken
    from .records import Record, RecordBatch
    from .security import (
        ClientCredentials,
        DelegationToken,
        OAuthBearer,
        Plain,
        Sasl,
        ScramSha256,
        ScramSha512,
        Tls,
    )
    from .version import __version__
    from .wire.compiled import __compiled__
    from .wire.errors import (
        AuthenticationError,
        BrokerConnectionError,
        BrokerResponseError,
        ConfigurationError,
        CorruptBatchError,
        DecodeError,
        EncodeError,
        KprotoError,
        MissingCodecError,
        ProtocolError,
        RequestTimeoutError,
        UndecodableRecordError,
        UnreadableRecordError,
        UnsupportedVersionError,
    )
    from .wire.uuid import ZERO_UUID, Uuid

__all__ = [
    "ZERO_UUID",
    "Ack",
    "AckEvent",
    "AcknowledgeResult",
    "Acks",
    "Admin",
    "AdminError",
    "Assignor",
    "AuthenticationError",
    "AuthorizationError",
    "BearerToken",
    "BrokerAnswer",
    "BrokerConnectionError",
    "BrokerResponseError",
    "Client",
    "ClientCredentials",
    "ClientSettings",
    "ClusterAuthorizationError",
    "CommitFailedError",
    "CommittedOffset",
    "ConfigurationError",
    "ConnectionEvent",
    "Consumer",
    "CoordinatorNotAvailableError",
    "CorruptBatchError",
    "DecodeError",
    "DelegationToken",
    "Delivery",
    "DeliveryError",
    "EncodeError",
    "Failure",
    "FatalTransactionError",
    "FencedInstanceIdError",
    "FencedMemberEpochError",
    "FetchedBatch",
    "FetchedPartition",
    "FetchedRecords",
    "FetchedValues",
    "GroupAuthorizationError",
    "GroupConsumer",
    "GroupIdNotFoundError",
    "HandlerTransaction",
    "Hooks",
    "IllegalGenerationError",
    "InvalidRecordStateError",
    "InvalidShareSessionEpochError",
    "InvalidTopicError",
    "KprotoError",
    "LeaderNotAvailableError",
    "LockLostError",
    "LogTruncatedError",
    "MissingCodecError",
    "NewTopic",
    "NoCommittedOffsetError",
    "NotControllerError",
    "NotCoordinatorError",
    "NotEnoughReplicasError",
    "NotLeaderOrFollowerError",
    "OAuthBearer",
    "OffsetOutOfRangeError",
    "OpenTransaction",
    "Plain",
    "PreparedTransactionState",
    "Producer",
    "ProducerFencedError",
    "ProducerRecord",
    "ProtocolError",
    "RebalanceInProgressError",
    "Record",
    "RecordBatch",
    "RecordTooLargeError",
    "RequestEvent",
    "RequestTimeoutError",
    "Retries",
    "RetryEvent",
    "RetryTopic",
    "RunSummary",
    "Sasl",
    "ScramSha256",
    "ScramSha512",
    "ShareConsumer",
    "ShareRecord",
    "ShareRunSummary",
    "ShareSessionLimitReachedError",
    "ShareSessionNotFoundError",
    "StaleMemberEpochError",
    "Stop",
    "Tls",
    "TopicAuthorizationError",
    "TopicExistsError",
    "TopicPattern",
    "Transaction",
    "TransactionAbortedError",
    "TransactionError",
    "TransactionalIdAuthorizationError",
    "Undecodable",
    "UndecodableRecordError",
    "UnknownMemberIdError",
    "UnknownTopicIdError",
    "UnknownTopicOrPartitionError",
    "UnreadableRecordError",
    "UnsupportedVersionError",
    "Uuid",
    "__compiled__",
    "__version__",
    "failure_of",
]

#: The modules of public names that are in neither `kproto.client` nor an error module.
_ELSEWHERE = {
    "Admin": ".client.admin",
    "AdminError": ".client.admin",
    "BearerToken": ".protocol.sasl",
    "ClientCredentials": ".security",
    "DelegationToken": ".security",
    "OAuthBearer": ".security",
    "Plain": ".security",
    "Sasl": ".security",
    "ScramSha256": ".security",
    "ScramSha512": ".security",
    "Tls": ".security",
    "Undecodable": ".codecs.undecodable",
    "Record": ".records",
    "RecordBatch": ".records",
    "Uuid": ".wire.uuid",
    "ZERO_UUID": ".wire.uuid",
    "__compiled__": ".wire.compiled",
    "__version__": ".version",
}

_BROKER_ERRORS = frozenset(
    {
        "AuthorizationError",
        "ClusterAuthorizationError",
        "CoordinatorNotAvailableError",
        "FencedInstanceIdError",
        "FencedMemberEpochError",
        "GroupAuthorizationError",
        "GroupIdNotFoundError",
        "IllegalGenerationError",
        "InvalidRecordStateError",
        "InvalidShareSessionEpochError",
        "InvalidTopicError",
        "LeaderNotAvailableError",
        "NotControllerError",
        "NotCoordinatorError",
        "NotEnoughReplicasError",
        "NotLeaderOrFollowerError",
        "OffsetOutOfRangeError",
        "ProducerFencedError",
        "RebalanceInProgressError",
        "RecordTooLargeError",
        "ShareSessionLimitReachedError",
        "ShareSessionNotFoundError",
        "StaleMemberEpochError",
        "TopicAuthorizationError",
        "TopicExistsError",
        "TransactionalIdAuthorizationError",
        "UnknownMemberIdError",
        "UnknownTopicIdError",
        "UnknownTopicOrPartitionError",
    }
)

_ERRORS_OF_CLIENT = {
    "AdminError",
    "CommitFailedError",
    "DeliveryError",
    "FatalTransactionError",
    "LockLostError",
    "LogTruncatedError",
    "NoCommittedOffsetError",
    "TransactionAbortedError",
    "TransactionError",
}

if os.environ.get("KPROTO_PURE", "0") not in {"", "0"}:
    from .pure_modules import select

    select()


def __getattr__(name: str) -> Any:
    if name not in __all__:
        raise AttributeError(f"{__name__} has no public name {name!r}")
    module = _ELSEWHERE.get(name, ".client")
    if name in _BROKER_ERRORS:
        module = ".protocol.broker_errors"
    elif name.endswith("Error") and name not in _ERRORS_OF_CLIENT:
        module = ".wire.errors"
    found = getattr(import_module(module, __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
