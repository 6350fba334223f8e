"""Provides functions that read all records of a consumer, or the first record."""

from __future__ import annotations

from typing import Any

from kproto import Client, Consumer, Record


async def read(client: Client, what: Any = "t", **options: Any) -> list[bytes | None]:
    consumer = client.consumer(what, stop_at_end=True, **options)
    return [record.value async for record in consumer]


async def first_of(consumer: Consumer) -> Record:
    async for record in consumer:
        return record
    raise AssertionError("the consumer came to an end")
