"""Tests how a request is split for several brokers, and how the responses are merged."""

from __future__ import annotations

from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kproto import messages
from kproto.client.metadata.fan_out import (
    SCALARS,
    SPLIT_RULES,
    KeyedListField,
    SplitRule,
    merged,
    request_elements,
    response_elements,
    split,
)
from kproto.client.metadata.routing import COORDINATORS, ROUTES, Route
from kproto.messages import (
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeProducersRequest,
    FetchRequest,
    ListTransactionsRequest,
    ListTransactionsResponse,
    ProduceRequest,
    ProduceResponse,
    ShareAcknowledgeRequest,
)
from kproto.messages.alter_replica_log_dirs_request import (
    AlterReplicaLogDir,
    AlterReplicaLogDirTopic,
)
from kproto.messages.alter_replica_log_dirs_response import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirTopicResult,
)
from kproto.messages.base import Struct
from kproto.messages.delete_records_request import DeleteRecordsPartition, DeleteRecordsTopic
from kproto.messages.delete_records_response import (
    DeleteRecordsPartitionResult,
    DeleteRecordsTopicResult,
)
from kproto.messages.describe_configs_request import DescribeConfigsResource
from kproto.messages.describe_configs_response import DescribeConfigsResult
from kproto.messages.describe_groups_response import DescribedGroup
from kproto.messages.describe_producers_request import TopicRequest
from kproto.messages.fetch_request import FetchPartition, FetchTopic
from kproto.messages.list_transactions_response import TransactionState
from kproto.messages.produce_request import PartitionProduceData, TopicProduceData
from kproto.messages.produce_response import (
    NodeEndpoint,
    PartitionProduceResponse,
    TopicProduceResponse,
)
from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import Uuid

SEVERAL_BROKERS = {Route.LEADER, Route.REPLICAS, Route.RESOURCES, *COORDINATORS}


def response_of(name: str) -> Any:
    return getattr(messages, name.removesuffix("Request") + "Response")


# --- The table SPLIT_RULES ---


def test_table_has_exactly_the_requests_for_several_brokers() -> None:
    """A request to coordinators is split only if it can name several groups or transactions."""
    wanted = set()
    for name, route in ROUTES.items():
        cls = getattr(messages, name)
        if route in COORDINATORS:
            hints = get_type_hints(cls.__init__)
            own = COORDINATORS[route].fields
            lists = [field for field in own if "list" in str(hints.get(field, "")).lower()]
            lists += [field for field in own if "Iterable" in str(hints.get(field, ""))]
            if lists:
                wanted.add(name)
        elif route in SEVERAL_BROKERS:
            wanted.add(name)
    assert set(SPLIT_RULES) == wanted


@pytest.mark.parametrize("name", SPLIT_RULES)
def test_paths_exist_in_the_messages(name: str) -> None:
    row = SPLIT_RULES[name]
    check_path(getattr(messages, name)._definition(), row.request_levels)
    check_path(response_of(name)._definition(), row.response_levels)
    below = len(row.request_levels) - len(row.response_levels)
    for requested, answered in zip(row.request_levels[below:], row.response_levels, strict=True):
        if requested.keys:  # alternative keys correspond by position
            assert len(requested.keys) == len(answered.keys)
        else:
            assert len(answered.keys) == 1


def snake(name: str) -> str:
    return "".join("_" + c.lower() if c.isupper() else c for c in name).lstrip("_")


def check_path(definition: Any, levels: tuple[KeyedListField, ...]) -> None:
    fields = definition.fields
    for level in levels:
        found = {snake(field.name): field for field in fields}
        assert level.field in found
        field = found[level.field]
        assert field.is_array
        fields = field.fields or common(definition, field.element_type)
        names = {snake(each.name) for each in fields}
        assert {name for names in level.keys for name in names} <= names
        assert bool(level.keys) is bool(fields)


def common(definition: Any, name: str) -> Any:
    return next((each.fields for each in definition.common_structs if each.name == name), ())


@pytest.mark.parametrize(
    "name", [n for n, route in ROUTES.items() if n in SPLIT_RULES or route is Route.EVERY_BROKER]
)
def test_merge_of_every_other_response_field_is_defined(name: str) -> None:
    row = SPLIT_RULES.get(name)
    for field in response_of(name)._definition().fields:
        own = row is not None and snake(field.name) == row.response_levels[0].field
        assert own or snake(field.name) in SCALARS or field.is_array, field.name


# --- Pieces ---


def delete(*topics: tuple[str, list[int]]) -> DeleteRecordsRequest:
    return DeleteRecordsRequest(
        topics=[
            DeleteRecordsTopic(
                name=name,
                partitions=[
                    DeleteRecordsPartition(partition_index=at, offset=at * 10) for at in parts
                ],
            )
            for name, parts in topics
        ],
        timeout_ms=77,
    )


def deleted(request: DeleteRecordsRequest, throttle: int = 0) -> DeleteRecordsResponse:
    return DeleteRecordsResponse(
        throttle_time_ms=throttle,
        topics=[
            DeleteRecordsTopicResult(
                name=topic.name,
                partitions=[
                    DeleteRecordsPartitionResult(
                        partition_index=part.partition_index, low_watermark=part.offset
                    )
                    for part in topic.partitions
                ],
            )
            for topic in request.topics
        ],
    )


def tps(message: Any, row: SplitRule) -> list[tuple[str, int]]:
    elements = request_elements(message, row) or response_elements(message, row)
    return [(topic.name, part.partition_index) for topic, part in elements]


DELETE = SPLIT_RULES["DeleteRecordsRequest"]


def test_request_for_one_broker_is_its_own_piece() -> None:
    request = delete(("a", [0, 1]))
    pieces = split(request, DELETE, [(3,), (3,)])
    assert list(pieces) == [3]
    assert pieces[3] is request


def test_request_for_two_brokers_is_split() -> None:
    request = delete(("a", [0, 1]), ("b", [5]), ("c", [7]))
    pieces = split(request, DELETE, [(2,), (1,), (1,), (2,)])
    assert list(pieces) == [2, 1]
    assert tps(pieces[2], DELETE) == [("a", 0), ("c", 7)]
    assert tps(pieces[1], DELETE) == [("a", 1), ("b", 5)]
    assert all(piece.timeout_ms == 77 for piece in pieces.values())
    assert tps(request, DELETE) == [
        ("a", 0),
        ("a", 1),
        ("b", 5),
        ("c", 7),
    ]  # the request is unchanged


def test_topic_without_partitions_is_in_the_first_piece() -> None:
    request = DescribeProducersRequest(
        topics=[
            TopicRequest(name="a", partition_indexes=[0, 1]),
            TopicRequest(name="empty"),
        ]
    )
    pieces = split(request, SPLIT_RULES["DescribeProducersRequest"], [(1,), (2,)])
    assert [topic.name for topic in pieces[1].topics] == ["a", "empty"]
    assert [topic.name for topic in pieces[2].topics] == ["a"]


def test_request_of_a_session_is_not_split() -> None:
    parts = [FetchPartition(partition=at) for at in (0, 1)]
    request = FetchRequest(session_epoch=0, topics=[FetchTopic(topic="a", partitions=parts)])
    row = SPLIT_RULES["FetchRequest"]
    assert split(request, row, [(1,), (1,)]) == {1: request}
    with pytest.raises(ConfigurationError, match="for a fetch session"):
        split(request, row, [(1,), (2,)])
    request.session_epoch = -1
    assert len(split(request, row, [(1,), (2,)])) == 2
    with pytest.raises(ConfigurationError, match="share session"):
        split(ShareAcknowledgeRequest(), SPLIT_RULES["ShareAcknowledgeRequest"], [])


# --- Responses ---


@given(st.data())
def test_merged_response_has_the_order_of_the_request(data: st.DataObject) -> None:
    names = data.draw(st.lists(st.sampled_from("abcd"), unique=True, min_size=1))
    request = delete(
        *((name, data.draw(st.lists(st.integers(0, 9), unique=True, min_size=1))) for name in names)
    )
    requested = tps(request, DELETE)
    owners = [(data.draw(st.integers(1, 3)),) for _ in requested]
    pieces = split(request, DELETE, owners)
    found = sorted(tp for piece in pieces.values() for tp in tps(piece, DELETE))
    assert found == sorted(requested)
    answers = [deleted(piece, throttle) for throttle, piece in enumerate(pieces.values())]
    whole = merged(request, DELETE, data.draw(st.permutations(answers)))
    assert whole == deleted(request, len(pieces) - 1)


def test_merged_groups_keep_their_order_and_unrequested_ones_come_last() -> None:
    request = DescribeGroupsRequest(groups=["a", "b", "c", "b"])
    row = SPLIT_RULES["DescribeGroupsRequest"]
    pieces = split(request, row, [(1,), (2,), (1,), (2,)])
    assert [piece.groups for piece in pieces.values()] == [["a", "c"], ["b", "b"]]
    one = described("c", "other", "a")
    two = described("b")
    whole = merged(request, row, [one, two])
    assert [group.group_id for group in whole.groups] == ["a", "b", "c", "other"]


def described(*groups: str) -> DescribeGroupsResponse:
    return DescribeGroupsResponse(groups=[DescribedGroup(group_id=name) for name in groups])


def test_resources_are_distinguished_by_type_and_name() -> None:
    row = SPLIT_RULES["DescribeConfigsRequest"]
    kinds = [(4, "1"), (2, "1"), (4, "2")]
    request = DescribeConfigsRequest(
        resources=[DescribeConfigsResource(resource_type=t, resource_name=n) for t, n in kinds]
    )
    pieces = split(request, row, [(1,), (1,), (2,)])

    def answer(piece: Any) -> DescribeConfigsResponse:
        found = [
            DescribeConfigsResult(
                resource_type=each.resource_type, resource_name=each.resource_name
            )
            for each in piece.resources
        ]
        return DescribeConfigsResponse(results=found[::-1])

    whole = merged(request, row, [answer(piece) for piece in (pieces[2], pieces[1])])
    assert [(each.resource_type, each.resource_name) for each in whole.results] == kinds


def test_topics_by_name_and_by_id_are_merged() -> None:
    """Brokers may answer with different versions; the newer versions have topic ids only."""
    topic_id = Uuid(bytes(15) + b"7")
    row = SPLIT_RULES["ProduceRequest"]
    parts = [PartitionProduceData(index=at) for at in (0, 1)]
    request = ProduceRequest(
        topic_data=[TopicProduceData(name="a", topic_id=topic_id, partition_data=parts)]
    )
    pieces = split(request, row, [(1,), (2,)])
    assert type(pieces[1].topic_data) is type(request.topic_data)  # it has `find`
    by_id = ProduceResponse(
        responses=[
            TopicProduceResponse(
                topic_id=topic_id, partition_responses=[PartitionProduceResponse(index=1)]
            )
        ],
        node_endpoints=[NodeEndpoint(node_id=1, host="a"), NodeEndpoint(node_id=2, host="b")],
    )
    by_name = ProduceResponse(
        responses=[
            TopicProduceResponse(
                name="a", partition_responses=[PartitionProduceResponse(index=0, error_code=6)]
            )
        ],
        node_endpoints=[NodeEndpoint(node_id=2, host="b"), NodeEndpoint(node_id=3, host="c")],
    )
    whole = merged(request, row, [by_id, by_name])
    (topic,) = whole.responses
    assert [(part.index, part.error_code) for part in topic.partition_responses] == [(0, 6), (1, 0)]
    assert [node.node_id for node in whole.node_endpoints] == [1, 2, 3]


def test_results_of_each_replica_are_merged() -> None:
    row = SPLIT_RULES["AlterReplicaLogDirsRequest"]
    request = AlterReplicaLogDirsRequest(
        dirs=[
            AlterReplicaLogDir(
                path=path, topics=[AlterReplicaLogDirTopic(name="t", partitions=[at])]
            )
            for at, path in enumerate(["/x", "/y"])
        ]
    )
    pieces = split(request, row, [(1, 2), (2, 3)])
    paths = [[(d.path, d.topics[0].partitions) for d in piece.dirs] for piece in pieces.values()]
    assert paths == [[("/x", [0])], [("/x", [0]), ("/y", [1])], [("/y", [1])]]

    def answer(piece: Any, code: int) -> AlterReplicaLogDirsResponse:
        parts = [
            AlterReplicaLogDirPartitionResult(partition_index=at, error_code=code)
            for each in piece.dirs
            for topic in each.topics
            for at in topic.partitions
        ]
        topic = AlterReplicaLogDirTopicResult(topic_name="t", partitions=parts)
        return AlterReplicaLogDirsResponse(results=[topic])

    whole = merged(request, row, [answer(piece, node) for node, piece in pieces.items()])
    (topic,) = whole.results
    codes = [(part.partition_index, part.error_code) for part in topic.partitions]
    assert codes == [(0, 1), (0, 2), (1, 2), (1, 3)]


def test_responses_of_every_broker_are_merged() -> None:
    one = ListTransactionsResponse(
        throttle_time_ms=5,
        unknown_state_filters=["x", "y"],
        transaction_states=[TransactionState(transactional_id="a")],
    )
    two = ListTransactionsResponse(
        error_code=14,
        unknown_state_filters=["y", "z"],
        transaction_states=[TransactionState(transactional_id="b")],
    )
    whole = merged(ListTransactionsRequest(), None, [one, two])
    assert whole.throttle_time_ms == 5
    assert whole.error_code == 14
    assert whole.unknown_state_filters == ["x", "y", "z"]
    assert [state.transactional_id for state in whole.transaction_states] == ["a", "b"]


@pytest.mark.parametrize("name", SPLIT_RULES)
def test_empty_request_has_no_elements(name: str) -> None:
    request: Struct = getattr(messages, name)()
    assert request_elements(request, SPLIT_RULES[name]) == []  # type: ignore[arg-type]  # a request
