"""`Admin`: the operations of Kafka's Admin interface, and their arguments and results.

Each public name is loaded at its first use, because most clients administer no cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...lazy_names import lazy_names

if TYPE_CHECKING:
    from .acl_types import AclOperation, AclPermissionType, PatternType, ResourceType
    from .acls import AclBinding, AclBindingFilter
    from .admin import Admin
    from .cluster import BrokerDescription, ClusterDescription
    from .configs import (
        AlterConfigOp,
        ConfigEntry,
        ConfigOpType,
        ConfigResource,
        ConfigResourceType,
        ConfigSource,
        ConfigSynonym,
        ConfigType,
    )
    from .elections import ElectionType
    from .errors import AdminError
    from .features import FeatureMetadata, FeatureUpdate, FeatureVersions, UpgradeType
    from .group_offsets import PartitionLag, SharePartitionOffset
    from .groups import (
        ClassicGroupDescription,
        ClassicMemberDescription,
        ConsumerGroupDescription,
        GroupListing,
        MemberDescription,
        MemberToRemove,
    )
    from .log_dirs import LogDirDescription, ReplicaInfo, ReplicaLogDirInfo, TopicPartitionReplica
    from .offsets import ListedOffset, OffsetSpec
    from .producers import ProducerState
    from .quorum import QuorumInfo, QuorumReplica, RaftVoterEndpoint
    from .quotas import ClientQuotaEntity, ClientQuotaFilter, QuotaName
    from .reassignments import PartitionReassignment
    from .scram_users import (
        ScramCredential,
        ScramMechanism,
        UserScramCredentialDeletion,
        UserScramCredentialUpsertion,
    )
    from .share_groups import ShareGroupDescription, ShareMemberDescription
    from .streams_groups import (
        StreamsGroupDescription,
        StreamsMemberDescription,
        StreamsSubtopology,
        StreamsTasks,
        StreamsTopicInfo,
    )
    from .tokens import DelegationTokenInfo
    from .topic_changes import CreatedTopic, NewPartitions
    from .topic_descriptions import PartitionDescription, TopicDescription, TopicListing
    from .topics import NewTopic
    from .transactions import (
        AbortTransactionSpec,
        ProducerIdAndEpoch,
        TransactionDescription,
        TransactionListing,
    )

__all__ = [
    "AbortTransactionSpec",
    "AclBinding",
    "AclBindingFilter",
    "AclOperation",
    "AclPermissionType",
    "Admin",
    "AdminError",
    "AlterConfigOp",
    "BrokerDescription",
    "ClassicGroupDescription",
    "ClassicMemberDescription",
    "ClientQuotaEntity",
    "ClientQuotaFilter",
    "ClusterDescription",
    "ConfigEntry",
    "ConfigOpType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConsumerGroupDescription",
    "CreatedTopic",
    "DelegationTokenInfo",
    "ElectionType",
    "FeatureMetadata",
    "FeatureUpdate",
    "FeatureVersions",
    "GroupListing",
    "ListedOffset",
    "LogDirDescription",
    "MemberDescription",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionDescription",
    "PartitionLag",
    "PartitionReassignment",
    "PatternType",
    "ProducerIdAndEpoch",
    "ProducerState",
    "QuorumInfo",
    "QuorumReplica",
    "QuotaName",
    "RaftVoterEndpoint",
    "ReplicaInfo",
    "ReplicaLogDirInfo",
    "ResourceType",
    "ScramCredential",
    "ScramMechanism",
    "ShareGroupDescription",
    "ShareMemberDescription",
    "SharePartitionOffset",
    "StreamsGroupDescription",
    "StreamsMemberDescription",
    "StreamsSubtopology",
    "StreamsTasks",
    "StreamsTopicInfo",
    "TopicDescription",
    "TopicListing",
    "TopicPartitionReplica",
    "TransactionDescription",
    "TransactionListing",
    "UpgradeType",
    "UserScramCredentialDeletion",
    "UserScramCredentialUpsertion",
]

if not TYPE_CHECKING:
    __getattr__, __dir__ = lazy_names(
        __name__,
        {
            "AbortTransactionSpec": ".transactions",
            "AclBinding": ".acls",
            "AclBindingFilter": ".acls",
            "AclOperation": ".acl_types",
            "AclPermissionType": ".acl_types",
            "Admin": ".admin",
            "AdminError": ".errors",
            "AlterConfigOp": ".configs",
            "BrokerDescription": ".cluster",
            "ClassicGroupDescription": ".groups",
            "ClassicMemberDescription": ".groups",
            "ClientQuotaEntity": ".quotas",
            "ClientQuotaFilter": ".quotas",
            "ClusterDescription": ".cluster",
            "ConfigEntry": ".configs",
            "ConfigOpType": ".configs",
            "ConfigResource": ".configs",
            "ConfigResourceType": ".configs",
            "ConfigSource": ".configs",
            "ConfigSynonym": ".configs",
            "ConfigType": ".configs",
            "ConsumerGroupDescription": ".groups",
            "CreatedTopic": ".topic_changes",
            "DelegationTokenInfo": ".tokens",
            "ElectionType": ".elections",
            "FeatureMetadata": ".features",
            "FeatureUpdate": ".features",
            "FeatureVersions": ".features",
            "GroupListing": ".groups",
            "ListedOffset": ".offsets",
            "LogDirDescription": ".log_dirs",
            "MemberDescription": ".groups",
            "MemberToRemove": ".groups",
            "NewPartitions": ".topic_changes",
            "NewTopic": ".topics",
            "OffsetSpec": ".offsets",
            "PartitionDescription": ".topic_descriptions",
            "PartitionLag": ".group_offsets",
            "PartitionReassignment": ".reassignments",
            "PatternType": ".acl_types",
            "ProducerIdAndEpoch": ".transactions",
            "ProducerState": ".producers",
            "QuorumInfo": ".quorum",
            "QuorumReplica": ".quorum",
            "QuotaName": ".quotas",
            "RaftVoterEndpoint": ".quorum",
            "ReplicaInfo": ".log_dirs",
            "ReplicaLogDirInfo": ".log_dirs",
            "ResourceType": ".acl_types",
            "ScramCredential": ".scram_users",
            "ScramMechanism": ".scram_users",
            "ShareGroupDescription": ".share_groups",
            "ShareMemberDescription": ".share_groups",
            "SharePartitionOffset": ".group_offsets",
            "StreamsGroupDescription": ".streams_groups",
            "StreamsMemberDescription": ".streams_groups",
            "StreamsSubtopology": ".streams_groups",
            "StreamsTasks": ".streams_groups",
            "StreamsTopicInfo": ".streams_groups",
            "TopicDescription": ".topic_descriptions",
            "TopicListing": ".topic_descriptions",
            "TopicPartitionReplica": ".log_dirs",
            "TransactionDescription": ".transactions",
            "TransactionListing": ".transactions",
            "UpgradeType": ".features",
            "UserScramCredentialDeletion": ".scram_users",
            "UserScramCredentialUpsertion": ".scram_users",
        },
    )
