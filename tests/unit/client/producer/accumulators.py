"""Provides a record accumulator without a broker, its records and batches, and its clock."""

from __future__ import annotations

import asyncio

from kproto.client import ClientSettings
from kproto.client.producer.accumulator import RecordAccumulator
from kproto.client.producer.batch import ProducerBatch
from kproto.client.producer.failed_deliveries import FailedDeliveries
from kproto.client.producer.producer_state import ProducerIdAndEpoch
from kproto.client.producer.send_schedule import SendPlan
from kproto.protocol.error_codes import code_of, error_of_code
from kproto.wire.errors import BrokerConnectionError, KprotoError

SETTINGS = ClientSettings(
    retry_backoff_ms=100, retry_backoff_max_ms=1_000, delivery_timeout_ms=10_000
)

LOST = BrokerConnectionError("the connection was lost")


class CurrentTime:
    """The clock of the accumulator: `now` is the time in seconds."""

    now = 0.0


SHOWN = CurrentTime()


def accumulator(
    loop: asyncio.AbstractEventLoop,
    *,
    batch_bytes: int = 200,
    linger_ms: int = 0,
    max_in_flight: int = 5,
    idempotent: bool = True,
) -> RecordAccumulator:
    SHOWN.now = 0.0  # an earlier test may have set it
    made = RecordAccumulator(
        SETTINGS,
        batch_bytes=batch_bytes,
        linger_ms=linger_ms,
        max_in_flight=max_in_flight,
        idempotent=idempotent,
        failed_deliveries=FailedDeliveries(1 << 25),
        monotonic=lambda: SHOWN.now,
        new_future=loop.create_future,
    )
    if idempotent:
        made.producer_state.identity = ProducerIdAndEpoch(7, 0)
    return made


def add(
    to: RecordAccumulator, count: int = 1, partition: int = 0, now: float = 0.0
) -> list[ProducerBatch]:
    """Adds records with values of 70 bytes; returns the batch of each record.

    With the default `batch_bytes` of 200, each record needs a batch of its own.
    """
    SHOWN.now = now
    return [to.add("t", partition, None, sized(at, 70), (), 0)[0] for at in range(count)]


def sized(number: int, size: int) -> bytes:
    """Returns a value of `size` bytes that starts with `number`."""
    return b"%d " % number + b"." * (size - 1 - len(b"%d" % number))


def number_of(value: bytes | None) -> int:
    """Returns the number at the start of a value that `sized` made."""
    return int((value or b"").split(b" ")[0])


def values_of(batch: ProducerBatch) -> list[bytes | None]:
    return [record.value for record in batch.content.records()]


def plan(of: RecordAccumulator, now: float = 0.0, in_flight: int = 0) -> SendPlan:
    return of.plan(now, lambda topic, partition, since: 0, lambda node: in_flight)


def take_all(of: RecordAccumulator, now: float = 0.0) -> list[ProducerBatch]:
    """Takes all batches that node 0 can get now; returns them in the order of the requests."""
    taken: list[ProducerBatch] = []
    while queues := plan(of, now).requests.get(0):
        taken += [of.take(queue, 0) for queue in queues]
    return taken


def error(name: str) -> KprotoError:
    return error_of_code(code_of(name), "")


def outcome(batch: ProducerBatch) -> KprotoError | None:
    return batch.future.result()
