"""Tests that the proxy rewrites the addresses of brokers in responses.

Every response with addresses is in one of two tables: `NODE_FIELDS` has the responses that the
proxy rewrites, and `UNREWRITTEN_RESPONSES` has the others. If the address of a broker changes, the
broker keeps its port at the proxy.
"""

from __future__ import annotations

import pytest

from kproto.messages import (
    DescribeClusterResponse,
    FetchResponse,
    FindCoordinatorResponse,
    MetadataResponse,
    ProduceResponse,
)
from kproto.messages.base import Message
from kproto.messages.describe_cluster_response import DescribeClusterBroker
from kproto.messages.fetch_response import NodeEndpoint
from kproto.messages.find_coordinator_response import Coordinator
from kproto.messages.metadata_response import MetadataResponseBroker
from kproto.messages.produce_response import NodeEndpoint as ProduceEndpoint
from kproto.proxy.address_rewriting import (
    NODE_FIELDS,
    UNREWRITTEN_RESPONSES,
    Node,
    NodeMap,
    rewrite_addresses,
)
from kproto.proxy.settings import Address
from kproto.schema.definitions import union

B1, B2, PROXY = Address("b1", 9092), Address("b2", 9093), Address("proxy", 1111)


def test_every_response_with_an_address_is_in_a_table() -> None:
    with_addresses = set()
    for name in union():
        spec = union()[name]
        if not name.endswith("Response"):
            continue
        for fields in (spec.fields, *(struct.fields for struct in spec.structs())):
            names = {field.name for field in fields}
            if {"Host", "Port"} <= names:
                with_addresses.add(name)
    assert with_addresses == set(NODE_FIELDS) | UNREWRITTEN_RESPONSES
    assert not set(NODE_FIELDS) & UNREWRITTEN_RESPONSES


MESSAGES: list[Message] = [
    MetadataResponse(brokers=[MetadataResponseBroker(node_id=1, host=B1.host, port=B1.port)]),
    FindCoordinatorResponse(node_id=1, host=B1.host, port=B1.port),
    FindCoordinatorResponse(
        coordinators=[Coordinator(key="g", node_id=1, host=B1.host, port=B1.port)]
    ),
    DescribeClusterResponse(
        brokers=[DescribeClusterBroker(broker_id=1, host=B1.host, port=B1.port)]
    ),
    FetchResponse(node_endpoints=[NodeEndpoint(node_id=1, host=B1.host, port=B1.port)]),
    ProduceResponse(node_endpoints=[ProduceEndpoint(node_id=1, host=B1.host, port=B1.port)]),
]


@pytest.mark.parametrize("message", MESSAGES, ids=lambda message: type(message).__name__)
def test_addresses_are_put_where_brokers_are_named(message: Message) -> None:
    nodes = NodeMap()
    message = message.copy()
    new, moved = nodes.learn(message)
    assert (new, moved) == ({Node("broker", 1): B1}, {})
    assert not rewrite_addresses(message, nodes)
    nodes.advertise(Node("broker", 1), B1, PROXY)
    assert rewrite_addresses(message, nodes)
    assert "host='proxy', port=1111" in repr(message)
    assert "b1" not in repr(message)


def test_a_broker_that_moves_keeps_its_place() -> None:
    nodes = NodeMap()
    node = Node("broker", 1)
    nodes.advertise(node, B1, PROXY)
    message = MetadataResponse(
        brokers=[MetadataResponseBroker(node_id=1, host=B2.host, port=B2.port)]
    )
    assert nodes.learn(message) == ({}, {node: B2})
    assert (nodes.target(node), nodes.advertised(node), len(nodes)) == (B2, PROXY, 1)
    assert nodes.learn(message) == ({}, {})


def test_controllers_are_others_than_brokers_and_answers_that_are_errors_name_nobody() -> None:
    nodes = NodeMap()
    found = DescribeClusterResponse(
        endpoint_type=2,
        brokers=[DescribeClusterBroker(broker_id=1, host=B2.host, port=B2.port)],
    )
    assert nodes.learn(found) == ({Node("controller", 1): B2}, {})
    refused = FindCoordinatorResponse(error_code=15, node_id=-1, host="", port=-1)
    assert nodes.learn(refused) == ({}, {})
    anonymous = FindCoordinatorResponse(node_id=-1, host=B1.host, port=B1.port)
    assert nodes.learn(anonymous) == ({Node("broker", -1, B1): B1}, {})
