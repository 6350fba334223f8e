"""Starts the demo's broker, creates the demo's topic, publishes to the topic, and deletes it.

Imports no Spark. Treats a flight only as a Kafka record.
"""

from __future__ import annotations

import asyncio
import subprocess
import sys
from contextlib import contextmanager, suppress
from functools import partial
from itertools import islice
from threading import Event, Thread
from typing import TYPE_CHECKING, Final, Self

from kproto.client import Client, ClientSettings, NewTopic, ProducerRecord
from kproto.protocol.error_codes import code_of
from kproto.wire.errors import BrokerConnectionError, BrokerResponseError, KprotoError

from ..job.interrupts import uninterrupted

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from kproto_cloudevents import KafkaRecord

    from .progress import StageProgress

__all__ = [
    "TOPIC_PARTITIONS",
    "Publisher",
    "create",
    "embedded_broker",
    "publish",
    "topic_removed",
]

TOPIC_PARTITIONS: Final = 4
# The records per call of send_many: enough to fill batches, few enough for a smooth progress bar.
_SLICE: Final = 10_000
# The interval in seconds of checking whether publishing may resume.
_POLL_INTERVAL_S: Final = 0.05

_NO_SUCH_TOPIC: Final = code_of("UNKNOWN_TOPIC_OR_PARTITION")


@contextmanager
def embedded_broker() -> Iterator[str]:
    """Runs a broker in a process that Ctrl-C does not reach; yields `host:port` of the broker.

    Raises:
        BrokerConnectionError: the broker did not start.
    """
    command = [sys.executable, "-m", "kproto.cli", "broker", "--port", "0"]
    with subprocess.Popen(  # noqa: S603 - a fixed command without outside input
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


async def create(bootstrap: str, topic: str) -> None:
    """Creates the topic with `TOPIC_PARTITIONS` partitions."""
    async with Client(bootstrap) as client:
        await client.create_topics(NewTopic(topic, partitions=TOPIC_PARTITIONS))


async def publish(
    bootstrap: str,
    topic: str,
    records: Iterable[KafkaRecord],
    stage: StageProgress,
    pause: tuple[int, Event] | None = None,
) -> int:
    """Sends all records to a topic, and returns the number of acknowledged records.

    `pause` is a number of records and an event. After this number of records, waits until the event
    is set.
    """
    acknowledged = 0
    first, resume = pause or (0, None)
    coming = iter(records)
    async with Client(bootstrap) as client, client.producer() as producer:
        while batch := [
            ProducerRecord(record.value, record.key, record.headers)
            for record in islice(coming, min(_SLICE, max(first - acknowledged, 0) or _SLICE))
        ]:
            acknowledged += len(await producer.send_many(topic, batch))
            stage.advance_to(acknowledged)
            while resume is not None and acknowledged == first and not resume.is_set():  # noqa: ASYNC110 - set by another thread
                await asyncio.sleep(_POLL_INTERVAL_S)
    return acknowledged


class Publisher:
    """Publishes records in a thread during a `with` block; the end of the block cancels publishing.

    Once `finished` is set, `published` is the number of acknowledged records. `check` raises an
    error of publishing. If the block raises no other error, the end of the block also raises the
    error of publishing.
    """

    def __init__(
        self,
        bootstrap: str,
        topic: str,
        records: Iterable[KafkaRecord],
        stage: StageProgress,
        pause: tuple[int, Event],
    ) -> None:
        self.finished = Event()
        self.published = 0
        self._stage = stage
        self._publish = partial(publish, bootstrap, topic, records, stage, pause)
        self._error: BaseException | None = None

    def _run(self) -> None:
        try:
            with self._stage:
                self.published = self._loop.run_until_complete(self._task)
        except asyncio.CancelledError:
            pass
        except Exception as error:  # noqa: BLE001 - raised at the end of the block
            self._error = error
        finally:
            self._loop.close()
            self.finished.set()

    def __enter__(self) -> Self:
        self._loop = asyncio.new_event_loop()
        self._task = self._loop.create_task(self._publish())
        self._thread = Thread(target=self._run, name="publisher")
        self._thread.start()
        return self

    def __exit__(self, *exception: object) -> None:
        with uninterrupted():
            with suppress(RuntimeError):  # the loop is closed, so the task has ended
                self._loop.call_soon_threadsafe(self._task.cancel)
            self._thread.join()
        if self._error is not None and exception[0] is None:
            raise self._error

    def check(self) -> None:
        """Raises the error that ended publishing, if any."""
        if self._error is not None:
            raise self._error


@contextmanager
def topic_removed(bootstrap: str, topic: str) -> Iterator[None]:
    """Deletes the topic after the block; prints a message if the topic cannot be deleted."""
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
            if error.code != _NO_SUCH_TOPIC:  # ignored: the topic was never created
                raise
