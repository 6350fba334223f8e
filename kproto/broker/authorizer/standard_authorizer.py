"""Implements the rules of Kafka's StandardAuthorizer for a set of ACLs.

Super users may perform all operations. For other principals, an operation is

1. denied if an ACL that applies denies it;
2. else allowed if an ACL that applies allows it;
3. else allowed if `allow_if_no_acl` is set and the resource has no ACL;
4. else denied.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final

from .acl import Acl, AclFilter
from .acl_types import WILDCARD, Operation, PatternType, Permission, ResourceType

__all__ = ["Authorizer"]

_EVERYBODY: Final = "User:*"

#: The operations that imply an operation, by the implied operation. Each operation implies itself.
#: The table applies only to ACLs that allow an operation, not to ACLs that deny an operation.
_IMPLIED_BY: Final = {
    Operation.DESCRIBE: frozenset(
        {
            Operation.DESCRIBE,
            Operation.READ,
            Operation.WRITE,
            Operation.DELETE,
            Operation.ALTER,
        }
    ),
    Operation.DESCRIBE_CONFIGS: frozenset({Operation.DESCRIBE_CONFIGS, Operation.ALTER_CONFIGS}),
}


class Authorizer:
    """Holds the ACLs of a cluster, and decides whether they allow an operation.

    Principals are text, such as `User:alice`; `host` is the IP address of the client.
    `allow_if_no_acl` is Kafka's `allow.everyone.if.no.acl.found`.
    """

    def __init__(
        self,
        super_users: Collection[str] = (),
        acls: Iterable[Acl] = (),
        *,
        allow_if_no_acl: bool = False,
    ) -> None:
        self._super_users = frozenset(super_users)
        self._allow_if_no_acl = allow_if_no_acl
        #: The ACLs by resource and pattern type, then by name. A dict replaces a set, because it
        #: keeps the order in which ACLs were added.
        self._by_pattern: dict[tuple[ResourceType, PatternType], dict[str, dict[Acl, None]]] = {}
        for acl in acls:
            self.add(acl)

    def __iter__(self) -> Iterator[Acl]:
        for by_name in self._by_pattern.values():
            for acls in by_name.values():
                yield from acls

    def add(self, acl: Acl) -> None:
        """Adds an ACL; does nothing if the ACL exists."""
        by_name = self._by_pattern.setdefault((acl.resource_type, acl.pattern_type), {})
        by_name.setdefault(acl.name, {})[acl] = None

    def remove(self, acl: Acl) -> None:
        """Removes an ACL; does nothing if the ACL does not exist."""
        by_name = self._by_pattern.get((acl.resource_type, acl.pattern_type), {})
        acls = by_name.get(acl.name, {})
        acls.pop(acl, None)
        if not acls:
            by_name.pop(acl.name, None)

    def matching(self, acl_filter: AclFilter) -> list[Acl]:
        """Returns the ACLs that match a filter."""
        return [acl for acl in self if acl_filter.matches(acl)]

    def allows(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        name: str,
    ) -> bool:
        """Returns True if `principal` at `host` may perform `operation` on the resource."""
        if principal in self._super_users:
            return True
        has_acls = allowed = False
        for acls in self._applicable_acls(resource_type, name):
            has_acls = True
            for acl in acls:
                if not _applies_to(acl, principal, host):
                    continue
                if acl.permission is Permission.DENY:
                    if acl.operation in (Operation.ALL, operation):
                        return False
                elif not allowed:
                    allowed = acl.operation is Operation.ALL or acl.operation in _IMPLIED_BY.get(
                        operation, (operation,)
                    )
        return allowed or (not has_acls and self._allow_if_no_acl)

    def allows_any(
        self, principal: str, host: str, operation: Operation, resource_type: ResourceType
    ) -> bool:
        """Returns True if `operation` is allowed on at least one resource of the type (KIP-679).

        As in Kafka, operations that imply `operation` count only in ACLs that match the resource
        name `hardcode`, such as ACLs for `*`. In all other ACLs, only `operation` itself and ALL
        count.
        """
        # As in Kafka, an arbitrary name: it covers super users and resources without ACLs.
        if self.allows(principal, host, operation, resource_type, "hardcode"):
            return True
        literal, denied_literal = self._pattern_names(
            principal, host, operation, resource_type, PatternType.LITERAL
        )
        prefixed, denied_prefixed = self._pattern_names(
            principal, host, operation, resource_type, PatternType.PREFIXED
        )
        if WILDCARD in denied_literal:
            return False
        if WILDCARD in literal:
            return True
        return any(
            not any(name.startswith(prefix) for prefix in denied_prefixed)
            for name in (literal - denied_literal) | prefixed
        )

    def _applicable_acls(self, resource_type: ResourceType, name: str) -> Iterator[Collection[Acl]]:
        """Yields the ACLs of each pattern that matches `name`."""
        literal = self._by_pattern.get((resource_type, PatternType.LITERAL), {})
        for pattern_name in {name, WILDCARD}:
            if pattern_name in literal:
                yield literal[pattern_name]
        for prefix, acls in self._by_pattern.get((resource_type, PatternType.PREFIXED), {}).items():
            if name.startswith(prefix):
                yield acls

    def _pattern_names(
        self,
        principal: str,
        host: str,
        operation: Operation,
        resource_type: ResourceType,
        pattern_type: PatternType,
    ) -> tuple[set[str], set[str]]:
        """Returns the resource names of ACLs that allow, and of ACLs that deny, `operation`.

        Considers only ACLs that apply to the principal and the host, and whose pattern has the type
        `pattern_type`.
        """
        allowed: set[str] = set()
        denied: set[str] = set()
        for name, acls in self._by_pattern.get((resource_type, pattern_type), {}).items():
            for acl in acls:
                if acl.operation not in (Operation.ALL, operation):
                    continue
                if _applies_to(acl, principal, host):
                    (denied if acl.permission is Permission.DENY else allowed).add(name)
        return allowed, denied


def _applies_to(acl: Acl, principal: str, host: str) -> bool:
    return acl.principal in (principal, _EVERYBODY) and acl.host in (host, WILDCARD)
