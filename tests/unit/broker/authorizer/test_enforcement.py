"""Tests each operation in each version of its API: denied without an ACL, allowed by an ACL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from kproto.broker import Acl, BrokerSettings
from kproto.broker.authorizer import (
    AUTHORIZATION_ERRORS,
    CLUSTER_NAME,
    REQUIRED_OPERATIONS,
    RequiredOperation,
    ResourceType,
)
from kproto.broker.cluster_state import ClusterState
from kproto.broker.context import Context, Principal
from kproto.broker.coordinators import CoordinatorType
from kproto.broker.listeners import Endpoint
from kproto.messages import API_KEYS
from kproto.protocol.error_codes import code_of
from kproto.testing.clock import ManualClock
from tests.support.batches import TIMESTAMP

from .authorization_scenarios import APIS, SCENES, Scene

ALICE = Principal("User", "alice")
HERE = "10.0.0.1"


def context(acls: list[Acl], *, auto_create: bool = False, **settings: Any) -> Context:
    """Returns the context of a request from alice; topic t and the coordinators exist."""
    given = BrokerSettings(
        authorizer=True,
        delegation_token_secret_key="k",
        acls=tuple(acls),
        auto_create_topics=auto_create,
        **settings,
    )
    cluster = ClusterState(given)
    endpoint = Endpoint(1, "localhost", 9091)
    cluster.register_endpoint(endpoint)
    cluster.topics.add(cluster.plan_topic("t"))
    # The first lookups create the internal topics.
    cluster.coordinator(CoordinatorType.GROUP, "g")
    cluster.coordinator(CoordinatorType.TRANSACTION, "tx")
    return Context(
        cluster,
        given,
        endpoint,
        {},
        ManualClock(TIMESTAMP),
        host=HERE,
        principal=ALICE,
        security_protocol="SASL_SSL",
    )


def right(need: RequiredOperation) -> Acl:
    name = CLUSTER_NAME if need.resource_type is ResourceType.CLUSTER else "*"
    return Acl("User:alice", need.operation, need.resource_type, name)


def shown(scene: Scene, version: int, acls: list[Acl]) -> str:
    where = context(acls, auto_create=scene.auto_create)
    request = scene.build(where, version)
    # After encoding and decoding, the request has only the fields of its version.
    sent = type(request).decode(request.encode(version), version)
    return scene.shown(APIS[scene.api_key].handle(where, sent, version))


def marks_of(version: int, versions: Sequence[int]) -> list[pytest.MarkDecorator]:
    """Returns the marks of a version, which select the test runs with this version.

    `make quick` tests the newest version. `make test` tests the newest and the oldest version.
    `make exhaustive` tests the versions between them.
    """
    if version == versions[-1]:
        return []
    slow = [pytest.mark.slow]
    return slow if version == versions[0] else [*slow, pytest.mark.exhaustive]


def cases() -> Iterator[Any]:
    for key, scenes in SCENES.items():
        for number, scene in enumerate(scenes):
            versions = tuple(APIS[key].versions if scene.versions is None else scene.versions)
            for version in versions:
                name = f"{key}-v{version}-{scene.operation.name}-{number}"
                yield pytest.param(scene, version, id=name, marks=marks_of(version, versions))


CASES = [*cases()]


@pytest.mark.parametrize(("scene", "version"), CASES)
def test_missing_operation_is_denied(scene: Scene, version: int) -> None:
    need = scene.need
    others = [
        right(other)
        for other in REQUIRED_OPERATIONS[scene.api_key]
        if other != need
        and not (need.alternative and other.alternative == need.alternative)
        # Other rows of this resource type might imply the needed operation.
        and other.resource_type is not need.resource_type
    ]
    same_resource = [
        right(other)
        for other in REQUIRED_OPERATIONS[scene.api_key]
        if other.resource_type is need.resource_type
        and other.operation is not need.operation
        and not (need.alternative and other.alternative == need.alternative)
    ]
    fine = shown(scene, version, [right(need), *others, *same_resource])
    assert fine == scene.fine
    denied = shown(scene, version, [*others, *same_resource])
    assert denied == scene.denied != fine
    without_settings = shown(scene, version, [])
    assert without_settings not in ("NONE", "SEEN"), "without ACLs every request is denied"


def test_every_api_has_a_row_and_every_row_a_scenario() -> None:
    for key, api in APIS.items():
        assert key in REQUIRED_OPERATIONS, f"{api.request.__name__} has no row in authorizer.needs"
        played = {scene.need for scene in SCENES.get(key, ())}
        assert played == set(REQUIRED_OPERATIONS[key]), (
            f"{api.request.__name__}: rows and scenes differ"
        )
    assert set(SCENES) <= set(APIS)


def test_table_names_existing_apis_and_errors() -> None:
    assert set(REQUIRED_OPERATIONS) <= set(API_KEYS)
    errors = {need.error for needs in REQUIRED_OPERATIONS.values() for need in needs} - {""}
    assert errors <= set(AUTHORIZATION_ERRORS.values())
    for error in AUTHORIZATION_ERRORS.values():
        assert code_of(error) > 0
