"""DeleteAcls (31), v0 to v3.

v0      ACLs that match filters (KIP-140)
v1      pattern types of names: literal, prefixed, any, match (KIP-290)
v2      flexible
v3      resources of type user (KIP-373)

An ACL that matches several filters is returned for each of them. An undefined code in a filter gets
INVALID_REQUEST. Code 0 (unknown) also gets INVALID_REQUEST; Kafka closes the connection instead.
The request requires ALTER on the cluster. Without an authorizer each filter gets SECURITY_DISABLED.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from ...messages.delete_acls_response import (
    DeleteAclsFilterResult,
    DeleteAclsMatchingAcl,
    DeleteAclsResponse,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster, required_authorizer
from ..authorizer import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from ..context import Context
from ..registry import handles


@handles(DeleteAclsRequest, versions=range(4))
def delete_acls(context: Context, request: DeleteAclsRequest, version: int) -> DeleteAclsResponse:
    """Deletes the ACLs that match the filters; returns the deleted ACLs of each filter."""
    try:
        check_cluster(context, Operation.ALTER)
        authorizer = required_authorizer(context)
    except BrokerResponseError as error:
        return DeleteAclsResponse(filter_results=[_refused(error) for _ in request.filters])
    results = []
    deleted: set[Acl] = set()
    for acl_filter in map(_filter, request.filters):
        fault = acl_filter.fault()
        if fault is not None:
            results.append(_refused(api_error("INVALID_REQUEST", fault)))
            continue
        found = authorizer.matching(acl_filter)
        deleted.update(found)
        results.append(
            DeleteAclsFilterResult(
                error_message=None, matching_acls=[_matching_acl(acl) for acl in found]
            )
        )
    for acl in deleted:
        authorizer.remove(acl)
    return DeleteAclsResponse(filter_results=results)


def _filter(requested: DeleteAclsFilter) -> AclFilter:
    return AclFilter(
        requested.principal_filter,
        Operation(requested.operation),
        ResourceType(requested.resource_type_filter),
        requested.resource_name_filter,
        PatternType(requested.pattern_type_filter),
        Permission(requested.permission_type),
        requested.host_filter,
    )


def _matching_acl(acl: Acl) -> DeleteAclsMatchingAcl:
    return DeleteAclsMatchingAcl(
        error_message=None,
        resource_type=acl.resource_type,
        resource_name=acl.name,
        pattern_type=acl.pattern_type,
        principal=acl.principal,
        host=acl.host,
        operation=acl.operation,
        permission_type=acl.permission,
    )


def _refused(error: BrokerResponseError) -> DeleteAclsFilterResult:
    return DeleteAclsFilterResult(error_code=error.code, error_message=error.detail)
