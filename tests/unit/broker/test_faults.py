"""Tests control functions, which decide what the broker does with a request.

A control function answers or delays the request, closes the connection, or lets the request pass.
"""

from __future__ import annotations

from typing import Any

import pytest

from kproto import BrokerConnectionError, Client, ConfigurationError
from kproto.broker import Broker, Close, Delay, Outcome
from kproto.messages.api_versions_request import ApiVersionsRequest
from kproto.messages.fetch_request import FetchRequest
from kproto.messages.metadata_request import MetadataRequest
from kproto.messages.metadata_response import MetadataResponse, MetadataResponseTopic
from kproto.messages.produce_request import ProduceRequest
from kproto.protocol.connection import ReceivedRequest
from kproto.testing.clock import ManualClock
from tests.support.embedded import ThreadedBroker, threaded_broker
from tests.support.raw_connection import ClosedByBrokerError, RawConnection

ASK = MetadataRequest(topics=[])


def test_a_control_sees_every_request_and_lets_it_pass(
    broker: ThreadedBroker, connection: RawConnection
) -> None:
    seen: list[tuple[str, int, str | None]] = []

    def look(request: ReceivedRequest) -> Outcome:
        seen.append((request.name, request.version, request.client_id))
        return None

    broker.call(lambda it: it.control(look))
    connection.exchange(ApiVersionsRequest(), 2)
    connection.exchange(ASK, 1)
    assert seen == [("ApiVersionsRequest", 2, "raw"), ("MetadataRequest", 1, "raw")]


def test_a_control_answers_so_many_times(broker: ThreadedBroker, connection: RawConnection) -> None:
    answer = MetadataResponse(topics=[MetadataResponseTopic(error_code=5, name="made up")])
    broker.call(lambda it: it.control(lambda _: answer, request=MetadataRequest, times=2))
    connection.exchange(ApiVersionsRequest(), 0)
    topics = [len(connection.exchange(ASK, 9).topics) for _ in range(3)]
    assert topics == [1, 1, 0]


def test_passed_requests_do_not_count(broker: ThreadedBroker, connection: RawConnection) -> None:
    outcomes: list[Outcome] = [None, MetadataResponse(controller_id=77), None]

    def every_second(request: ReceivedRequest) -> Outcome:
        return outcomes.pop(0)

    broker.call(lambda it: it.control(every_second, times=1))
    assert [connection.exchange(ASK, 1).controller_id for _ in range(3)] == [1, 77, 1]


def test_a_control_closes_the_connection(broker: ThreadedBroker, connection: RawConnection) -> None:
    broker.call(lambda it: it.control(lambda _: Close(), times=1))
    connection.send(ASK, 1)
    with pytest.raises(ClosedByBrokerError):
        connection.receive()
    with RawConnection(broker.bootstrap) as another:
        assert another.exchange(ASK, 1).controller_id == 1


def test_controls_are_called_in_order_and_delay_continues() -> None:
    answer = MetadataResponse(controller_id=77)

    def script(it: Broker) -> None:
        it.control(lambda _: Delay(150), times=1)
        it.control(lambda _: answer, times=2)
        it.control(lambda _: Close())

    clock = ManualClock()
    with (
        threaded_broker(clock=clock) as broker,
        RawConnection(broker.bootstrap) as connection,
    ):
        broker.call(script)
        connection.send(ASK, 1)
        broker.until(lambda _: clock.next_timer_ms == 150)
        broker.advance(clock, 150)
        delayed = connection.receive()
        assert isinstance(delayed, MetadataResponse)
        assert delayed.controller_id == 77
        assert connection.exchange(ASK, 1).controller_id == 77
        with pytest.raises(ClosedByBrokerError):
            connection.exchange(ASK, 1)


def test_a_control_can_be_removed(broker: ThreadedBroker, connection: RawConnection) -> None:
    control = broker.call(lambda it: it.control(lambda _: Close()))
    broker.call(lambda it: it.remove_control(control))
    broker.call(lambda it: it.remove_control(control))
    assert connection.exchange(ASK, 1).controller_id == 1


def broken(request: ReceivedRequest) -> Outcome:
    raise ZeroDivisionError


def returns_text(request: ReceivedRequest) -> Any:
    return "later"


def returns_a_class(request: ReceivedRequest) -> Any:
    return Close


@pytest.mark.parametrize(
    ("function", "fault"),
    [
        (broken, "ZeroDivisionError"),
        (returns_text, "a control function returned 'later'; it may return None, a response"),
        (returns_a_class, "a control function returned <class"),
    ],
)
def test_failing_control_closes_connection_is_logged_and_counts(
    function: Any,
    fault: str,
    broker: ThreadedBroker,
    connection: RawConnection,
    caplog: pytest.LogCaptureFixture,
) -> None:
    control = broker.call(lambda it: it.control(function, times=1))
    assert control.fault is None
    with pytest.raises(ClosedByBrokerError):
        connection.exchange(ASK, 1)
    assert f"the control function {function.__name__} failed on MetadataRequest v1" in caplog.text
    assert fault in caplog.text
    assert fault in repr(control.fault)
    with RawConnection(broker.bootstrap) as another:
        assert another.exchange(ASK, 1).controller_id == 1


@pytest.mark.parametrize("ms", [-1, "x", 1.5, None, True])
def test_invalid_delay_raises(ms: Any) -> None:
    with pytest.raises(ConfigurationError, match="ms of a Delay is"):
        Delay(ms)


@pytest.mark.parametrize("function", [None, Close(), Delay(5), "Slow"])
def test_a_control_must_be_a_function(function: Any) -> None:
    with pytest.raises(ConfigurationError, match="give a function of the request"):
        Broker().control(function)


@pytest.mark.parametrize("request_", [MetadataResponse, "Metadata", 3, MetadataRequest()])
def test_the_request_of_a_control_must_be_a_class_of_requests(request_: Any) -> None:
    with pytest.raises(ConfigurationError, match="give a class of requests"):
        Broker().control(lambda _: None, request=request_)


@pytest.mark.parametrize("times", [0, -1])
def test_times_must_be_at_least_one(times: int) -> None:
    with pytest.raises(ConfigurationError, match="times"):
        Broker().control(lambda _: None, times=times)


async def test_an_answer_that_is_lost_after_the_append_does_not_store_twice() -> None:
    async with Broker() as broker:
        broker.create_topic("t")
        broker.control(lambda _: Close(after_handling=True), request=ProduceRequest, times=2)
        async with Client(broker.bootstrap) as client, client.producer() as producer:
            ack = await producer.send("t", b"once")
        assert ack.offset == 0
        assert [record.value for record in broker.records("t")] == [b"once"]


async def test_client_reports_closed_connection() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        broker.control(lambda _: Close(), request=FetchRequest)
        with pytest.raises(BrokerConnectionError):
            await client.request(FetchRequest(max_wait_ms=0), broker=1)
