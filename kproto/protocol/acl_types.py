"""Defines the codes of ACLs: resource types, pattern types, operations and permissions.

Sources: KIP-11, KIP-290 (prefixes), KIP-373 (users), KIP-939 (two-phase commit). The classes of
Kafka's Java client have the same names. UNKNOWN stands for all numbers without a name. ANY and
MATCH are valid only in filters.
"""

from __future__ import annotations

from .kafka_enum import KafkaEnum

__all__ = ["AclOperation", "AclPermissionType", "PatternType", "ResourceType"]


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
    """The operations on resources.

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


class AclPermissionType(KafkaEnum):
    """Tells whether an ACL allows or denies its operation."""

    UNKNOWN = 0
    ANY = 1
    DENY = 2
    ALLOW = 3
