"""Tests the retries of admin calls, and their errors, against a scripted broker."""

from __future__ import annotations

import asyncio
import copy
import pickle
from typing import Any

import pytest

from kproto import (
    BrokerConnectionError,
    BrokerResponseError,
    Client,
    ConfigurationError,
    KprotoError,
    NewTopic,
    RequestTimeoutError,
    UnsupportedVersionError,
)
from kproto.broker import Broker
from kproto.client.admin.configs import ConfigResource, ConfigResourceType
from kproto.client.admin.errors import AdminError
from kproto.client.admin.log_dirs import TopicPartitionReplica
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    ConsumerGroupDescribeRequest,
    CreateDelegationTokenRequest,
    CreateTopicsRequest,
    CreateTopicsResponse,
    DeleteGroupsRequest,
    DeleteGroupsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    DescribeConfigsRequest,
    DescribeConfigsResponse,
    DescribeGroupsRequest,
    DescribeGroupsResponse,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    ListGroupsRequest,
    ListGroupsResponse,
    MetadataRequest,
    MetadataResponse,
)
from kproto.messages.create_topics_response import CreatableTopicResult
from kproto.messages.delete_groups_response import DeletableGroupResult
from kproto.messages.delete_topics_response import DeletableTopicResult
from kproto.messages.describe_configs_response import DescribeConfigsResult
from kproto.messages.describe_groups_response import DescribedGroup
from kproto.messages.describe_log_dirs_response import DescribeLogDirsResult
from kproto.messages.find_coordinator_response import Coordinator
from kproto.messages.metadata_response import MetadataResponseBroker
from kproto.protocol.connection import ReceivedRequest
from kproto.protocol.error_codes import code_of, error_of_code
from tests.unit.client.scripted_broker import HANG_UP, ScriptedBroker, api_versions, quick

QUICK = quick(metadata_wait_ms=50, delivery_timeout_ms=300)


def created(asked: ReceivedRequest, **codes: str) -> CreateTopicsResponse:
    """Returns a response with an error name for some topics; the others are created."""
    message = asked.message
    assert isinstance(message, CreateTopicsRequest)
    return CreateTopicsResponse(
        topics=[
            CreatableTopicResult(
                name=each.name, error_code=code_of(codes[each.name]) if each.name in codes else 0
            )
            for each in message.topics
        ]
    )


def without(*requests: type[Any]) -> Any:
    """Returns an answer to ApiVersions that lacks some requests."""
    keys = {each.API_KEY for each in requests}

    def answer(asked: ReceivedRequest) -> ApiVersionsResponse:
        found = api_versions()
        found.api_keys = type(found.api_keys)(
            each for each in found.api_keys if each.api_key not in keys
        )
        return found

    return answer


async def test_failed_parts_are_listed_with_the_results_of_the_others() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[CreateTopicsRequest] = lambda asked: created(
            asked, a="INVALID_REPLICATION_FACTOR", b="POLICY_VIOLATION"
        )
        with pytest.raises(AdminError) as failed:
            await client.admin.create_topics(["a", "b", "c"])
    error = failed.value
    assert list(error.results) == ["c"]
    assert {part: str(each) for part, each in error.errors.items()} == {
        "a": "INVALID_REPLICATION_FACTOR (38): creating topic 'a'",
        "b": "POLICY_VIOLATION (44): creating topic 'b'",
    }
    assert str(error).startswith("creating topics: 2 of 3 failed: 'a': INVALID_REPL")
    assert "'b': POLICY_VIOLATION" in str(error)
    assert error.unknown == frozenset()


async def test_only_parts_with_a_retriable_error_are_sent_again() -> None:
    codes = [{"a": "NOT_CONTROLLER", "b": "THROTTLING_QUOTA_EXCEEDED", "c": "INVALID_CONFIG"}, {}]
    sent = []

    def answer(asked: ReceivedRequest) -> CreateTopicsResponse:
        message = asked.message
        assert isinstance(message, CreateTopicsRequest)
        sent.append([each.name for each in message.topics])
        return created(asked, **codes[len(sent) - 1])

    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[CreateTopicsRequest] = answer
        with pytest.raises(AdminError) as failed:
            await client.admin.create_topics(["a", "b", "c", "d"])
    assert sent == [["a", "b", "c", "d"], ["a", "b"]]
    assert list(failed.value.results) == ["a", "b", "d"]
    assert list(failed.value.errors) == ["c"]


async def test_a_change_beyond_the_quota_fails_at_once_on_demand() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[CreateTopicsRequest] = lambda asked: created(
            asked, a="THROTTLING_QUOTA_EXCEEDED"
        )
        with pytest.raises(AdminError, match="THROTTLING_QUOTA_EXCEEDED"):
            await client.admin.create_topics(["a", "b"], retry_on_quota_violation=False)
        assert broker.count(CreateTopicsRequest) == 1


@pytest.mark.parametrize("first", ["lost", "timed out"])
async def test_a_topic_that_exists_after_an_unanswered_creation_is_reported_as_unknown(
    first: str,
) -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        attempts = 0

        def answer(asked: ReceivedRequest) -> Any:
            nonlocal attempts
            attempts += 1
            if attempts > 1:
                return created(asked, a="TOPIC_ALREADY_EXISTS", b="POLICY_VIOLATION")
            if first == "lost":
                return HANG_UP
            return created(asked, a="REQUEST_TIMED_OUT", b="REQUEST_TIMED_OUT")

        broker.answers[CreateTopicsRequest] = answer
        with pytest.raises(AdminError, match="may have made the change") as failed:
            await client.admin.create_topics(["a", "b"])
    assert attempts == 2
    assert failed.value.unknown == {"a"}
    assert {part: each.name for part, each in failed.value.errors.items()} == {
        "a": "TOPIC_ALREADY_EXISTS",
        "b": "POLICY_VIOLATION",
    }


async def test_a_topic_that_exists_at_the_first_attempt_is_not_unknown() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[CreateTopicsRequest] = lambda asked: created(asked, a="TOPIC_ALREADY_EXISTS")
        with pytest.raises(AdminError) as failed:
            await client.admin.create_topics(["a"])
    assert failed.value.unknown == frozenset()


async def test_a_deletion_that_is_never_answered_is_unknown() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[DeleteTopicsRequest] = lambda asked: HANG_UP
        with pytest.raises(AdminError) as failed:
            await client.admin.delete_topics(["a"], timeout_ms=200)
    assert failed.value.unknown == {"a"}
    assert isinstance(failed.value.errors["a"], BrokerConnectionError | RequestTimeoutError)


async def test_a_change_that_was_never_sent_is_not_unknown() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        await broker.stop()
        with pytest.raises(AdminError) as failed:
            await client.admin.create_topics(["a"], timeout_ms=200)
        with pytest.raises(BrokerConnectionError) as token:
            await client.admin.create_delegation_token(timeout_ms=200)
    assert isinstance(failed.value.errors["a"], BrokerConnectionError)
    assert failed.value.unknown == frozenset()
    assert not getattr(token.value, "__notes__", [])


async def test_a_token_whose_creation_was_not_answered_is_not_created_again() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[CreateDelegationTokenRequest] = lambda asked: HANG_UP
        with pytest.raises(BrokerConnectionError) as failed:
            await client.admin.create_delegation_token()
        assert broker.count(CreateDelegationTokenRequest) == 1
    assert failed.value.__notes__ == [
        "an attempt was not answered; a broker may have made the change"
    ]


async def test_a_call_ends_at_its_timeout_with_the_last_error() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[DeleteTopicsRequest] = lambda asked: DeleteTopicsResponse(
            responses=[DeletableTopicResult(name="a", error_code=code_of("NOT_CONTROLLER"))]
        )
        with pytest.raises(AdminError) as failed:
            await client.admin.delete_topics(["a"], timeout_ms=150)
        assert broker.count(DeleteTopicsRequest) > 1
    assert "NOT_CONTROLLER" in str(failed.value)


async def test_a_timeout_names_the_limit_of_the_call_and_the_error_before() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        attempts = 0

        def answer(asked: ReceivedRequest) -> Any:
            nonlocal attempts
            attempts += 1
            return None if attempts > 1 else created(asked, a="NOT_CONTROLLER")

        broker.answers[CreateTopicsRequest] = answer
        with pytest.raises(AdminError) as failed:
            await client.admin.create_topics(["a"], timeout_ms=300)
    error = failed.value.errors["a"]
    assert isinstance(error, RequestTimeoutError)
    assert str(error).startswith("no broker answered within 300 ms (timeout_ms); the attempt bef")
    assert "NOT_CONTROLLER" in str(error)
    assert failed.value.unknown == {"a"}


async def test_topics_are_listed_again_after_a_lost_connection() -> None:
    async with ScriptedBroker({"a": 1}) as broker, Client(broker.bootstrap, QUICK) as client:
        answers = [HANG_UP, HANG_UP]
        broker.answers[MetadataRequest] = lambda asked: (
            answers.pop() if answers else broker.metadata(asked)
        )
        assert list(await client.admin.list_topics()) == ["a"]
        await broker.stop()
        with pytest.raises(BrokerConnectionError):
            await client.admin.list_topics(timeout_ms=200)


async def test_a_part_that_the_response_lacks_has_an_error() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[CreateTopicsRequest] = lambda asked: CreateTopicsResponse(
            topics=[CreatableTopicResult(name="a")]
        )
        with pytest.raises(AdminError, match="the response to CreateTopics lacks 'b'") as failed:
            await client.admin.create_topics(["a", "b"])
    assert list(failed.value.results) == ["a"]


async def test_an_unsupported_api_names_the_release_that_added_it() -> None:
    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = without(DescribeConfigsRequest)
        async with Client(broker.bootstrap, QUICK) as client:
            resource = ConfigResource(ConfigResourceType.TOPIC, "a")
            with pytest.raises(AdminError) as failed:
                await client.admin.describe_configs([resource])
    error = failed.value.errors[resource]
    assert isinstance(error, UnsupportedVersionError)
    assert "DescribeConfigs v0 is supported since Kafka 0.11.0.0" in str(error)


SINCE = r"ListGroups v4 with states_filter is supported since Kafka 2\.6\.0"


async def test_an_unsupported_field_names_the_release_that_added_it() -> None:
    async with ScriptedBroker() as broker:

        def answer(asked: ReceivedRequest) -> ApiVersionsResponse:
            found = api_versions()
            for each in found.api_keys:
                if each.api_key == ListGroupsRequest.API_KEY:
                    each.max_version = 3
            return found

        broker.answers[ApiVersionsRequest] = answer
        async with Client(broker.bootstrap, QUICK) as client:
            with pytest.raises(
                AdminError,
                match=SINCE,
            ):
                await client.admin.list_groups(states=["Stable"])


def find(asked: ReceivedRequest) -> FindCoordinatorResponse:
    """Answers that node 0 is the coordinator of every group."""
    message = asked.message
    assert isinstance(message, FindCoordinatorRequest)
    return FindCoordinatorResponse(
        coordinators=[Coordinator(key=each, node_id=0) for each in message.coordinator_keys]
    )


async def test_groups_are_described_as_classic_if_the_broker_lacks_the_consumer_protocol() -> None:
    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = without(ConsumerGroupDescribeRequest)
        broker.answers[FindCoordinatorRequest] = find
        broker.answers[DescribeGroupsRequest] = lambda asked: DescribeGroupsResponse(
            groups=[
                DescribedGroup(group_id="a", group_state="Empty", protocol_type="consumer"),
                DescribedGroup(group_id="b", group_state="Dead"),
                DescribedGroup(group_id="c", group_state="Stable", protocol_type="connect"),
            ]
        )
        async with Client(broker.bootstrap, QUICK) as client:
            with pytest.raises(AdminError) as failed:
                await client.admin.describe_consumer_groups(["a", "b", "c"])
    assert failed.value.results["a"].type == "Classic"
    assert {part: each.name for part, each in failed.value.errors.items()} == {
        "b": "GROUP_ID_NOT_FOUND",
        "c": "INCONSISTENT_GROUP_PROTOCOL",
    }


async def test_groups_whose_coordinator_loads_are_sent_again() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        codes = [["COORDINATOR_LOAD_IN_PROGRESS", "NOT_COORDINATOR"], ["NONE", "NONE"]]

        def answer(asked: ReceivedRequest) -> DeleteGroupsResponse:
            message = asked.message
            assert isinstance(message, DeleteGroupsRequest)
            its = codes.pop(0)
            return DeleteGroupsResponse(
                results=[
                    DeletableGroupResult(
                        group_id=each, error_code=0 if code == "NONE" else code_of(code)
                    )
                    for each, code in zip(message.groups_names, its, strict=True)
                ]
            )

        broker.answers[DeleteGroupsRequest] = answer
        broker.answers[FindCoordinatorRequest] = find
        await client.admin.delete_consumer_groups(["a", "b"])
        assert broker.count(DeleteGroupsRequest) == 2


async def test_group_of_another_kind_is_not_deleted_as_a_share_group() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        await client.create_topics(NewTopic("t"))
        await client.admin.alter_consumer_group_offsets("readers", {("t", 0): 0})
        async with client.share_consumer("t", group="workers") as consumer:
            await consumer.poll(50)
        with pytest.raises(AdminError) as refused:
            await client.admin.delete_share_groups(["readers", "workers"])
        error = refused.value.errors["readers"]
        assert isinstance(error, BrokerResponseError)
        assert error.name == "GROUP_ID_NOT_FOUND"
        assert list(refused.value.results) == ["workers"]
        offsets = await client.admin.list_consumer_group_offsets(["readers"])
        assert list(offsets["readers"]) == [("t", 0)]


async def test_an_error_of_a_broker_is_reported_by_its_node_id() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[ListGroupsRequest] = lambda asked: ListGroupsResponse(
            error_code=code_of("CLUSTER_AUTHORIZATION_FAILED")
        )
        with pytest.raises(AdminError) as failed:
            await client.admin.list_groups()
        (node,) = client.cluster.brokers
        assert list(failed.value.errors) == [node]


async def test_one_resource_hides_no_other_resource() -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        broker.answers[DescribeConfigsRequest] = lambda asked: DescribeConfigsResponse(
            results=[
                DescribeConfigsResult(resource_type=2, resource_name=each.resource_name)
                for each in asked.message.resources  # type: ignore[union-attr]
            ]
        )
        kind = ConfigResourceType
        present, absent = ConfigResource(kind.TOPIC, "a"), ConfigResource(kind.BROKER, "99")
        with pytest.raises(AdminError, match="no broker 99") as failed:
            await client.admin.describe_configs([present, absent])
        assert list(failed.value.results) == [present]
        assert list(failed.value.errors) == [absent]


async def test_a_silent_broker_hides_no_answer_of_another_broker() -> None:
    held = []

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        held.append(writer)  # the broker never answers

    silent = await asyncio.start_server(accept, "127.0.0.1", 0)
    port = silent.sockets[0].getsockname()[1]
    async with ScriptedBroker() as broker:

        def metadata(asked: ReceivedRequest) -> MetadataResponse:
            found = broker.metadata(asked)
            found.brokers.append(MetadataResponseBroker(node_id=1, host="127.0.0.1", port=port))
            return found

        broker.answers[MetadataRequest] = metadata
        broker.answers[DescribeLogDirsRequest] = lambda asked: DescribeLogDirsResponse(
            results=[DescribeLogDirsResult(log_dir="/data")]
        )
        async with Client(broker.bootstrap, QUICK) as client:
            with pytest.raises(AdminError) as failed:
                await client.admin.describe_log_dirs([0, 1], timeout_ms=200)
    for writer in held:
        writer.close()
    silent.close()
    assert list(failed.value.results[0]) == ["/data"]
    assert isinstance(failed.value.errors[1], RequestTimeoutError)


async def test_a_closed_client_refuses_admin_calls() -> None:
    async with ScriptedBroker() as broker:
        async with Client(broker.bootstrap, QUICK) as client:
            admin = client.admin
            assert client.admin is admin
        with pytest.raises(ConfigurationError):
            await admin.create_topics(["a"])


@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("create_topics", ("a",)),
        ("create_topics", (["a", NewTopic("a")],)),
        ("create_topics", ([3],)),
        ("delete_topics", ("a",)),
        ("delete_topics", ([3],)),
        ("describe_topics", ("a",)),
        ("create_partitions", ({"a": 0},)),
        ("create_partitions", (["a"],)),
        ("delete_records", ({"a": 0},)),
        ("delete_records", ({("a", 0): -2},)),
        ("describe_configs", ([("topic", "a")],)),
        ("incremental_alter_configs", ({ConfigResource(ConfigResourceType.TOPIC, "a"): ["x"]},)),
        ("describe_consumer_groups", ("a",)),
        ("list_consumer_group_offsets", ("a",)),
        ("list_consumer_group_offsets", ({"a": ["t"]},)),
        ("alter_consumer_group_offsets", ("a", {("t", 0): -1})),
        ("list_offsets", ({("t", 0): "end"},)),
        ("list_offsets", ({("t", -1): "latest"},)),
    ],
)
async def test_invalid_arguments_are_refused_before_a_request(
    method: str, arguments: tuple[Any, ...]
) -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        asked = len(broker.asked)
        with pytest.raises(ConfigurationError):
            await getattr(client.admin, method)(*arguments)
        assert len(broker.asked) == asked


@pytest.mark.parametrize("timeout_ms", [0, -1, "1"])
async def test_an_invalid_timeout_is_refused(timeout_ms: Any) -> None:
    async with ScriptedBroker() as broker, Client(broker.bootstrap, QUICK) as client:
        with pytest.raises(ConfigurationError, match="timeout_ms"):
            await client.admin.delete_topics(["a"], timeout_ms=timeout_ms)


def test_an_admin_error_can_be_pickled_and_copied() -> None:
    errors: dict[str, KprotoError] = {"b": error_of_code(36, "creating topic 'b'")}
    error = AdminError("creating topics", {"a": 1}, errors, {"b"})
    for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert str(other) == str(error)
        assert other.results == {"a": 1}
        assert other.unknown == {"b"}
        assert isinstance(other.errors["b"], BrokerResponseError)


def test_the_text_of_an_admin_error_names_parts_of_every_kind() -> None:
    errors: dict[Any, KprotoError] = {
        ("t", 3): KprotoError("x"),
        TopicPartitionReplica("t", 3, 1): KprotoError("y"),
        7: KprotoError("z"),
    }
    text = str(AdminError("moving", {}, errors))
    assert text == "moving: 3 of 3 failed: t[3]: x; t[3] on broker 1: y; broker 7: z"
