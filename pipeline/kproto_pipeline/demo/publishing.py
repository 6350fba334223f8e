"""The demo's broker and topic: started if there is none, filled, removed.

Owns what is asked of Kafka. Knows no Spark, and of a flight only its record.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kproto.client import Client, ClientSettings, NewTopic, ProducerRecord
from kproto.protocol.error_codes import code_of
from kproto.wire.errors import BrokerConnectionError, BrokerResponseError, KprotoError

from .interrupts import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto_cloudevents import KafkaRecord

    from .progress import Stage

__all__ = ["TOPIC_PARTITIONS", "embedded_broker", "publish", "topic_removed"]

TOPIC_PARTITIONS: Final = 4
# Records per call of send_many: enough to fill batches, few enough for a lively progress bar.
_SLICE: Final = 10_000

_NO_SUCH_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")


@contextmanager
def embedded_broker() -> Iterator[str]:
    """An embedded broker in a process of its own, which no Ctrl-C reaches; gives its address.

    Raises:
        BrokerConnectionError: it did not start.
    """
    command = [sys.executable, "-m", "kproto.cli", "broker", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - the command is our own, nothing in it is from outside
        command, stdout=subprocess.PIPE, text=True, process_group=0
    ) as broker:
        try:
            assert broker.stdout is not None
            words = broker.stdout.readline().split()
            if not words:
                raise BrokerConnectionError("the embedded broker did not start")
            yield words[-1]
        finally:
            with uninterrupted():
                broker.terminate()
                broker.wait()


async def publish(bootstrap: str, topic: str, records: Sequence[KafkaRecord], stage: Stage) -> int:
    """Send all records to a new topic; how many the broker acknowledged."""
    acknowledged = 0
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(topic, partitions=TOPIC_PARTITIONS))
        async with client.producer() as producer:
            for first in range(0, len(records), _SLICE):
                batch = [
                    ProducerRecord(record.value, record.key, record.headers)
                    for record in records[first : first + _SLICE]
                ]
                acknowledged += len(await producer.send_many(topic, batch))
                stage.advance_to(acknowledged)
    return acknowledged


@contextmanager
def topic_removed(bootstrap: str, topic: str) -> Iterator[None]:
    """Leave nothing behind on a cluster that is not ours; a topic that stays is told."""
    try:
        yield
    finally:
        with uninterrupted():
            try:
                asyncio.run(_delete_topic(bootstrap, topic))
            except KprotoError as error:
                print(f"topic {topic} was not deleted: {error}", file=sys.stderr)


async def _delete_topic(bootstrap: str, topic: str) -> None:
    settings = ClientSettings(request_timeout_ms=10_000)
    async with Client(bootstrap, settings) as client:
        try:
            await client.delete_topics(topic)
        except BrokerResponseError as error:
            if error.code != _NO_SUCH_TOPIC:  # it was not created yet
                raise
