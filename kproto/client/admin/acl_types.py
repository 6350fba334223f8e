"""The enums of ACLs, and the operations that a response reports as authorized."""

from __future__ import annotations

from typing import Final

from ...protocol.acl_types import AclOperation, AclPermissionType, PatternType, ResourceType

__all__ = [
    "AclOperation",
    "AclPermissionType",
    "PatternType",
    "ResourceType",
    "authorized_operations",
]

#: The value of the authorized operations that were not requested (KIP-430).
_NOT_REQUESTED: Final = -(2**31)


def authorized_operations(bits: int) -> frozenset[AclOperation] | None:
    """Returns the operations in the bits of a response; None if they were not requested (KIP-430).

    The bit of an operation is `1 << code`; bits of later releases are left out.
    """
    if bits == _NOT_REQUESTED:
        return None
    return frozenset(each for each in AclOperation if each > 0 and bits >> each & 1)
