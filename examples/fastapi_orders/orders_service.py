"""A FastAPI service with aiokafka: takes orders by HTTP, and bills them in a consumer group.

Start it with `uvicorn --factory orders_service:create_app`; `KAFKA_BOOTSTRAP` names the brokers,
which need the topics `orders` and `bills`. test_orders_service.py tests it with the pytest plugin
of kproto.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from aiokafka.errors import KafkaError
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel


class Order(BaseModel):
    """The body of a request: an item, and its price in cents."""

    item: str
    price: int


def create_app(bootstrap: str | None = None) -> FastAPI:
    """Returns the service; `bootstrap` is the `host:port` of the brokers, comma-separated."""
    brokers = bootstrap or os.environ.get("KAFKA_BOOTSTRAP", "localhost:9092")

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        producer = AIOKafkaProducer(bootstrap_servers=brokers, client_id="orders")
        consumer = AIOKafkaConsumer(
            "orders",
            bootstrap_servers=brokers,
            client_id="billing",
            group_id="billing",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
        )
        async with producer, consumer:
            app.state.producer = producer
            billing = asyncio.create_task(bill_orders(consumer, producer))
            yield
            billing.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await billing

    app = FastAPI(lifespan=lifespan)

    @app.post("/orders/{customer}", status_code=201)
    async def place_order(customer: str, order: Order) -> dict[str, int]:
        try:
            ack = await app.state.producer.send_and_wait(
                "orders", order.model_dump_json().encode(), key=customer.encode()
            )
        except KafkaError as error:
            raise HTTPException(503, f"the order was not stored: {error}") from error
        return {"partition": ack.partition, "offset": ack.offset}

    return app


async def bill_orders(consumer: AIOKafkaConsumer, producer: AIOKafkaProducer) -> None:
    """Sends a bill for each order, then commits the order's offset."""
    async for record in consumer:
        order = json.loads(record.value)
        bill = {"for": order["item"], "total": order["price"]}
        await producer.send_and_wait("bills", json.dumps(bill).encode(), key=record.key)
        await consumer.commit()
