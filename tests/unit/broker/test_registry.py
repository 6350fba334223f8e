"""Tests a broker whose APIs the caller chooses, the context of requests, and unstable versions."""

from __future__ import annotations

from kproto import Client, ClientSettings
from kproto.broker import Broker, BrokerSettings
from kproto.broker.context import ANONYMOUS, Context
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.registry import DelayedResponse, by_key, handles, served_apis
from kproto.messages.heartbeat_request import HeartbeatRequest
from kproto.messages.heartbeat_response import HeartbeatResponse
from kproto.messages.init_producer_id_request import InitProducerIdRequest
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.metadata_response import MetadataResponse
from kproto.protocol.framing import frame
from kproto.protocol.headers import encode_request_header
from tests.support.embedded import threaded_broker
from tests.support.raw_connection import RawConnection

seen: list[Context] = []


@handles(HeartbeatRequest, versions=range(1, 3))
def heartbeat(context: Context, request: HeartbeatRequest, version: int) -> DelayedResponse:
    seen.append(context)
    answer = HeartbeatResponse(throttle_time_ms=request.generation_id + version)
    return DelayedResponse(
        deadline=context.deadline(5), watched=(), try_complete=lambda time_is_over: answer
    )


@handles(MetadataRequest, versions=range(14))
def made_up(context: Context, request: MetadataRequest, version: int) -> MetadataResponse:
    return MetadataResponse(controller_id=77)


async def test_a_broker_serves_an_api_of_the_caller() -> None:
    async with (
        Broker(apis=[*KAFKA_APIS, heartbeat]) as broker,
        Client(broker.bootstrap, ClientSettings(client_id="me")) as client,
    ):
        seen.clear()
        answer = await client.request(HeartbeatRequest(generation_id=5), broker=1)
        assert answer.throttle_time_ms == 7, "in version 2, the latest of it that is answered"
    (context,) = seen
    assert (context.client_id, context.host, context.principal) == ("me", "127.0.0.1", ANONYMOUS)
    assert context.cluster.endpoints("PLAINTEXT") == [context.endpoint]
    assert context.versions[HeartbeatRequest.API_KEY] == range(1, 3)


def test_client_id_may_change_between_requests() -> None:
    seen.clear()
    with (
        threaded_broker(apis=[heartbeat]) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        for number, name in enumerate(["a", "a", None]):
            header = encode_request_header(HeartbeatRequest, 1, number, name)
            connection.send_bytes(frame(header, HeartbeatRequest().encode(1)))
            connection.receive_frame()
    assert [context.client_id for context in seen] == ["a", "a", None]
    assert seen[0] is seen[1], "requests share one context"


def test_the_later_of_two_handlers_is_used() -> None:
    apis = by_key([*KAFKA_APIS, made_up])
    assert apis[MetadataRequest.API_KEY] is made_up
    assert len(apis) == len(KAFKA_APIS)


def test_unstable_versions_are_excluded_by_default() -> None:
    key = InitProducerIdRequest.API_KEY
    assert served_apis(KAFKA_APIS, BrokerSettings())[key].versions == range(6)
    assert served_apis(KAFKA_APIS, BrokerSettings(unstable_versions=True))[key].versions == range(7)
