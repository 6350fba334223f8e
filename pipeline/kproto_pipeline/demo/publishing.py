"""The demo's broker and topic: started if there is none, filled, removed.

Owns what is asked of Kafka. Knows no Spark, and of a flight only its record.
"""

from __future__ import annotations

import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from kproto.client import Client, NewTopic, ProducerRecord
from kproto.wire.errors import BrokerConnectionError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from kproto_cloudevents import KafkaRecord

    from .progress import Stage

__all__ = ["TOPIC_PARTITIONS", "delete_topic", "embedded_broker", "publish"]

TOPIC_PARTITIONS: Final = 4
# Records per call of send_many: enough to fill batches, few enough for a lively progress bar.
_SLICE: Final = 10_000


@contextmanager
def embedded_broker() -> Iterator[str]:
    """An embedded broker in a process of its own; gives its address.

    Raises:
        BrokerConnectionError: it did not start.
    """
    command = [sys.executable, "-m", "kproto.cli", "broker", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - the command is our own, nothing in it is from outside
        command, stdout=subprocess.PIPE, text=True
    ) as broker:
        try:
            assert broker.stdout is not None
            words = broker.stdout.readline().split()
            if not words:
                raise BrokerConnectionError("the embedded broker did not start")
            yield words[-1]
        finally:
            broker.terminate()


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


async def delete_topic(bootstrap: str, topic: str) -> None:
    """Leave nothing behind on a cluster that is not ours."""
    async with Client(bootstrap) as client:
        await client.delete_topics(topic)
