"""Implements share partitions and the share coordinator (KIP-932). Times are parameters.

`share_partition` holds the records in flight of a partition for one group (`in_flight`), and
changes their states by the table of `record_state`. `acquisition` decides which records a member
acquires. `share_partition_manager` holds the share partitions and the share sessions
(`share_sessions`) of a broker. `share_coordinator` stores the states of share partitions
(`share_state`) as records of `__share_group_state` (`share_state_records`).

`kproto.broker.groups.share` has the members of share groups.
"""

from .acquisition import AcquiredRecords, AcquireMode, AcquireRequest, LogBatch, acquire
from .record_state import AcknowledgeType, RecordState
from .share_coordinator import SHARE_STATE_TOPIC, SHARE_STATE_TOPIC_CONFIGS, ShareCoordinator
from .share_partition import AcknowledgementBatch, RequestFailedError, SharePartition
from .share_partition_config import SharePartitionConfig
from .share_partition_manager import SharePartitionManager
from .share_sessions import (
    FINAL_EPOCH,
    INITIAL_EPOCH,
    ShareSession,
    ShareSessionCache,
    TopicIdPartition,
)
from .share_state import (
    SharePartitionKey,
    ShareState,
    ShareStateWrite,
    StateBatch,
    combine_batches,
    structs_of_batches,
    unpacked_batches,
)

__all__ = [
    "FINAL_EPOCH",
    "INITIAL_EPOCH",
    "SHARE_STATE_TOPIC",
    "SHARE_STATE_TOPIC_CONFIGS",
    "AcknowledgeType",
    "AcknowledgementBatch",
    "AcquireMode",
    "AcquireRequest",
    "AcquiredRecords",
    "LogBatch",
    "RecordState",
    "RequestFailedError",
    "ShareCoordinator",
    "SharePartition",
    "SharePartitionConfig",
    "SharePartitionKey",
    "SharePartitionManager",
    "ShareSession",
    "ShareSessionCache",
    "ShareState",
    "ShareStateWrite",
    "StateBatch",
    "TopicIdPartition",
    "acquire",
    "combine_batches",
    "structs_of_batches",
    "unpacked_batches",
]
