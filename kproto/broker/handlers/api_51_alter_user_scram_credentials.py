"""AlterUserScramCredentials (51), v0 to v0.

v0      sets or removes credentials, at most one per user and request (KIP-554)

The request requires ALTER on the cluster.

Left out: nothing. An empty salt gets UNACCEPTABLE_CREDENTIAL; Kafka accepts an empty salt, although
no client can authenticate with it.
"""

from __future__ import annotations

from ...messages.alter_user_scram_credentials_request import (
    AlterUserScramCredentialsRequest,
    ScramCredentialDeletion,
    ScramCredentialUpsertion,
)
from ...messages.alter_user_scram_credentials_response import (
    AlterUserScramCredentialsResponse,
    AlterUserScramCredentialsResult,
)
from ...protocol.sasl import MIN_ITERATIONS, SaltedCredential
from ...wire.errors import BrokerResponseError
from ..api_error import api_error
from ..authorization import check_cluster
from ..authorizer import Operation
from ..context import Context
from ..registry import handles
from ..security.users import SCRAM_MECHANISMS, Users

#: Maximum number of iterations, as in Kafka: clients need CPU time for each.
_MAX_ITERATIONS = 16_384

_Alteration = ScramCredentialDeletion | ScramCredentialUpsertion


@handles(AlterUserScramCredentialsRequest, versions=range(1))
def alter_user_scram_credentials(
    context: Context, request: AlterUserScramCredentialsRequest, version: int
) -> AlterUserScramCredentialsResponse:
    """Sets and removes SCRAM credentials, and returns an error code for each user."""
    try:
        check_cluster(context, Operation.ALTER)
    except BrokerResponseError as error:
        named = [*(it.name for it in request.deletions), *(it.name for it in request.upsertions)]
        return AlterUserScramCredentialsResponse(
            results=[_refused(name, error) for name in dict.fromkeys(named)]
        )
    users = context.cluster.users
    planned: dict[str, _Alteration] = {}
    refused: dict[str, BrokerResponseError] = {}
    alterations: list[_Alteration] = [*request.deletions, *request.upsertions]
    for requested in alterations:
        name = requested.name
        if name in refused:
            continue
        try:
            if planned.pop(name, None) is not None:
                raise api_error(
                    "DUPLICATE_RESOURCE",
                    "A user credential cannot be altered twice in the same request",
                )
            _check(users, requested)
        except BrokerResponseError as error:
            refused[name] = error
        else:
            planned[name] = requested
    for requested in planned.values():
        _alter(users, requested)
    return AlterUserScramCredentialsResponse(
        results=[
            *(AlterUserScramCredentialsResult(user=name, error_message=None) for name in planned),
            *(_refused(name, error) for name, error in refused.items()),
        ]
    )


def _refused(name: str, error: BrokerResponseError) -> AlterUserScramCredentialsResult:
    return AlterUserScramCredentialsResult(
        user=name, error_code=error.code, error_message=error.detail
    )


def _check(users: Users, requested: _Alteration) -> None:
    """Raises BrokerResponseError, with Kafka's message, for an invalid alteration."""
    if not requested.name:
        raise api_error("UNACCEPTABLE_CREDENTIAL", "Username must not be empty")
    if requested.mechanism not in SCRAM_MECHANISMS:
        raise api_error("UNSUPPORTED_SASL_MECHANISM", "Unknown SCRAM mechanism")
    if isinstance(requested, ScramCredentialDeletion):
        if users.for_scram(requested.mechanism, requested.name) is None:
            raise api_error(
                "RESOURCE_NOT_FOUND", "Attempt to delete a user credential that does not exist"
            )
        return
    if requested.iterations < MIN_ITERATIONS:
        raise api_error("UNACCEPTABLE_CREDENTIAL", "Too few iterations")
    if requested.iterations > _MAX_ITERATIONS:
        raise api_error("UNACCEPTABLE_CREDENTIAL", "Too many iterations")
    if not requested.salt:
        raise api_error("UNACCEPTABLE_CREDENTIAL", "Salt must not be empty")


def _alter(users: Users, requested: _Alteration) -> None:
    if isinstance(requested, ScramCredentialDeletion):
        users.remove(requested.mechanism, requested.name)
        return
    credential = SaltedCredential.from_salted_password(
        requested.salted_password,
        hash_name=SCRAM_MECHANISMS[requested.mechanism].hash_name,
        iterations=requested.iterations,
        salt=requested.salt,
    )
    users.set(requested.mechanism, requested.name, credential)
