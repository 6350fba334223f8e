"""CreateAcls (30), v0 to v3.

v0      literal names (KIP-140)
v1      prefixes of names (KIP-290)
v2      flexible
v3      resources of type user (KIP-373)

The request requires ALTER on the cluster. Without an authorizer each ACL gets SECURITY_DISABLED.
The creation of an existing ACL succeeds. An invalid ACL gets INVALID_REQUEST, and the other ACLs
are created. Kafka differs for two kinds of invalid ACL, and then creates no ACL of the request. If
an ACL has a code that only filters may have (ANY or MATCH), Kafka returns UNKNOWN_SERVER_ERROR. If
an ACL has code 0 (UNKNOWN), Kafka closes the connection.

Left out: nothing.
"""

from __future__ import annotations

from ...messages.create_acls_request import AclCreation, CreateAclsRequest
from ...messages.create_acls_response import AclCreationResult, CreateAclsResponse
from ...wire.errors import BrokerResponseError, ConfigurationError
from ..api_error import api_error
from ..authorization import check_cluster, required_authorizer
from ..authorizer import Acl, Operation, PatternType, Permission, ResourceType
from ..context import Context
from ..registry import handles


@handles(CreateAclsRequest, versions=range(4))
def create_acls(context: Context, request: CreateAclsRequest, version: int) -> CreateAclsResponse:
    """Creates ACLs, and returns an error code for each."""
    try:
        check_cluster(context, Operation.ALTER)
        required_authorizer(context)
    except BrokerResponseError as error:
        return CreateAclsResponse(results=[_refused(error) for _ in request.creations])
    return CreateAclsResponse(
        results=[_create(context, requested) for requested in request.creations]
    )


def _create(context: Context, requested: AclCreation) -> AclCreationResult:
    try:
        acl = Acl(
            requested.principal,
            Operation(requested.operation),
            ResourceType(requested.resource_type),
            requested.resource_name,
            PatternType(requested.resource_pattern_type),
            Permission(requested.permission_type),
            requested.host,
        )
    except ConfigurationError as error:
        return _refused(api_error("INVALID_REQUEST", str(error)))
    required_authorizer(context).add(acl)
    return AclCreationResult()


def _refused(error: BrokerResponseError) -> AclCreationResult:
    return AclCreationResult(error_code=error.code, error_message=error.detail)
