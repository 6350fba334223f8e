"""Tests the version of a request.

The client uses only versions that have every field that the request sets. A version may lack a
field that is ignorable.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from kproto import Client, UnsupportedVersionError
from kproto.messages import (
    ApiVersionsRequest,
    ApiVersionsResponse,
    DeleteTopicsRequest,
    DeleteTopicsResponse,
    FindCoordinatorRequest,
    FindCoordinatorResponse,
    JoinGroupRequest,
    JoinGroupResponse,
    OffsetCommitRequest,
    OffsetCommitResponse,
)
from kproto.messages.api_versions_response import ApiVersion
from kproto.messages.base import Request, Response
from kproto.messages.delete_topics_request import DeleteTopicState
from kproto.messages.offset_commit_request import OffsetCommitRequestTopic
from kproto.protocol.connection import ReceivedRequest
from kproto.wire.uuid import Uuid
from tests.unit.client.scripted_broker import ScriptedBroker, api_versions

ID = Uuid(bytes(15) + b"\x01")


@asynccontextmanager
async def cluster(
    **ranges: tuple[int, int],
) -> AsyncIterator[tuple[ScriptedBroker, Client]]:
    """Yields a broker with these version ranges, and a client.

    The broker answers each request of `REQUESTS`.
    """

    def offered(asked: ReceivedRequest) -> ApiVersionsResponse:
        answer = api_versions()
        for name, (lowest, highest) in ranges.items():
            (key,) = [k for k in answer.api_keys if k.api_key == REQUESTS[name].API_KEY]
            answer.api_keys.remove(key)
            entry = ApiVersion(api_key=key.api_key, min_version=lowest, max_version=highest)
            answer.api_keys.append(entry)
        return answer

    async with ScriptedBroker() as broker:
        broker.answers[ApiVersionsRequest] = offered
        for name, request in REQUESTS.items():
            broker.answers[request] = lambda asked, name=name: RESPONSES[name]()  # type: ignore[misc]  # a lambda with a default has no type
        async with Client(broker.bootstrap) as client:
            yield broker, client


REQUESTS: dict[str, type[Request[Any]]] = {
    "delete_topics": DeleteTopicsRequest,
    "find_coordinator": FindCoordinatorRequest,
    "offset_commit": OffsetCommitRequest,
    "join_group": JoinGroupRequest,
}
RESPONSES: dict[str, type[Response]] = {
    "delete_topics": DeleteTopicsResponse,
    "find_coordinator": FindCoordinatorResponse,
    "offset_commit": OffsetCommitResponse,
    "join_group": JoinGroupResponse,
}


@pytest.mark.parametrize(
    ("request_", "version"),
    [
        (DeleteTopicsRequest(topic_names=["a", "b"]), 5),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name="a")]), 6),
        (FindCoordinatorRequest(key="g"), 3),
        (FindCoordinatorRequest(coordinator_keys=["g"]), 6),
        (OffsetCommitRequest(group_id="g", topics=[OffsetCommitRequestTopic(name="t")]), 9),
        (
            OffsetCommitRequest(
                group_id="g", topics=[OffsetCommitRequestTopic(name="t", topic_id=ID)]
            ),
            10,
        ),
        (OffsetCommitRequest(group_id="g", retention_time_ms=1), 4),
    ],
    ids=lambda value: str(value)[:60],
)
async def test_last_version_that_has_the_fields_is_used(
    request_: Request[Any], version: int
) -> None:
    async with cluster() as (broker, client):
        await client.request(request_, broker=0)
        sent = broker.asked[-1]
        assert sent.version == version
        assert sent.message is not None
        assert sent.message.encode(version) == request_.encode(version)


async def test_error_names_the_field_that_excludes_every_version() -> None:
    async with cluster(delete_topics=(6, 6), find_coordinator=(4, 6)) as (broker, client):
        words = "DeleteTopicsRequest: .* versions 6 to 6, .* field topic_names is set"
        with pytest.raises(UnsupportedVersionError, match=words):
            await client.request(DeleteTopicsRequest(topic_names=["a"]))
        with pytest.raises(UnsupportedVersionError, match="field key is set"):
            await client.request(FindCoordinatorRequest(key="g"))
        assert broker.count(DeleteTopicsRequest) == broker.count(FindCoordinatorRequest) == 0


BY_NAME = OffsetCommitRequestTopic(name="t")
BY_ID = OffsetCommitRequestTopic(topic_id=ID)


@pytest.mark.parametrize(
    ("request_", "words"),
    [
        (
            DeleteTopicsRequest(topic_names=["a"], topics=[DeleteTopicState(name="b")]),
            r"fields topic_names \(versions 0-5\) and topics \(versions 6\+\) are set, and no v",
        ),
        (FindCoordinatorRequest(key="g", coordinator_keys=["g"]), "key .* and coordinator_keys"),
        (
            OffsetCommitRequest(group_id="g", topics=[BY_NAME, BY_ID]),
            r"topics\[0\]\.name \(versions 0-9\) and topics\[1\]\.topic_id \(versions 10\+\)",
        ),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, Request) else "",
)
async def test_error_names_fields_that_no_version_has_together(
    request_: Request[Any], words: str
) -> None:
    async with cluster() as (broker, client):
        with pytest.raises(UnsupportedVersionError, match=words):
            await client.request(request_, broker=0)
        assert broker.count(type(request_)) == 0


async def test_topic_id_is_refused_at_a_version_without_it() -> None:
    """Without its topic id, the request would name no topic."""
    async with cluster(offset_commit=(0, 9)) as (broker, client):
        words = (
            r"support is 9, and its field topics\[0\]\.topic_id is set, which versions 10\+ have"
        )
        with pytest.raises(UnsupportedVersionError, match=words):
            await client.request(OffsetCommitRequest(group_id="g", topics=[BY_ID]), broker=0)
        assert broker.count(OffsetCommitRequest) == 0
        both = OffsetCommitRequestTopic(name="t", topic_id=ID)
        await client.request(OffsetCommitRequest(group_id="g", topics=[both]), broker=0)
        assert broker.asked[-1].version == 9


async def test_error_names_a_later_field_that_is_not_ignorable() -> None:
    async with cluster(join_group=(0, 4)) as (_, client):
        with pytest.raises(UnsupportedVersionError, match="field group_instance_id is set"):
            await client.request(
                JoinGroupRequest(group_id="g", group_instance_id="static"), broker=0
            )


async def test_ignorable_field_of_a_later_version_is_dropped() -> None:
    async with cluster(join_group=(0, 7)) as (broker, client):
        request = JoinGroupRequest(group_id="g", member_id="m", reason="because")
        await client.request(request, broker=0)
        sent = broker.asked[-1]
        assert (sent.version, sent.message) == (7, JoinGroupRequest(group_id="g", member_id="m"))


async def test_callers_version_is_used() -> None:
    async with cluster() as (broker, client):
        await client.request(DeleteTopicsRequest(topic_names=["a"]), version=4)
        assert broker.asked[-1].version == 4
