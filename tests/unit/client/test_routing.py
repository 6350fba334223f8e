"""Who answers which request."""

from __future__ import annotations

from typing import Any

import pytest

from kproto import messages
from kproto.client.routing import ROUTES, Route, coordinator_keys, route_of
from kproto.messages import (
    AddOffsetsToTxnRequest,
    AddPartitionsToTxnRequest,
    ConsumerGroupDescribeRequest,
    DeleteGroupsRequest,
    DescribeGroupsRequest,
    DescribeTransactionsRequest,
    HeartbeatRequest,
    InitProducerIdRequest,
    MetadataRequest,
    OffsetFetchRequest,
    TxnOffsetCommitRequest,
)
from kproto.messages.add_partitions_to_txn_request import AddPartitionsToTxnTransaction
from kproto.messages.offset_fetch_request import OffsetFetchRequestGroup

REQUESTS = {names[0] for names in messages.API_KEYS.values()}


@pytest.mark.parametrize("name", ROUTES)
def test_every_name_in_the_table_is_a_request_that_clients_may_send(name: str) -> None:
    assert name in REQUESTS
    assert "broker" in getattr(messages, name).LISTENERS


def test_everything_about_one_group_or_transaction_goes_to_its_coordinator() -> None:
    """By the fields of the messages: who names a group is answered by its coordinator, unless it
    is about shared records or the brokers' own state of them."""
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
def test_keys(request_: Any, keys: list[str]) -> None:
    assert coordinator_keys(request_) == keys


def test_a_producer_that_is_only_idempotent_asks_anybody() -> None:
    assert route_of(InitProducerIdRequest(transactional_id=None)) is Route.ANY
    assert route_of(InitProducerIdRequest(transactional_id="t")) is Route.TRANSACTION_COORDINATOR
    assert route_of(MetadataRequest()) is Route.ANY
