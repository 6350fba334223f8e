"""The enums of ACLs and of authorized operations, with Kafka's codes.

The classes of Kafka's Java client are `ResourceType`, `PatternType`, `AclOperation` and
`AclPermissionType`.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final, Self

__all__ = [
    "AclOperation",
    "AclPermissionType",
    "KafkaEnum",
    "PatternType",
    "ResourceType",
    "authorized_operations",
]

#: The value of the authorized operations that were not requested (KIP-430).
_NOT_REQUESTED: Final = -(2**31)


class KafkaEnum(IntEnum):
    """An enum of Kafka with the member UNKNOWN = 0, which stands for codes of later releases."""

    @classmethod
    def _missing_(cls, value: object) -> Self | None:
        return cls(0) if isinstance(value, int) else None


class ResourceType(KafkaEnum):
    """The types of resources that ACLs protect."""

    UNKNOWN = 0
    ANY = 1
    TOPIC = 2
    GROUP = 3
    CLUSTER = 4
    TRANSACTIONAL_ID = 5
    DELEGATION_TOKEN = 6
    USER = 7


class PatternType(KafkaEnum):
    """Tells how the resource name of an ACL or of a filter matches names (KIP-290).

    In a filter, ANY matches literal and prefixed patterns with the filter's name, and MATCH matches
    all patterns that apply to a resource with this name.
    """

    UNKNOWN = 0
    ANY = 1
    MATCH = 2
    LITERAL = 3
    PREFIXED = 4


class AclOperation(KafkaEnum):
    """The operations on resources."""

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


class AclPermissionType(KafkaEnum):
    """Tells whether an ACL allows or denies its operation."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3


def authorized_operations(bits: int) -> frozenset[AclOperation] | None:
    """Returns the operations in the bits of a response; None if they were not requested (KIP-430).

    The bit of an operation is `1 << code`; bits of later releases are left out.
    """
    if bits == _NOT_REQUESTED:
        return None
    return frozenset(each for each in AclOperation if each > 0 and bits >> each & 1)
