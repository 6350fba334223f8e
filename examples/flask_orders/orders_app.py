"""A Flask service with kproto.sync: takes orders by HTTP, and bills them in a consumer group.

Start it with `gunicorn --worker-class gthread 'orders_app:create_app()'`; `KAFKA_BOOTSTRAP`
names the brokers, which need the topics `orders`, `bills` and `orders.dead`. Start the billing as a
process of its own: `python orders_app.py`. test_orders_app.py tests both with the pytest
plugin of kproto.
"""

from __future__ import annotations

import atexit
import os
from typing import Any

from flask import Flask, request
from werkzeug.exceptions import BadRequest, ServiceUnavailable

import kproto
import kproto.sync
from kproto.codecs import JsonCodec, StringCodec

KEY = StringCodec()
VALUE = JsonCodec()


def brokers() -> str:
    """Returns the `host:port` of the brokers, comma-separated."""
    return os.environ.get("KAFKA_BOOTSTRAP", "localhost:9092")


def is_order(body: object) -> bool:
    """Returns True for the body of a valid request."""
    match body:
        case {"item": str(), "price": int()}:
            return True
    return False


def create_app(bootstrap: str | None = None) -> Flask:
    """Returns the service, whose threads share one client and one producer.

    The client connects at the first request, so gunicorn may create the service before it forks.
    """
    app = Flask(__name__)
    client = kproto.sync.Client(bootstrap or brokers())
    producer = client.producer(key=KEY, value=VALUE)
    app.extensions["kafka"] = client
    atexit.register(client.close)

    @app.post("/orders/<customer>")  # type: ignore[untyped-decorator]
    def place_order(customer: str) -> tuple[dict[str, int], int]:
        order = request.get_json()
        if not is_order(order):
            raise BadRequest("an order has an item, and a price in cents")
        try:
            ack = producer.send("orders", order, key=customer)
        except kproto.KprotoError as error:
            raise ServiceUnavailable(f"the order was not stored: {error}") from error
        return {"partition": ack.partition, "offset": ack.offset}, 201

    return app


def bill_orders(client: kproto.sync.Client) -> kproto.RunSummary:
    """Sends a bill for each order, several at a time, until SIGTERM or a close stops it.

    An order that is no JSON, or that has no price, is sent to `orders.dead`.
    """
    with (
        client.producer(key=KEY, value=VALUE) as producer,
        client.consumer("orders", group="billing", key=KEY, value=VALUE) as consumer,
    ):

        def bill(order: kproto.Record[str, Any]) -> None:
            value: Any = order.value
            bill = {"for": value["item"], "total": value["price"]}
            producer.send("bills", bill, key=order.key)

        return consumer.run(
            bill, workers=8, order="key", retries=0, dead_letter_topic="orders.dead"
        )


if __name__ == "__main__":
    with kproto.sync.Client(brokers()) as opened:
        print(bill_orders(opened))
