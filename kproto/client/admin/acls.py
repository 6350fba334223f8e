"""Describes, creates and deletes ACLs: requests and results as plain data.

DescribeAcls (29), CreateAcls (30) and DeleteAcls (31, KIP-140).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...messages.create_acls_request import AclCreation, CreateAclsRequest
from ...messages.create_acls_response import CreateAclsResponse
from ...messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from ...messages.delete_acls_response import DeleteAclsFilterResult, DeleteAclsResponse
from ...messages.describe_acls_request import DescribeAclsRequest
from ...messages.describe_acls_response import DescribeAclsResponse
from ...wire.errors import KprotoError
from .acl_types import AclOperation, AclPermissionType, PatternType, ResourceType
from .calls import PartCall, error_in, outcome
from .errors import AdminError

__all__ = [
    "AclBinding",
    "AclBindingFilter",
    "create_acls_call",
    "delete_acls_call",
    "describe_acls_request",
    "described_acls",
]


class AclBinding(NamedTuple):
    """An ACL: it allows or denies a principal an operation on resources.

    `principal` is, for example, "User:alice"; "User:*" stands for all users, and the host "*" for
    all hosts. With the pattern type PREFIXED, `name` is a prefix of names (KIP-290).
    """

    resource_type: ResourceType
    name: str
    principal: str
    operation: AclOperation
    permission_type: AclPermissionType = AclPermissionType.ALLOW
    host: str = "*"
    pattern_type: PatternType = PatternType.LITERAL


class AclBindingFilter(NamedTuple):
    """A filter of ACLs; its defaults match every ACL.

    None, and the member ANY of an enum, match all values. The pattern type MATCH matches all
    patterns that apply to `name`.
    """

    resource_type: ResourceType = ResourceType.ANY
    name: str | None = None
    principal: str | None = None
    operation: AclOperation = AclOperation.ANY
    permission_type: AclPermissionType = AclPermissionType.ANY
    host: str | None = None
    pattern_type: PatternType = PatternType.ANY


def describe_acls_request(found: AclBindingFilter) -> DescribeAclsRequest:
    """Returns the request for the ACLs that a filter matches."""
    return DescribeAclsRequest(**_filter_fields(found))


def _filter_fields(each: AclBindingFilter) -> dict[str, Any]:
    return {
        "resource_type_filter": each.resource_type,
        "resource_name_filter": each.name,
        "pattern_type_filter": each.pattern_type,
        "principal_filter": each.principal,
        "host_filter": each.host,
        "operation": each.operation,
        "permission_type": each.permission_type,
    }


def described_acls(response: DescribeAclsResponse) -> list[AclBinding] | KprotoError:
    """Returns the ACLs of a response, or its error."""
    return outcome(
        response.error_code,
        "describing ACLs",
        response.error_message,
        [
            AclBinding(
                ResourceType(resource.resource_type),
                resource.resource_name,
                each.principal,
                AclOperation(each.operation),
                AclPermissionType(each.permission_type),
                each.host,
                PatternType(resource.pattern_type),
            )
            for resource in response.resources
            for each in resource.acls
        ],
    )


def create_acls_call() -> PartCall[AclBinding, None]:
    """Returns the call that creates ACLs; an ACL that exists already is no error."""

    def build(acls: Sequence[AclBinding], left_ms: int) -> CreateAclsRequest:
        return CreateAclsRequest(
            creations=[
                AclCreation(
                    resource_type=each.resource_type,
                    resource_name=each.name,
                    resource_pattern_type=each.pattern_type,
                    principal=each.principal,
                    host=each.host,
                    operation=each.operation,
                    permission_type=each.permission_type,
                )
                for each in acls
            ]
        )

    def read(
        response: CreateAclsResponse, acls: Sequence[AclBinding]
    ) -> dict[AclBinding, KprotoError | None]:
        # The results are in the order of the request.
        return {
            acl: error_in(each.error_code, "creating an ACL", each.error_message)
            for acl, each in zip(acls, response.results, strict=False)
        }

    return PartCall("creating ACLs", build, read, changes=True)


def delete_acls_call() -> PartCall[AclBindingFilter, list[AclBinding]]:
    """Returns the call that deletes the ACLs that filters match.

    The call does not repeat a request that was not answered, because the repeated request would
    return none of the ACLs that the first request has deleted.
    """

    def build(filters: Sequence[AclBindingFilter], left_ms: int) -> DeleteAclsRequest:
        return DeleteAclsRequest(
            filters=[DeleteAclsFilter(**_filter_fields(each)) for each in filters]
        )

    def read(
        response: DeleteAclsResponse, filters: Sequence[AclBindingFilter]
    ) -> dict[AclBindingFilter, list[AclBinding] | KprotoError]:
        # The results are in the order of the request.
        return {
            each: _deleted(result)
            for each, result in zip(filters, response.filter_results, strict=False)
        }

    return PartCall("deleting ACLs", build, read, changes=True, repeats=False)


def _deleted(result: DeleteAclsFilterResult) -> list[AclBinding] | KprotoError:
    action = "deleting ACLs"
    whole = error_in(result.error_code, action, result.error_message)
    if whole is not None:
        return whole
    deleted: dict[AclBinding, None] = {}
    errors: dict[AclBinding, KprotoError] = {}
    for each in result.matching_acls:
        acl = AclBinding(
            ResourceType(each.resource_type),
            each.resource_name,
            each.principal,
            AclOperation(each.operation),
            AclPermissionType(each.permission_type),
            each.host,
            PatternType(each.pattern_type),
        )
        error = error_in(each.error_code, action, each.error_message)
        if error is None:
            deleted[acl] = None
        else:
            errors[acl] = error
    return AdminError(action, deleted, errors) if errors else list(deleted)
