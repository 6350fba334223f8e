"""The first program of the README: sends events, and reads them back. Ctrl-C ends it."""

import asyncio
import contextlib

from kproto_cloudevents import CloudEvent

import kproto


async def main() -> None:
    async with kproto.Client("localhost:9092") as client:
        async with client.producer() as producer:
            for number, text in enumerate(["hello", "good morning", "good night"]):
                event = CloudEvent(
                    id=str(number), source="/readme", type="greeting", data={"text": text}
                )
                ack = await producer.send_event("greetings", event, key=b"k")
                print(ack)  # acknowledged: topic, partition, offset, timestamp
        async for record in client.consumer("greetings", start="earliest"):
            print(record.offset, record.value, record.headers)


with contextlib.suppress(KeyboardInterrupt):  # Ctrl-C ends it
    asyncio.run(main())
