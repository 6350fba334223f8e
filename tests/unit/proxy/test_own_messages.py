"""Tests that the proxy decodes the messages of a user's package beside those of Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from kproto import Client
from kproto.broker import Broker
from kproto.broker.handlers import KAFKA_APIS
from kproto.broker.registry import handles
from kproto.messages import MetadataRequest
from kproto.protocol.message_classes import MessageClasses
from kproto.proxy import Proxy, ProxySettings
from kproto.study.conversations import EventKind, Side, TrafficEvent
from tests.support.own_protocol import imported_package, make_package, write_releases


@pytest.fixture(scope="module")
def parcels(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("own")
    write_releases(folder / "parcels")
    with imported_package(make_package(folder / "parcels", folder / "parcels_of_proxy")) as package:
        yield package


@pytest.mark.parametrize("rewrite", [False, True])
async def test_own_messages_pass_beside_those_of_kafka(parcels: Any, rewrite: bool) -> None:
    @handles(parcels.TrackRequest, versions=range(3))
    def track(context: Any, request: Any, version: int) -> Any:
        return parcels.TrackResponse(note=request.depot)

    events: list[TrafficEvent] = []
    settings = ProxySettings(rewrite=rewrite, classes=MessageClasses(parcels))
    async with Broker(apis=[*KAFKA_APIS, track]) as broker:
        proxy = Proxy(
            "127.0.0.1:0",
            broker.listens_at,
            settings,
            on_event=lambda event, _: events.append(event),
        )
        async with proxy, Client(proxy.listens_at) as client:
            answer = await client.request(parcels.TrackRequest(depot="north"))
            assert answer == parcels.TrackResponse(note="north")
            assert (await client.request(MetadataRequest())).brokers
    own = [event for event in events if event.api == "Track"]
    assert [(event.side, event.kind) for event in own] == [
        (Side.CLIENT, EventKind.MESSAGE),
        (Side.BROKER, EventKind.MESSAGE),
    ]
    assert own[1].received is not None
    assert own[1].received.message == parcels.TrackResponse(note="north")
    kinds = {(event.api, event.kind) for event in events}
    assert ("ApiVersions", EventKind.MESSAGE) in kinds
    # Metadata has the api key of PrintLabel, and versions that PrintLabel lacks: it is forwarded.
    assert ("PrintLabel", EventKind.UNKNOWN) in kinds
