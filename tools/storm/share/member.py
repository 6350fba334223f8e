"""A member of the share group; the arguments are BOOTSTRAP TOPIC GROUP MODE PATH.

Appends lines to the file PATH; `sightings` reads them. MODE is `explicit`, `implicit`, `run` or
`accept`. A member in the mode `accept` accepts each record at once; the members of the other modes
are sometimes slower than the lock, and an explicit member also releases, rejects, renews and
forgets records. A record with the value `POISON` fails: only an implicit member accepts it, and all
other members release it. SIGTERM ends the member.
"""

from __future__ import annotations

import asyncio
import logging
import random
import signal
import sys
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path

import kproto
from kproto import AcknowledgeResult, LockLostError, ShareConsumer, ShareRecord

from ..members.lines import MemberLog
from ..members.reading import records_until
from .brokers import LOCK_S
from .modes import ACCEPT, POISON

__all__ = ["main"]

_Handle = Callable[[ShareRecord], Awaitable[object]]


class _Member:
    """Processes the records of one member, and logs what it does before it does so."""

    def __init__(self, mode: str, path: str, stop: asyncio.Event) -> None:
        self._mode = mode
        self._log = MemberLog(path)
        self._stop = stop
        self._chance = random.Random(path)
        self._counts: dict[tuple[int, int], int] = {}  # the last delivery count of each record

    async def run(self, bootstrap: str, topic: str, group: str) -> None:
        """Consumes until `stop` is set."""
        self._log.say("started")
        async with (
            kproto.Client(bootstrap) as client,
            client.share_consumer(
                topic,
                group=group,
                acknowledgement="implicit" if self._mode == "implicit" else "explicit",
                acquire_mode=self._chance.choice(("batch_optimized", "record_limit")),
                max_poll_records=self._chance.choice((5, 50)),
                max_wait_ms=200,
                on_acknowledged=self._on_acknowledged,
            ) as consumer,
        ):
            if self._mode == "run":
                await self._process(consumer)
            else:
                await self._iterate(consumer, self._handler(consumer))
        self._log.say("left")

    def _on_acknowledged(self, result: AcknowledgeResult) -> None:
        if result.error is not None:
            name = getattr(result.error, "name", type(result.error).__name__)
            self._log.say("failed", f"{name} {sum(map(len, result.offsets))}")
            return
        partition = result.partition
        for offsets in result.accepted:
            counts = [f"{at}:{self._counts.get((partition, at), 0)}" for at in offsets]
            self._log.say("accepted", f"{partition} {','.join(counts)}")

    def _got(self, record: ShareRecord) -> str:
        """Logs a delivery; returns the partition and the offset for further lines."""
        key = record.partition, record.offset
        self._counts[key] = record.delivery_count
        place = f"{record.partition} {record.offset}"
        self._log.say("got", f"{place} {record.delivery_count}")
        return place

    async def _last(self) -> None:
        """Waits as long as the processing of a record lasts: sometimes longer than its lock."""
        drawn = self._chance.random()
        if drawn > 0.999:
            await asyncio.sleep(self._chance.uniform(LOCK_S, 2 * LOCK_S))
        elif drawn > 0.9:
            await asyncio.sleep(self._chance.random() * 0.02)

    def _handler(self, consumer: ShareConsumer) -> _Handle:
        handlers: dict[str, Callable[[ShareConsumer, ShareRecord], Awaitable[object]]] = {
            ACCEPT: self._accept,
            "explicit": self._acknowledge,
            "implicit": self._read,
        }
        handle = handlers[self._mode]
        return lambda record: handle(consumer, record)

    async def _accept(self, consumer: ShareConsumer, record: ShareRecord) -> None:
        place = self._got(record)
        try:
            if record.value == POISON:
                await consumer.release(record)
            else:
                self._log.say("accepting", place)
                await consumer.accept(record)
        except LockLostError:
            return

    async def _read(self, _: ShareConsumer, record: ShareRecord) -> None:
        self._log.say("accepting", self._got(record))
        await self._last()

    async def _acknowledge(self, consumer: ShareConsumer, record: ShareRecord) -> None:
        place = self._got(record)
        drawn = self._chance.random()
        try:
            if drawn >= 0.98:
                await consumer.renew(record)
            await self._last()
            if drawn < 0.02:
                self._log.say("rejecting", place)
                await consumer.reject(record)
            elif drawn < 0.08 or record.value == POISON:
                await consumer.release(record)
            elif drawn < 0.085:
                return  # the record is forgotten: its lock ends
            else:
                self._log.say("accepting", place)
                await consumer.accept(record)
        except LockLostError:
            return
        if drawn > 0.995:
            await consumer.commit()

    async def _iterate(self, consumer: ShareConsumer, handle: _Handle) -> None:
        """Calls `handle` with each record, until the member must stop."""
        async with aclosing(records_until(aiter(consumer), self._stop)) as records:
            async for record in records:
                await handle(record)

    async def _process(self, consumer: ShareConsumer) -> None:
        async def handle(record: ShareRecord) -> None:
            place = self._got(record)
            await self._last()
            if record.value == POISON or self._chance.random() < 0.03:
                raise ValueError("the handler fails")  # the broker archives it at the limit
            self._log.say("accepting", place)

        running = asyncio.ensure_future(
            consumer.run(handle, workers=4, retries=kproto.Retries(10, backoff_ms=200), stop_on=())
        )
        stopping = asyncio.create_task(self._stop.wait())
        await asyncio.wait([running, stopping], return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        await consumer.close()
        await running


async def main() -> None:
    """Runs the member that the arguments describe."""
    bootstrap, topic, group, mode, path = sys.argv[1:]
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
    await _Member(mode, path, stop).run(bootstrap, topic, group)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s %(message)s")
    print(f"{Path(sys.argv[-1]).stem}: {sys.argv[4]}", flush=True)
    asyncio.run(main())
