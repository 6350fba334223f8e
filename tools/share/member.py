"""A member of a share group that tests kill: `python -m tools.share.member BOOTSTRAP TOPIC GROUP`.

Prints a line for each record that it gets, and for each record whose acceptance the broker has
confirmed: `got PARTITION OFFSET DELIVERIES TIME` and `accepted PARTITION OFFSET TIME`, with the
time in seconds since 1970. Ends when its input ends.
"""

from __future__ import annotations

import asyncio
import sys
import time

import kproto
from kproto import AcknowledgeResult, Client

__all__ = ["main"]


def _print_result(result: AcknowledgeResult) -> None:
    if result.error is not None:
        return
    now = time.time()
    for offsets in result.accepted:
        for offset in offsets:
            print(f"accepted {result.partition} {offset} {now:.6f}")
    sys.stdout.flush()


async def _read(bootstrap: str, topic: str, group: str) -> None:
    async with (
        Client(bootstrap) as client,
        client.share_consumer(
            topic,
            group=group,
            acknowledgement="explicit",
            max_poll_records=20,
            on_acknowledged=_print_result,
        ) as consumer,
    ):
        async for record in consumer:
            count = record.delivery_count
            print(f"got {record.partition} {record.offset} {count} {time.time():.6f}", flush=True)
            await asyncio.sleep(0.001)
            try:
                await consumer.accept(record)
            except kproto.LockLostError:
                continue


async def main() -> None:
    """Reads until the input of this program ends."""
    reading = asyncio.create_task(_read(*sys.argv[1:4]))
    ending = asyncio.create_task(asyncio.to_thread(sys.stdin.read))
    await asyncio.wait([reading, ending], return_when=asyncio.FIRST_COMPLETED)
    if reading.done():
        reading.result()
    reading.cancel()
    await asyncio.gather(reading, return_exceptions=True)


if __name__ == "__main__":
    asyncio.run(main())
