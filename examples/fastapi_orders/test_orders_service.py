"""Tests the service with the pytest plugin of kproto: each test has a broker of its own."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from fastapi.testclient import TestClient
from orders_service import create_app  # type: ignore[import-not-found]

from kproto.broker import ErrorCode, RunningBroker
from kproto.messages import ProduceRequest

pytestmark = pytest.mark.kafka(topics={"orders": 3, "bills": 1})

BOOK = {"item": "book", "price": 1200}


@pytest.fixture
def service(kafka_bootstrap: str) -> Iterator[TestClient]:
    with TestClient(create_app(kafka_bootstrap)) as client:
        yield client


def test_order_is_stored_with_its_customer(
    service: TestClient, kafka_broker: RunningBroker
) -> None:
    answer = service.post("/orders/ada", json=BOOK)
    assert answer.status_code == 201
    (record,) = kafka_broker.records("orders")
    assert answer.json() == {"partition": record.partition, "offset": record.offset}
    assert (record.key, record.value) == (b"ada", b'{"item":"book","price":1200}')


def test_orders_are_billed(service: TestClient, kafka_broker: RunningBroker) -> None:
    for item in ("book", "pen"):
        service.post("/orders/ada", json=BOOK | {"item": item})
    kafka_broker.wait_for_group("billing", lag=0, members=1)
    expected = Path(__file__).with_name("bills.json").read_text(encoding="utf-8")
    assert kafka_broker.snapshot("bills") == expected


def test_orders_that_arrived_before_the_service_are_billed(
    kafka_broker: RunningBroker, kafka_bootstrap: str
) -> None:
    kafka_broker.produce("orders", b'{"item": "book", "price": 1200}', key=b"ada", partition=2)
    with TestClient(create_app(kafka_bootstrap)):
        kafka_broker.wait_for_group("billing", lag=0)
    assert len(kafka_broker.records("bills")) == 1


def test_leader_change_loses_no_order(service: TestClient, kafka_broker: RunningBroker) -> None:
    fault = ErrorCode("NOT_LEADER_OR_FOLLOWER", times=2, topics=["orders"])
    kafka_broker.control(fault, request=ProduceRequest)
    assert service.post("/orders/ada", json=BOOK).status_code == 201
    assert len(kafka_broker.records("orders")) == 1


def test_order_that_the_broker_refuses_is_an_error(
    service: TestClient, kafka_broker: RunningBroker
) -> None:
    fault = ErrorCode("TOPIC_AUTHORIZATION_FAILED", topics=["orders"])
    kafka_broker.control(fault, request=ProduceRequest)
    answer = service.post("/orders/ada", json=BOOK)
    assert answer.status_code == 503
    assert "not stored" in answer.json()["detail"]
    assert kafka_broker.records("orders") == []
