"""Tests the service with the pytest plugin of kproto: each test has a broker of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from flask.testing import FlaskClient
from orders_app import bill_orders, create_app  # type: ignore[import-not-found]

import kproto.sync
from kproto.broker import ErrorCode, RunningBroker
from kproto.messages import ProduceRequest

pytestmark = pytest.mark.kafka(topics={"orders": 3, "bills": 1, "orders.dead": 1})

BOOK = {"item": "book", "price": 1200}


@pytest.fixture
def service(kafka_bootstrap: str) -> Iterator[FlaskClient]:
    app = create_app(kafka_bootstrap)
    with app.test_client() as client:
        yield client
    app.extensions["kafka"].close()


@pytest.fixture
def billing(kafka_bootstrap: str) -> Iterator[kproto.sync.Client]:
    """Runs the billing in a thread; the close of its client stops it."""
    with kproto.sync.Client(kafka_bootstrap) as client:
        thread = threading.Thread(target=bill_orders, args=(client,))
        thread.start()
        yield client
    thread.join(30)
    assert not thread.is_alive()


def test_order_is_stored_with_its_customer(
    service: FlaskClient, kafka_broker: RunningBroker
) -> None:
    answer = service.post("/orders/ada", json=BOOK)
    assert answer.status_code == 201
    (record,) = kafka_broker.records("orders")
    assert answer.json == {"partition": record.partition, "offset": record.offset}
    assert (record.key, record.value) == (b"ada", b'{"item":"book","price":1200}')


def test_requests_in_threads_share_the_producer(
    service: FlaskClient, kafka_broker: RunningBroker
) -> None:
    def place(number: int) -> int:
        with service.application.test_client() as client:
            answer = client.post(f"/orders/{number}", json=BOOK)
        return int(answer.status_code)

    with ThreadPoolExecutor(8) as threads:
        assert {*threads.map(place, range(40))} == {201}
    assert {record.key for record in kafka_broker.records("orders")} == {
        b"%d" % number for number in range(40)
    }


@pytest.mark.usefixtures("billing")
def test_orders_are_billed(service: FlaskClient, kafka_broker: RunningBroker) -> None:
    for item in ("book", "pen"):
        service.post("/orders/ada", json=BOOK | {"item": item})
    kafka_broker.wait_for_group("billing", lag=0, members=1)
    expected = Path(__file__).with_name("bills.json").read_text(encoding="utf-8")
    assert kafka_broker.snapshot("bills") == expected


@pytest.mark.usefixtures("billing")
def test_order_that_cannot_be_billed_is_a_dead_letter(kafka_broker: RunningBroker) -> None:
    kafka_broker.produce("orders", b"no JSON", key=b"ada", partition=0)
    kafka_broker.produce("orders", b'{"item": "book"}', key=b"ada", partition=0)
    kafka_broker.produce("orders", b'{"item": "book", "price": 1200}', key=b"ada", partition=0)
    kafka_broker.wait_for_group("billing", lag=0, members=1)
    assert len(kafka_broker.records("bills")) == 1
    dead = [record.value for record in kafka_broker.records("orders.dead")]
    assert dead == [b"no JSON", b'{"item": "book"}']


def test_sigterm_stops_the_billing(kafka_broker: RunningBroker, kafka_bootstrap: str) -> None:
    kafka_broker.produce("orders", b'{"item": "book", "price": 1200}', key=b"ada")
    process = subprocess.Popen(  # noqa: S603 - the service of this folder
        [sys.executable, str(Path(__file__).with_name("orders_app.py"))],
        env={"KAFKA_BOOTSTRAP": kafka_bootstrap, "PYTHONPATH": ":".join(sys.path)},
        stdout=subprocess.PIPE,
        text=True,
    )
    kafka_broker.wait_for_group("billing", lag=0)
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    assert output == "RunSummary(handled=1, retried=0, sent_to_retry=0, dead_letters=0)\n"
    assert process.returncode == 0


def test_leader_change_loses_no_order(service: FlaskClient, kafka_broker: RunningBroker) -> None:
    fault = ErrorCode("NOT_LEADER_OR_FOLLOWER", times=2, topics=["orders"])
    kafka_broker.control(fault, request=ProduceRequest)
    assert service.post("/orders/ada", json=BOOK).status_code == 201
    assert len(kafka_broker.records("orders")) == 1


def test_order_that_the_broker_refuses_is_an_error(
    service: FlaskClient, kafka_broker: RunningBroker
) -> None:
    fault = ErrorCode("TOPIC_AUTHORIZATION_FAILED", topics=["orders"])
    kafka_broker.control(fault, request=ProduceRequest)
    answer = service.post("/orders/ada", json=BOOK)
    assert answer.status_code == 503
    assert "not stored" in answer.text
    assert kafka_broker.records("orders") == []


def test_order_without_a_price_is_refused(
    service: FlaskClient, kafka_broker: RunningBroker
) -> None:
    assert service.post("/orders/ada", json={"item": "book"}).status_code == 400
    assert kafka_broker.records("orders") == []
