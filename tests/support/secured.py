"""Provides secured real brokers, and grants and removes rights of their users."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from enum import IntEnum

import pytest

import kproto
from kproto.messages import CreateAclsRequest, DeleteAclsRequest, DescribeAclsRequest
from kproto.messages.create_acls_request import AclCreation
from kproto.messages.delete_acls_request import DeleteAclsFilter
from tools.kafka import VERSIONS
from tools.kafka.secured import SecuredKafka, unsecured_token

from .availability import not_available
from .brokers import CANNOT_START

__all__ = ["Operation", "allow", "remove_right", "sasl_of", "secured"]

_TOPIC = 2
_LITERAL = 3
_ALLOW = 3
_ANY = 1

_PATIENCE_S = 30.0


class Operation(IntEnum):
    """Operations of an ACL, with the codes of Kafka's AclOperation."""

    ALL = 2
    READ = 3
    WRITE = 4
    CREATE = 5
    DESCRIBE = 8


@pytest.fixture(scope="session", params=VERSIONS)
def secured(request: pytest.FixtureRequest) -> Iterator[SecuredKafka]:
    """Yields a broker with a listener of each kind; at first, the broker's users have no rights."""
    try:
        kafka = SecuredKafka(request.param)
        with kafka:
            yield kafka
    except CANNOT_START as error:
        not_available(f"a secured Kafka {request.param}", error)


def sasl_of(
    kafka: SecuredKafka, mechanism: str, user: str = "alice", password: str | None = None
) -> kproto.Sasl:
    """Returns the credentials of a user; `password` replaces the correct password."""
    password = kafka.passwords.get(user, "unknown") if password is None else password
    match mechanism:
        case "PLAIN":
            return kproto.Plain(user, password)
        case "SCRAM-SHA-256":
            return kproto.ScramSha256(user, password)
        case "SCRAM-SHA-512":
            return kproto.ScramSha512(user, password)
    return kproto.OAuthBearer(lambda: unsecured_token(user))


async def allow(
    admin: kproto.Client, topic: str, *operations: Operation, user: str = "alice"
) -> None:
    """Grants a user rights to a topic, and waits until every broker applies them."""
    creations = [
        AclCreation(
            resource_type=_TOPIC,
            resource_name=topic,
            resource_pattern_type=_LITERAL,
            principal=f"User:{user}",
            host="*",
            operation=operation,
            permission_type=_ALLOW,
        )
        for operation in operations
    ]
    answer = await admin.request(CreateAclsRequest(creations=creations))
    assert [result.error_code for result in answer.results] == [0] * len(creations)
    wanted = DescribeAclsRequest(
        resource_type_filter=_TOPIC,
        resource_name_filter=topic,
        pattern_type_filter=_LITERAL,
        principal_filter=f"User:{user}",
        host_filter="*",
        operation=_ANY,
        permission_type=_ALLOW,
    )
    async with asyncio.timeout(_PATIENCE_S):
        for broker in admin.cluster.brokers:
            while True:
                described = await admin.request(wanted, broker=broker)
                known = {acl.operation for each in described.resources for acl in each.acls}
                if known.issuperset(operations):
                    break
                await asyncio.sleep(0.02)


async def remove_right(
    admin: kproto.Client, topic: str, operation: Operation, user: str = "alice"
) -> None:
    """Removes a user's right to a topic."""
    found = DeleteAclsFilter(
        resource_type_filter=_TOPIC,
        resource_name_filter=topic,
        pattern_type_filter=_LITERAL,
        principal_filter=f"User:{user}",
        host_filter="*",
        operation=operation,
        permission_type=_ALLOW,
    )
    answer = await admin.request(DeleteAclsRequest(filters=[found]))
    assert [len(result.matching_acls) for result in answer.filter_results] == [1]
