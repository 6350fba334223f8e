"""Defines `Acl`, which allows or denies an operation on resources, and filters of ACLs.

Sources: KIP-140 (creating, describing and deleting ACLs), KIP-290 (prefixed patterns).
"""

from __future__ import annotations

import shlex
from dataclasses import dataclass
from typing import Final, Self, TypeVar

from ...protocol.kafka_enum import KafkaEnum
from ...wire.errors import ConfigurationError
from .acl_types import (
    CLUSTER_NAME,
    WILDCARD,
    Operation,
    PatternType,
    Permission,
    ResourceType,
)

__all__ = ["Acl", "AclFilter"]

_W = TypeVar("_W", bound=KafkaEnum)

#: Minimum number of words in an ACL's text: permission, principal, operation, resource type and
#: name. The host is an optional sixth word.
_FEWEST_PARTS: Final = 5
_MOST_PARTS: Final = 6


@dataclass(frozen=True, slots=True)
class Acl:
    """Allows or denies a principal an operation on resources.

    For example: `Acl("User:alice", Operation.READ, ResourceType.TOPIC, "orders")`. `principal` is
    `Type:name`; `User:*` matches all users. A literal `name` of `*` matches all names. A prefixed
    `name` matches all names that start with it. `host` is the client's IP address; `*` matches all.
    Raises ConfigurationError for invalid arguments.
    """

    principal: str
    operation: Operation
    resource_type: ResourceType
    name: str
    pattern_type: PatternType = PatternType.LITERAL
    permission: Permission = Permission.ALLOW
    host: str = WILDCARD

    def __post_init__(self) -> None:
        fault = self._fault()
        if fault is not None:
            raise ConfigurationError(f"an ACL of {self.principal!r}: {fault}")

    def _fault(self) -> str | None:
        """Returns why the arguments are invalid; None if they are valid."""
        if self.resource_type in (ResourceType.UNKNOWN, ResourceType.ANY):
            return f"invalid resource type {self.resource_type.name}"
        if self.pattern_type not in (PatternType.LITERAL, PatternType.PREFIXED):
            return f"invalid pattern type {self.pattern_type.name}: it is LITERAL or PREFIXED"
        if self.operation in (Operation.UNKNOWN, Operation.ANY):
            return f"invalid operation {self.operation.name}"
        if self.permission not in (Permission.DENY, Permission.ALLOW):
            return f"invalid permission {self.permission.name}: it is ALLOW or DENY"
        if not self.name:
            return "the name of the resource is empty"
        if self.resource_type is ResourceType.CLUSTER and self.name != CLUSTER_NAME:
            return f"the only valid name of the CLUSTER is {CLUSTER_NAME!r}"
        if ":" not in self.principal:
            return "the principal is not of the form Type:name, such as User:alice"
        if not self.host:
            return f"the host is empty; {WILDCARD} stands for every host"
        return None

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parses text such as `allow User:alice read topic orders`, with the quoting of a shell.

        The fields are permission, principal, operation, resource type, name, and optionally a host.
        A name that ends with `*` is a prefix; `*` alone matches all names. Raises
        ConfigurationError for an invalid text.
        """
        try:
            parts = shlex.split(text)
        except ValueError as error:
            raise ConfigurationError(f"ACL {text!r}: {error}") from None
        if not _FEWEST_PARTS <= len(parts) <= _MOST_PARTS:
            raise ConfigurationError(
                f"ACL {text!r} has {len(parts)} words: write permission, principal, operation, "
                "resource, name, and perhaps a host, as in 'allow User:alice read topic orders'"
            )
        permission, principal, operation, resource, name = parts[:_FEWEST_PARTS]
        prefixed = name.endswith(WILDCARD) and name != WILDCARD
        return cls(
            principal,
            _parse_code(Operation, operation, text),
            _parse_code(ResourceType, resource, text),
            name[:-1] if prefixed else name,
            PatternType.PREFIXED if prefixed else PatternType.LITERAL,
            _parse_code(Permission, permission, text),
            parts[_FEWEST_PARTS] if len(parts) == _MOST_PARTS else WILDCARD,
        )


def _parse_code(words: type[_W], text: str, whole: str) -> _W:
    """Returns the member of the enum `words` with the name `text`.

    `text` may be in upper or lower case, with `-` instead of `_`. Raises a ConfigurationError that
    quotes `whole`, the text of the ACL.
    """
    found = words.__members__.get(text.upper().replace("-", "_"))
    if found is None or found.name == "UNKNOWN":
        known = ", ".join(name.lower() for name in words.__members__ if name != "UNKNOWN")
        raise ConfigurationError(f"ACL {whole!r}: {text!r} is none of {known}")
    return found


@dataclass(frozen=True, slots=True)
class AclFilter:
    """Matches ACLs; a field that is None or ANY matches every value.

    `pattern_type` determines how `name` matches. LITERAL and PREFIXED match ACLs with this name and
    pattern type. ANY matches ACLs with this name and any pattern type. MATCH matches ACLs that
    apply to a resource with this name.
    """

    principal: str | None = None
    operation: Operation = Operation.ANY
    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    pattern_type: PatternType = PatternType.ANY
    permission: Permission = Permission.ANY
    host: str | None = None

    def fault(self) -> str | None:
        """Returns why DeleteAcls refuses the filter; None if DeleteAcls accepts it."""
        words = (self.operation, self.resource_type, self.pattern_type, self.permission)
        for word in words:
            if word == 0:
                return f"unknown {type(word).__name__} in the filter"
        return None

    def matches(self, acl: Acl) -> bool:
        """Returns True if `acl` matches the filter."""
        return (
            self.resource_type in (ResourceType.ANY, acl.resource_type)
            and self.operation in (Operation.ANY, acl.operation)
            and self.permission in (Permission.ANY, acl.permission)
            and self.principal in (None, acl.principal)
            and self.host in (None, acl.host)
            and self._matches_name(acl)
        )

    def _matches_name(self, acl: Acl) -> bool:
        if self.pattern_type not in (PatternType.ANY, PatternType.MATCH, acl.pattern_type):
            return False
        if self.name is None or self.name == acl.name:
            return True
        if self.pattern_type is not PatternType.MATCH:
            return False
        if acl.pattern_type is PatternType.PREFIXED:
            return self.name.startswith(acl.name)
        return acl.name == WILDCARD
