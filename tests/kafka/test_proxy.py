"""Tests the proxy between clients and a real broker: it changes bytes only to rewrite addresses."""

from __future__ import annotations

from kproto import Client
from kproto.messages import DescribeClusterRequest, FindCoordinatorRequest, ListGroupsRequest
from kproto.proxy import Proxy, ProxySettings
from kproto.proxy.settings import parse_address
from kproto.study.conversations import EventKind, Side, TrafficEvent
from tests.support.brokers import RunningKafka


async def test_clients_of_a_real_broker_stay_behind_the_proxy(
    newest_kafka: RunningKafka, topic_name: str
) -> None:
    events: list[TrafficEvent] = []
    notices: list[str] = []
    proxy = Proxy(
        "127.0.0.1:0",
        newest_kafka.bootstrap.partition(",")[0],
        ProxySettings(rewrite=True),
        on_event=lambda event, _: events.append(event),
        on_notice=lambda text, _: notices.append(text),
    )
    async with proxy, Client(proxy.listens_at) as client:
        await client.create_topics(topic_name)
        async with client.producer() as producer:
            for n in range(20):
                await producer.send(topic_name, b"%d" % n)
        read = []
        async for record in client.consumer(topic_name, start="earliest"):
            read.append(record.value)
            if len(read) == 20:
                break
        cluster = await client.request(DescribeClusterRequest())
        found = await client.request(
            FindCoordinatorRequest(key_type=0, coordinator_keys=["a-group"])
        )
        await client.request(ListGroupsRequest())
    assert read == [b"%d" % n for n in range(20)]
    ports = {int(notice.rpartition(":")[2]) for notice in notices if " is advertised as " in notice}
    assert {broker.port for broker in cluster.brokers} <= ports
    named = [each for each in found.coordinators if not each.error_code]
    assert all(each.port in ports for each in named)
    assert {event.kind for event in events} <= {EventKind.MESSAGE, EventKind.UNANSWERED}
    answered = {event.api for event in events if event.side is Side.BROKER}
    assert {"Produce", "Fetch", "CreateTopics", "DescribeCluster", "FindCoordinator"} <= answered


async def test_without_rewriting_what_a_broker_sends_is_not_changed(
    newest_kafka: RunningKafka,
) -> None:
    events: list[TrafficEvent] = []
    target = newest_kafka.bootstrap.partition(",")[0]
    proxy = Proxy("127.0.0.1:0", target, on_event=lambda event, _: events.append(event))
    async with proxy, Client(proxy.listens_at) as client:
        cluster = await client.request(DescribeClusterRequest())
    assert parse_address(target).port in {broker.port for broker in cluster.brokers}
    assert {event.kind for event in events} <= {EventKind.MESSAGE, EventKind.UNANSWERED}
    for event in events:
        assert event.received is not None or event.kind is EventKind.UNANSWERED
        if event.received is not None:
            assert event.received.to_frame() == event.data
