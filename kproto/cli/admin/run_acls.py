"""Runs `kproto acls`."""

from __future__ import annotations

import argparse
from collections.abc import Iterable
from enum import IntEnum
from typing import Any, Final, TypeVar

from ...client import Client
from ...client.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminError,
    PatternType,
    ResourceType,
)
from ...wire.counted import counted
from ...wire.errors import ConfigurationError
from ..acl_names import acl_name_of, acl_name_text
from ..command_error import CommandError
from .confirming import confirm
from .rows import print_rows
from .running import VerbFunction, run_verb

__all__ = ["run"]

E = TypeVar("E", bound=IntEnum)

_COLUMNS: Final = ("permission", "principal", "operation", "resource", "name", "pattern", "host")


def run(options: argparse.Namespace) -> int:
    """Runs the verb; returns the exit code."""
    return run_verb(options, _VERBS)


def member_of(kind: type[E], what: str, text: str) -> E:
    """Returns the member that a text such as `transactional-id` names, in any case.

    Raises ConfigurationError, which lists the names, for other text.
    """
    name = text.upper().replace("-", "_")
    try:
        return kind[name]
    except KeyError:
        known = ", ".join(_lower(each) for each in kind if each.name not in ("UNKNOWN", "ANY"))
        raise ConfigurationError(f"{text!r:.80} is no {what}: use {known}") from None


def _lower(member: IntEnum) -> str:
    return member.name.lower().replace("_", "-")


def _row(acl: AclBinding) -> dict[str, Any]:
    return {
        "permission": _lower(acl.permission_type),
        "principal": acl.principal,
        "operation": _lower(acl.operation),
        "resource": _lower(acl.resource_type),
        "name": acl_name_text(acl.name, is_prefix=acl.pattern_type == PatternType.PREFIXED),
        "pattern": _lower(acl.pattern_type),
        "host": acl.host,
    }


def _print(options: argparse.Namespace, acls: Iterable[AclBinding]) -> None:
    print_rows(options, _COLUMNS, sorted(map(_row, acls), key=lambda row: [*row.values()]))


def _filter(options: argparse.Namespace) -> AclBindingFilter:
    name, pattern = options.name, PatternType.ANY
    if options.match:
        pattern = PatternType.MATCH
    elif name is not None:
        name, pattern = _pattern_of(name)
    return AclBindingFilter(
        resource_type=ResourceType.ANY
        if options.resource is None
        else member_of(ResourceType, "type of resource", options.resource),
        name=name,
        principal=options.principal,
        operation=AclOperation.ANY
        if options.operation is None
        else member_of(AclOperation, "operation", options.operation),
        permission_type=AclPermissionType.ANY
        if options.permission is None
        else member_of(AclPermissionType, "permission", options.permission),
        host=options.host,
        pattern_type=pattern,
    )


async def _list(client: Client, options: argparse.Namespace) -> int:
    _print(options, await client.admin.describe_acls(_filter(options)))
    return 0


async def _add(client: Client, options: argparse.Namespace) -> int:
    kind = member_of(ResourceType, "type of resource", options.resource_type)
    operations = [
        member_of(AclOperation, "operation", each) for each in options.operations.split(",")
    ]
    acls = [
        AclBinding(
            kind,
            name,
            options.principal,
            operation,
            AclPermissionType[options.permission.upper()],
            options.host,
            pattern,
        )
        for name, pattern in map(_pattern_of, options.names)
        for operation in operations
    ]
    try:
        await client.admin.create_acls(acls)
    except AdminError as error:
        _print(options, error.results)
        raise
    _print(options, acls)
    return 0


def _pattern_of(text: str) -> tuple[str, PatternType]:
    name, is_prefix = acl_name_of(text)
    return name, PatternType.PREFIXED if is_prefix else PatternType.LITERAL


async def _remove(client: Client, options: argparse.Namespace) -> int:
    acl_filter = _filter(options)
    found = await client.admin.describe_acls(acl_filter)
    if not found:
        raise CommandError("no ACL matches; nothing was removed")
    rows = (" ".join(str(cell) for cell in _row(acl).values()) for acl in found)
    if not confirm(options, f"remove {counted(len(found), 'ACL')} ({'; '.join(rows)})"):
        return 1
    deleted = await client.admin.delete_acls([acl_filter])
    _print(options, (acl for acls in deleted.values() for acl in acls))
    return 0


_VERBS: Final[dict[str, VerbFunction]] = {"list": _list, "add": _add, "remove": _remove}
