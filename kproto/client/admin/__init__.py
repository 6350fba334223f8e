"""`Admin`: the operations of Kafka's Admin interface, and their arguments and results.

Each public name is loaded at its first use, because most clients administer no cluster.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from .acl_types import AclOperation, AclPermissionType, PatternType, ResourceType
    from .admin import Admin
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
    from .errors import AdminError
    from .group_offsets import PartitionLag, SharePartitionOffset
    from .groups import (
        ClassicGroupDescription,
        ClassicMemberDescription,
        ConsumerGroupDescription,
        GroupListing,
        MemberDescription,
        MemberToRemove,
    )
    from .offsets import ListedOffset, OffsetSpec
    from .share_groups import ShareGroupDescription, ShareMemberDescription
    from .streams_groups import (
        StreamsGroupDescription,
        StreamsMemberDescription,
        StreamsSubtopology,
        StreamsTasks,
        StreamsTopicInfo,
    )
    from .topic_descriptions import PartitionDescription, TopicDescription, TopicListing
    from .topics import CreatedTopic, NewPartitions, NewTopic

__all__ = [
    "AclOperation",
    "AclPermissionType",
    "Admin",
    "AdminError",
    "AlterConfigOp",
    "ClassicGroupDescription",
    "ClassicMemberDescription",
    "ConfigEntry",
    "ConfigOpType",
    "ConfigResource",
    "ConfigResourceType",
    "ConfigSource",
    "ConfigSynonym",
    "ConfigType",
    "ConsumerGroupDescription",
    "CreatedTopic",
    "GroupListing",
    "ListedOffset",
    "MemberDescription",
    "MemberToRemove",
    "NewPartitions",
    "NewTopic",
    "OffsetSpec",
    "PartitionDescription",
    "PartitionLag",
    "PatternType",
    "ResourceType",
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
]

#: The module of each public name.
_MODULES: Final = {
    "AclOperation": "acl_types",
    "AclPermissionType": "acl_types",
    "Admin": "admin",
    "AdminError": "errors",
    "AlterConfigOp": "configs",
    "ClassicGroupDescription": "groups",
    "ClassicMemberDescription": "groups",
    "ConfigEntry": "configs",
    "ConfigOpType": "configs",
    "ConfigResource": "configs",
    "ConfigResourceType": "configs",
    "ConfigSource": "configs",
    "ConfigSynonym": "configs",
    "ConfigType": "configs",
    "ConsumerGroupDescription": "groups",
    "CreatedTopic": "topics",
    "GroupListing": "groups",
    "ListedOffset": "offsets",
    "MemberDescription": "groups",
    "MemberToRemove": "groups",
    "NewPartitions": "topics",
    "NewTopic": "topics",
    "OffsetSpec": "offsets",
    "PartitionDescription": "topic_descriptions",
    "PartitionLag": "group_offsets",
    "PatternType": "acl_types",
    "ResourceType": "acl_types",
    "ShareGroupDescription": "share_groups",
    "ShareMemberDescription": "share_groups",
    "SharePartitionOffset": "group_offsets",
    "StreamsGroupDescription": "streams_groups",
    "StreamsMemberDescription": "streams_groups",
    "StreamsSubtopology": "streams_groups",
    "StreamsTasks": "streams_groups",
    "StreamsTopicInfo": "streams_groups",
    "TopicDescription": "topic_descriptions",
    "TopicListing": "topic_descriptions",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"{__name__} has no public name {name!r}")
    found = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
