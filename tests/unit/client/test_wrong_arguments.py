"""Tests that calls refuse wrong collections at once; the error text names the right form."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from kproto import Client, ConfigurationError
from tests.unit.client.scripted_broker import ScriptedBroker

P0 = ("t", 0)


@pytest.fixture
async def client() -> AsyncIterator[Any]:
    """Yields a client, as Any: the tested calls have wrong types."""
    async with ScriptedBroker({"t": 1}) as broker, Client(broker.bootstrap) as client:
        yield client


TOPICS: list[tuple[Any, str]] = [
    (b"t", "the name of a topic is a str"),
    ({P0: 5}, "is a mapping; pass a topic, a list of topics, or partitions"),
    (P0, r"is a single partition; pass a list: \[\('t', 0\)\]"),
    ("", "the name of a topic is not empty"),
    ([("", 0)], "the name of a topic is not empty"),
    (5, "is neither a topic nor partitions"),
]


@pytest.mark.parametrize("group", [None, "g"])
@pytest.mark.parametrize(("topics", "match"), TOPICS)
async def test_consumer_refuses_wrong_topics(
    client: Any, topics: Any, match: str, group: str | None
) -> None:
    with pytest.raises(ConfigurationError, match=match):
        client.consumer(topics, group=group)


async def test_start_with_a_topic_as_key_is_refused(client: Any) -> None:
    with pytest.raises(ConfigurationError, match="start has the key 't', which is no partition"):
        client.consumer("t", start={"t": 0})


CALLS: list[tuple[Callable[[Any], Any], str]] = [
    (lambda client: client.refresh("orders"), "topics is 'orders'; pass a list of names"),
    (lambda client: client.refresh({"orders": 1}), "pass a list of names"),
    (lambda client: client.refresh([b"orders"]), "b'orders' is no name of a topic"),
    (lambda client: client.topic(b"orders"), "b'orders' is no name of a topic"),
    (lambda client: client.create_topics(["a"]), "pass several topics one after the other"),
    (lambda client: client.delete_topics(["a"]), "pass several names one after the other"),
    (lambda client: client.list_offsets([P0]), "the offsets are .* a mapping by partition"),
    (lambda client: client.list_offsets({"t": "latest"}), "'t' is no partition"),
    (lambda client: client.commit_offsets("g", [P0]), "the offsets are .* a mapping by partition"),
]


@pytest.mark.parametrize(("call", "match"), CALLS)
async def test_call_refuses_wrong_collections(
    client: Any, call: Callable[[Any], Any], match: str
) -> None:
    with pytest.raises(ConfigurationError, match=match):
        await call(client)


async def test_member_refuses_wrong_collections(client: Any) -> None:
    member = client.consumer([P0], group="g")
    with pytest.raises(ConfigurationError, match=r"the times are .* a mapping by partition"):
        await member.offsets_for_times([P0])
    with pytest.raises(ConfigurationError, match="pass several partitions one after the other"):
        member.pause([P0])


@pytest.mark.parametrize("servers", [{"bootstrap.servers": "h:1"}, b"h:1"])
def test_client_refuses_wrong_servers(servers: Any) -> None:
    with pytest.raises(ConfigurationError, match="write 'host:port'"):
        Client(servers)
