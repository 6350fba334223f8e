"""DescribeUserScramCredentials (50), v0 to v0.

v0      the SCRAM mechanisms of a user with their iterations (KIP-554)

The request requires DESCRIBE on the cluster.

Left out: nothing.
"""

from __future__ import annotations

from collections import Counter

from ...messages.describe_user_scram_credentials_request import DescribeUserScramCredentialsRequest
from ...messages.describe_user_scram_credentials_response import (
    CredentialInfo,
    DescribeUserScramCredentialsResponse,
    DescribeUserScramCredentialsResult,
)
from ...protocol.error_codes import code_of
from ...wire.errors import BrokerResponseError
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles
from ..security.users import Users


@handles(DescribeUserScramCredentialsRequest, versions=range(1))
def describe_user_scram_credentials(
    context: Context, request: DescribeUserScramCredentialsRequest, version: int
) -> DescribeUserScramCredentialsResponse:
    """Returns the credentials of the requested users; of all users if none is named."""
    try:
        check_cluster(context, Operation.DESCRIBE)
    except BrokerResponseError as error:
        return DescribeUserScramCredentialsResponse(
            error_code=error.code, error_message=error.detail
        )
    users = context.cluster.users
    requested = Counter(user.name for user in request.users or ()) or Counter(users.names)
    return DescribeUserScramCredentialsResponse(
        error_message=None,
        results=[_described(users, name, times) for name, times in requested.items()],
    )


def _described(users: Users, name: str, times: int) -> DescribeUserScramCredentialsResult:
    if times > 1:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=code_of("DUPLICATE_RESOURCE"),
            error_message="Cannot describe SCRAM credentials for the same user twice in a single"
            f" request: {name}",
        )
    credentials = users.credentials(name)
    if not credentials:
        return DescribeUserScramCredentialsResult(
            user=name,
            error_code=code_of("RESOURCE_NOT_FOUND"),
            error_message=f"Attempt to describe a user credential that does not exist: {name}",
        )
    return DescribeUserScramCredentialsResult(
        user=name,
        credential_infos=[
            CredentialInfo(mechanism=number, iterations=credential.iterations)
            for number, credential in credentials.items()
        ],
    )
