"""Defines the codes of ACLs in requests: resource types, pattern types, operations, permissions.

Sources: KIP-11, KIP-290 (prefixes), KIP-373 (users), KIP-939 (two-phase commit). UNKNOWN stands for
all numbers without a name. ANY and MATCH are valid only in filters.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

__all__ = [
    "AUTHORIZATION_ERRORS",
    "CLUSTER_NAME",
    "SUPPORTED_OPERATIONS",
    "WILDCARD",
    "AclEnum",
    "Operation",
    "PatternType",
    "Permission",
    "ResourceType",
]

#: A literal name or a host that matches all names or hosts.
WILDCARD: Final = "*"

#: The only name of a resource of type CLUSTER.
CLUSTER_NAME: Final = "kafka-cluster"


class AclEnum(IntEnum):
    """Converts the code of an ACL request to an enum member; an unknown number becomes UNKNOWN."""

    @classmethod
    def _missing_(cls, value: object) -> AclEnum | None:
        return cls(0) if isinstance(value, int) else None


class ResourceType(AclEnum):
    """Names the types of the resources that ACLs protect, with Kafka's codes."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(AclEnum):
    """Tells how the resource name of an ACL or a filter matches names.

    In a filter, ANY matches literal and prefixed patterns with the filter's name, and MATCH matches
    all patterns that apply to a resource with this name.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class Operation(AclEnum):
    """Names the operations on resources.

    In the authorized operations of a response (KIP-430), an operation is the bit `1 << code`.
    """

    UNKNOWN = 0
    ANY = 1
    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DELETE = 6
    ALTER = 7
    DESCRIBE = 8
    CLUSTER_ACTION = 9
    DESCRIBE_CONFIGS = 10
    ALTER_CONFIGS = 11
    IDEMPOTENT_WRITE = 12
    CREATE_TOKENS = 13
    DESCRIBE_TOKENS = 14
    TWO_PHASE_COMMIT = 15


class Permission(AclEnum):
    """Tells whether an ACL allows or denies its operation."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


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
