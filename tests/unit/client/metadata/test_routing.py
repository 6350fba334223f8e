"""Tests to which broker each request is sent."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import messages
from kproto.client.metadata.routing import (
    ROUTES,
    Route,
    coordinator_keys,
    named_broker,
    route_of,
)
from kproto.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ConsumerGroupDescribeRequest,
    DeleteGroupsRequest,
    DescribeConfigsRequest,
    DescribeGroupsRequest,
    DescribeTransactionsRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    MetadataRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from kproto.messages.add_partitions_to_txn_request import AddPartitionsToTxnTransaction
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.offset_fetch_request import OffsetFetchRequestGroup

REQUESTS = {names[0] for names in messages.API_KEYS.values()}


def test_table_has_exactly_the_requests_of_the_definitions() -> None:
    assert set(ROUTES) == REQUESTS


@pytest.mark.parametrize("name", ROUTES)
def test_request_without_a_client_listener_needs_a_named_broker(name: str) -> None:
    if "broker" not in getattr(messages, name).LISTENERS:
        assert ROUTES[name] is Route.NAMED


@pytest.mark.parametrize(
    ("kind", "name", "node"),
    [(2, "3", None), (4, "3", 3), (8, "3", 3), (4, "", None), (32, "3", None)],
)
def test_configs_of_a_broker_are_routed_to_it(kind: int, name: str, node: int | None) -> None:
    resource = DescribeConfigsResource(resource_type=kind, resource_name=name)
    assert route_of(DescribeConfigsRequest(resources=[resource])) is Route.RESOURCES
    assert named_broker(resource) == node


def test_request_about_a_group_or_transaction_goes_to_its_coordinator() -> None:
    """A request with a group id goes to the group coordinator.

    Exceptions are AddOffsetsToTxn, ShareFetch, ShareAcknowledge, and requests about share group
    state. A request with a transactional id but no group id goes to the transaction coordinator,
    except Produce.
    """
    others = {
        "AddOffsetsToTxnRequest": Route.TRANSACTION_COORDINATOR,
        "ShareFetchRequest": Route.LEADER,
        "ShareAcknowledgeRequest": Route.LEADER,
    }
    for name in REQUESTS:
        cls = getattr(messages, name)
        if "group_id" in cls.__slots__ and "ShareGroupState" not in name:
            assert ROUTES.get(name) is others.get(name, Route.GROUP_COORDINATOR), name
        if "transactional_id" in cls.__slots__ and "group_id" not in cls.__slots__:
            wanted = Route.LEADER if name == "ProduceRequest" else Route.TRANSACTION_COORDINATOR
            assert ROUTES.get(name) is wanted, name


@pytest.mark.parametrize(
    ("request_", "keys"),
    [
        (HeartbeatRequest(group_id="g"), ["g"]),
        (HeartbeatRequest(), []),
        (OffsetFetchRequest(group_id="old"), ["old"]),
        (OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="new")]), ["new"]),
        (DescribeGroupsRequest(groups=["a", "b", "a"]), ["a", "b"]),
        (DeleteGroupsRequest(groups_names=["a"]), ["a"]),
        (ConsumerGroupDescribeRequest(group_ids=["a"]), ["a"]),
        (TxnOffsetCommitRequest(transactional_id="t", group_id="g"), ["g"]),
        (AddOffsetsToTxnRequest(transactional_id="t", group_id="g"), ["t"]),
        (AddPartitionsToTxnRequest(v3_and_below_transactional_id="t"), ["t"]),
        (
            AddPartitionsToTxnRequest(
                transactions=[AddPartitionsToTxnTransaction(transactional_id="t")]
            ),
            ["t"],
        ),
        (DescribeTransactionsRequest(transactional_ids=["t"]), ["t"]),
        (InitProducerIdRequest(transactional_id="t"), ["t"]),
        (MetadataRequest(), []),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, list) else "-".join(value),
)
def test_request_names_its_coordinator_keys(request_: Any, keys: list[str]) -> None:
    assert coordinator_keys(request_) == keys


def test_init_producer_id_without_a_transaction_goes_to_any_broker() -> None:
    assert route_of(InitProducerIdRequest(transactional_id=None)) is Route.ANY
    assert route_of(InitProducerIdRequest(transactional_id="t")) is Route.TRANSACTION_COORDINATOR
    assert route_of(MetadataRequest()) is Route.ANY
