"""Sends equal requests to a real broker and the embedded broker, both with an authorizer.

The real broker authorizes by KRaft's StandardAuthorizer, and alice authenticates by SASL PLAIN. The
embedded broker gets the principal of alice without authentication.
"""

from __future__ import annotations

from typing import Any, Final

from kproto.broker import BrokerSettings
from kproto.broker.authorizer import Acl
from kproto.broker.cluster_state import ClusterState
from kproto.broker.context import Context, Principal
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.listeners import Endpoint
from kproto.broker.registry import by_key
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.base import Request
from kproto.messages.create_acls_request import AclCreation, CreateAclsRequest
from kproto.messages.create_topics_request import CreatableTopic, CreateTopicsRequest
from kproto.messages.delete_acls_request import DeleteAclsFilter, DeleteAclsRequest
from kproto.messages.describe_acls_request import DescribeAclsRequest
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.sasl_authenticate_request import SaslAuthenticateRequest
from kproto.messages.sasl_handshake_request import SaslHandshakeRequest
from kproto.protocol.error_codes import error_code
from kproto.testing.clock import ManualClock
from kproto.wire.uuid import Uuid
from tests.support.patience import wait_until
from tests.support.raw_connection import RawConnection
from tools.kafka.secured import SecuredKafka

__all__ = [
    "ALICE",
    "HERE",
    "ROOT",
    "Ours",
    "Side",
    "Theirs",
    "acls_of",
    "ids",
    "make_topics",
    "name",
    "set_acls",
]

APIS: Final = by_key(KAFKA_APIS)
ALICE: Final = "User:alice"
ROOT: Final = Principal("User", "root")
HERE: Final = "127.0.0.1"


class Theirs:
    """The real broker, with a connection of the super user and a connection of alice."""

    def __init__(self, kafka: SecuredKafka) -> None:
        self.bootstrap = kafka.bootstrap["PLAINTEXT"]
        self.root = RawConnection(self.bootstrap)
        self.alice = RawConnection(kafka.bootstrap["SASL_PLAINTEXT"])
        self.alice.exchange(SaslHandshakeRequest(mechanism="PLAIN"), 1)
        token = f"\0alice\0{kafka.passwords['alice']}".encode()
        answer = self.alice.exchange(SaslAuthenticateRequest(auth_bytes=token), 2)
        assert answer.error_code == 0, answer.error_message
        offered = self.root.exchange(ApiVersionsRequest(), 0)
        self.versions = {it.api_key: it.max_version for it in offered.api_keys}

    def close(self) -> None:
        for connection in (self.root, self.alice):
            connection.__exit__(None, None, None)

    def ask(self, request: Request[Any], version: int, *, as_root: bool = False) -> Any:
        return (self.root if as_root else self.alice).exchange(request, version)


class Ours:
    """The embedded broker's request handlers, called by the super user or by alice."""

    def __init__(self) -> None:
        settings = BrokerSettings(authorizer=True, super_users=(str(ROOT),))
        cluster = ClusterState(settings)
        endpoint = Endpoint(1, HERE, 9092)
        cluster.register_endpoint(endpoint)
        clock = ManualClock()
        kind, _, name = ALICE.partition(":")
        self.root = Context(cluster, settings, endpoint, {}, clock, HERE, None, ROOT)
        self.alice = Context(
            cluster, settings, endpoint, {}, clock, HERE, None, Principal(kind, name)
        )

    def ask(self, request: Request[Any], version: int, *, as_root: bool = False) -> Any:
        sent = type(request).decode(request.encode(version), version)
        context = self.root if as_root else self.alice
        answer: Any = APIS[request.API_KEY].handle(context, sent, version)
        return type(answer).decode(answer.encode(version), version)


Side = Theirs | Ours


def make_topics(side: Side, *names: str) -> None:
    topics = [CreatableTopic(name=name, num_partitions=1, replication_factor=1) for name in names]
    side.ask(CreateTopicsRequest(topics=topics, timeout_ms=20_000), 7, as_root=True)
    wait_until(lambda: set(names) <= set(ids(side)))


def ids(side: Side) -> dict[str, Uuid]:
    answer = side.ask(MetadataRequest(topics=None), 12, as_root=True)
    return {topic.name: topic.topic_id for topic in answer.topics}


def acls_of(side: Side) -> set[tuple[object, ...]]:
    request = DescribeAclsRequest(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    answer = side.ask(request, 3, as_root=True)
    return {
        (
            it.resource_type,
            it.resource_name,
            it.pattern_type,
            acl.principal,
            acl.host,
            acl.operation,
            acl.permission_type,
        )
        for it in answer.resources
        for acl in it.acls
    }


def set_acls(side: Side, acls: list[Acl]) -> None:
    everything = DeleteAclsFilter(
        resource_type_filter=1,
        resource_name_filter=None,
        pattern_type_filter=1,
        principal_filter=None,
        host_filter=None,
        operation=1,
        permission_type=1,
    )
    side.ask(DeleteAclsRequest(filters=[everything]), 3, as_root=True)
    wait_until(lambda: not acls_of(side))
    creations = [
        AclCreation(
            resource_type=acl.resource_type,
            resource_name=acl.name,
            resource_pattern_type=acl.pattern_type,
            principal=acl.principal,
            host=acl.host,
            operation=acl.operation,
            permission_type=acl.permission,
        )
        for acl in acls
    ]
    answer = side.ask(CreateAclsRequest(creations=creations), 3, as_root=True)
    assert {result.error_code for result in answer.results} <= {0}
    wait_until(lambda: len(acls_of(side)) == len(set(acls)))


def name(code: int) -> str:
    return error_code(code).name
