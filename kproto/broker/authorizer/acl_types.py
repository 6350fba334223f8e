"""Tells by resource type which operations responses report, and which error denies an operation.

`kproto.protocol.acl_types` defines the codes of ACLs.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ...protocol.acl_types import AclOperation as Operation
from ...protocol.acl_types import AclPermissionType as Permission
from ...protocol.acl_types import PatternType, ResourceType

__all__ = [
    "AUTHORIZATION_ERRORS",
    "CLUSTER_NAME",
    "SUPPORTED_OPERATIONS",
    "WILDCARD",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
]

#: A literal name or a host that matches all names or hosts.
WILDCARD: Final = "*"

#: The only name of a resource of type CLUSTER.
CLUSTER_NAME: Final = "kafka-cluster"


#: By resource type, the operations that responses can report as authorized (KIP-430).
SUPPORTED_OPERATIONS: Final[Mapping[ResourceType, tuple[Operation, ...]]] = {
    ResourceType.TOPIC: (
        Operation.READ,
        Operation.WRITE,
        Operation.CREATE,
        Operation.DELETE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.GROUP: (
        Operation.READ,
        Operation.DELETE,
        Operation.DESCRIBE,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
    ),
    ResourceType.CLUSTER: (
        Operation.CREATE,
        Operation.ALTER,
        Operation.DESCRIBE,
        Operation.CLUSTER_ACTION,
        Operation.DESCRIBE_CONFIGS,
        Operation.ALTER_CONFIGS,
        Operation.IDEMPOTENT_WRITE,
    ),
    ResourceType.TRANSACTIONAL_ID: (
        Operation.WRITE,
        Operation.DESCRIBE,
        Operation.TWO_PHASE_COMMIT,
    ),
    ResourceType.DELEGATION_TOKEN: (Operation.DESCRIBE,),
    ResourceType.USER: (Operation.CREATE_TOKENS, Operation.DESCRIBE_TOKENS),
}

#: The error name of each resource type if an operation is not allowed.
AUTHORIZATION_ERRORS: Final[Mapping[ResourceType, str]] = {
    ResourceType.TOPIC: "TOPIC_AUTHORIZATION_FAILED",
    ResourceType.GROUP: "GROUP_AUTHORIZATION_FAILED",
    ResourceType.CLUSTER: "CLUSTER_AUTHORIZATION_FAILED",
    ResourceType.TRANSACTIONAL_ID: "TRANSACTIONAL_ID_AUTHORIZATION_FAILED",
    ResourceType.DELEGATION_TOKEN: "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
    ResourceType.USER: "DELEGATION_TOKEN_AUTHORIZATION_FAILED",
}
