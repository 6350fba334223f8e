"""Tests `Client.admin` for ACLs, quotas, SCRAM credentials and delegation tokens.

The brokers have a listener with SASL, and users without rights.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

import kproto
from kproto.client.admin import (
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminError,
    ClientQuotaEntity,
    ClientQuotaFilter,
    PatternType,
    QuotaName,
    ResourceType,
    ScramCredential,
    ScramMechanism,
    UserScramCredentialDeletion,
    UserScramCredentialUpsertion,
)
from tests.support.admin_calls import error_names, eventually, new_name
from tests.support.secured import sasl_of
from tools.kafka.secured import SecuredKafka


def connect(kafka: SecuredKafka, sasl: kproto.Sasl) -> kproto.Client:
    return kproto.Client(
        kafka.bootstrap["SASL_SSL"], tls=kproto.Tls(ca=kafka.authority.pem), sasl=sasl
    )


@pytest.fixture
async def client(secured: SecuredKafka) -> AsyncIterator[kproto.Client]:
    async with connect(secured, sasl_of(secured, "SCRAM-SHA-512", "admin")) as connected:
        yield connected


async def test_acls_are_created_described_and_deleted(
    secured: SecuredKafka, client: kproto.Client
) -> None:
    admin = client.admin
    name = new_name("topic")
    read = AclBinding(ResourceType.TOPIC, name, "User:bob", AclOperation.READ)
    deny = AclBinding(
        ResourceType.GROUP,
        name,
        "User:bob",
        AclOperation.ALL,
        AclPermissionType.DENY,
        "127.0.0.1",
        PatternType.PREFIXED,
    )
    await admin.create_acls([read, deny])
    await admin.create_acls([read])

    async def check() -> None:
        assert sorted(await admin.describe_acls(AclBindingFilter(name=name))) == [read, deny]
        matching = AclBindingFilter(ResourceType.GROUP, f"{name}-1", pattern_type=PatternType.MATCH)
        assert await admin.describe_acls(matching) == [deny]
        assert set(await admin.describe_acls()) >= {read, deny}

    await eventually(check)
    of_groups = AclBindingFilter(ResourceType.GROUP, name)
    of_users = AclBindingFilter(principal="User:bob", operation=AclOperation.READ, name=name)
    nothing = AclBindingFilter(name="absent")
    assert await admin.delete_acls([of_groups, of_users, nothing]) == {
        of_groups: [deny],
        of_users: [read],
        nothing: [],
    }


async def test_an_invalid_acl_hides_no_created_acl(client: kproto.Client) -> None:
    name = new_name("topic")
    right = AclBinding(ResourceType.TOPIC, name, "User:bob", AclOperation.READ)
    wrong = right._replace(principal="bob")
    with pytest.raises(AdminError) as failed:
        await client.admin.create_acls([right, wrong])
    assert list(failed.value.results) == [right]
    assert list(failed.value.errors) == [wrong]
    await client.admin.delete_acls([AclBindingFilter(name=name)])


async def test_a_user_without_rights_is_refused(secured: SecuredKafka) -> None:
    async with connect(secured, sasl_of(secured, "PLAIN", "alice")) as client:
        with pytest.raises(kproto.ClusterAuthorizationError):
            await client.admin.describe_acls()
        with pytest.raises(AdminError) as refused:
            await client.admin.create_topics(["a-topic"])
        assert error_names(refused.value)["a-topic"] in {
            "TOPIC_AUTHORIZATION_FAILED",
            "CLUSTER_AUTHORIZATION_FAILED",
        }
        assert await client.admin.list_topics() == {}


async def test_quotas_are_altered_and_described(client: kproto.Client) -> None:
    admin = client.admin
    user = new_name("user")
    one = ClientQuotaEntity(user=user, client_id=QuotaName.DEFAULT)
    two = ClientQuotaEntity(user=user)
    address = ClientQuotaEntity(ip="10.1.2.3")
    await admin.alter_client_quotas({two: {"producer_byte_rate": 1.0}}, validate_only=True)
    await admin.alter_client_quotas(
        {
            one: {"producer_byte_rate": 1_000_000.0, "request_percentage": 50.0},
            two: {"consumer_byte_rate": 2_000_000.0},
            address: {"connection_creation_rate": 10.0},
        }
    )

    async def check() -> None:
        found = await admin.describe_client_quotas()
        assert found[one] == {"producer_byte_rate": 1_000_000.0, "request_percentage": 50.0}
        assert found[two] == {"consumer_byte_rate": 2_000_000.0}
        assert found[address] == {"connection_creation_rate": 10.0}

    await eventually(check)
    assert set(await admin.describe_client_quotas(ClientQuotaFilter(user=user))) == {one, two}
    strict = ClientQuotaFilter(user=user, strict=True)
    assert set(await admin.describe_client_quotas(strict)) == {two}
    both = ClientQuotaFilter(user=QuotaName.ANY, client_id=QuotaName.DEFAULT)
    assert one in await admin.describe_client_quotas(both)
    with pytest.raises(AdminError) as failed:
        await admin.alter_client_quotas(
            {one: {"no_such_quota": 1.0}, two: {"consumer_byte_rate": None}}
        )
    assert list(failed.value.errors) == [one]
    assert list(failed.value.results) == [two]
    await admin.alter_client_quotas(
        {
            one: {"producer_byte_rate": None, "request_percentage": None},
            address: {"connection_creation_rate": None},
        }
    )


async def test_a_new_password_authenticates_until_it_is_deleted(
    secured: SecuredKafka, client: kproto.Client
) -> None:
    admin = client.admin
    user = new_name("user")
    await admin.alter_user_scram_credentials(
        [
            UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_256, "first"),
            UserScramCredentialUpsertion(user, ScramMechanism.SCRAM_SHA_512, "second", 8_192),
        ]
    )

    async def check() -> None:
        assert await admin.describe_user_scram_credentials([user]) == {
            user: {ScramMechanism.SCRAM_SHA_256: 4_096, ScramMechanism.SCRAM_SHA_512: 8_192}
        }

    await eventually(check)
    assert user in await admin.describe_user_scram_credentials()
    for sasl in (kproto.ScramSha256(user, "first"), kproto.ScramSha512(user, "second")):
        async with connect(secured, sasl) as other:
            assert other.cluster.brokers
    deletions = [
        UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_256),
        UserScramCredentialDeletion(user, ScramMechanism.SCRAM_SHA_512),
    ]
    await admin.alter_user_scram_credentials(deletions)

    async def check_deleted() -> None:
        with pytest.raises(AdminError) as unknown:
            await admin.describe_user_scram_credentials([user])
        assert error_names(unknown.value) == {user: "RESOURCE_NOT_FOUND"}

    await eventually(check_deleted)
    with pytest.raises(AdminError) as failed:
        await admin.alter_user_scram_credentials(
            [*deletions[:1], UserScramCredentialUpsertion("x", ScramMechanism.SCRAM_SHA_256, "y")]
        )
    missing = ScramCredential(user, ScramMechanism.SCRAM_SHA_256)
    assert error_names(failed.value) == {missing: "RESOURCE_NOT_FOUND"}
    assert list(failed.value.results) == [ScramCredential("x", ScramMechanism.SCRAM_SHA_256)]
    await admin.alter_user_scram_credentials(
        [UserScramCredentialDeletion("x", ScramMechanism.SCRAM_SHA_256)]
    )


async def test_a_delegation_token_authenticates_until_it_expires(
    secured: SecuredKafka, client: kproto.Client
) -> None:
    admin = client.admin
    token = await admin.create_delegation_token(
        renewers=["User:bob"], owner="User:alice", max_lifetime_ms=600_000
    )
    assert (token.owner, token.requester) == ("User:alice", "User:admin")

    async def check() -> None:
        assert await admin.describe_delegation_token(["User:alice"]) == [token]

    await eventually(check)
    async with connect(secured, token.sasl()) as other:
        assert other.cluster.brokers
    async with connect(secured, sasl_of(secured, "SCRAM-SHA-256", "bob")) as renewer:
        expires_ms = await renewer.admin.renew_delegation_token(token.hmac, renew_period_ms=60_000)
        assert expires_ms <= token.latest_expiry_ms
        with pytest.raises(kproto.BrokerResponseError, match="DELEGATION_TOKEN_OWNER_MISMATCH"):
            await admin.expire_delegation_token(token.hmac)
        assert await renewer.admin.expire_delegation_token(token.hmac) > 0

    async def check_expired() -> None:
        assert await admin.describe_delegation_token(["User:alice"]) == []

    await eventually(check_expired)
    with pytest.raises(kproto.BrokerResponseError, match="DELEGATION_TOKEN_NOT_FOUND"):
        await admin.renew_delegation_token(b"unknown")


async def test_a_creation_beyond_the_quota_is_retried_until_the_broker_accepts_it(
    secured: SecuredKafka, client: kproto.Client
) -> None:
    admin = client.admin
    names = [new_name(f"topic-{at}") for at in range(2)]
    right = AclBinding(
        ResourceType.TOPIC,
        "admin-topic",
        "User:bob",
        AclOperation.ALL,
        pattern_type=PatternType.PREFIXED,
    )
    entity = ClientQuotaEntity(user="bob")
    await admin.create_acls([right])
    await admin.alter_client_quotas({entity: {"controller_mutation_rate": 10.0}})
    async with connect(secured, sasl_of(secured, "SCRAM-SHA-256", "bob")) as limited:

        async def check() -> None:
            await limited.admin.create_topics([kproto.NewTopic(names[0], 150, 1)])

        await eventually(check)
        await limited.admin.create_topics([kproto.NewTopic(names[1], 1, 1)])
        assert limited.metrics()["retries"]["call"] > 0
    await admin.delete_topics(names)
    await admin.alter_client_quotas({entity: {"controller_mutation_rate": None}})
    await admin.delete_acls([AclBindingFilter(principal="User:bob", name="admin-topic")])
