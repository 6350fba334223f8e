"""DescribeAcls (29), v0 to v3.

v0      ACLs that match a filter (KIP-140)
v1      pattern types of names: literal, prefixed, any, match (KIP-290)
v2      flexible
v3      resources of type user (KIP-373)

An undefined code in the filter matches no ACL. Code 0 (unknown) gets INVALID_REQUEST; Kafka closes
the connection instead. The request requires DESCRIBE on the cluster. Without an authorizer the
request gets SECURITY_DISABLED.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.describe_acls_request import DescribeAclsRequest
from ...messages.describe_acls_response import (
    AclDescription,
    DescribeAclsResource,
    DescribeAclsResponse,
)
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster, required_authorizer
from ..authorizer import Acl, AclFilter, Operation, PatternType, Permission, ResourceType
from ..context import Context
from ..registry import handles


@handles(DescribeAclsRequest, versions=range(4))
def describe_acls(
    context: Context, request: DescribeAclsRequest, version: int
) -> DescribeAclsResponse:
    """Returns the ACLs that match the filter, grouped by resource pattern."""
    requested = AclFilter(
        request.principal_filter,
        Operation(request.operation),
        ResourceType(request.resource_type_filter),
        request.resource_name_filter,
        PatternType(request.pattern_type_filter),
        Permission(request.permission_type),
        request.host_filter,
    )
    try:
        check_cluster(context, Operation.DESCRIBE)
        authorizer = required_authorizer(context)
        words = (
            request.resource_type_filter,
            request.pattern_type_filter,
            request.operation,
            request.permission_type,
        )
        if 0 in words:
            raise api_error("INVALID_REQUEST", "a code of the filter is 0 (unknown)")
    except BrokerResponseError as error:
        return DescribeAclsResponse(error_code=error.code, error_message=error.detail)
    found: dict[tuple[ResourceType, str, PatternType], list[Acl]] = {}
    for acl in authorizer.matching(requested):
        found.setdefault((acl.resource_type, acl.name, acl.pattern_type), []).append(acl)
    return DescribeAclsResponse(
        resources=[
            DescribeAclsResource(
                resource_type=resource_type,
                resource_name=name,
                pattern_type=pattern_type,
                acls=[
                    AclDescription(
                        principal=acl.principal,
                        host=acl.host,
                        operation=acl.operation,
                        permission_type=acl.permission,
                    )
                    for acl in acls
                ],
            )
            for (resource_type, name, pattern_type), acls in found.items()
        ],
    )
