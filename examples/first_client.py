"""The first program of the README: send, send many, read back. Ctrl-C ends it."""

import asyncio

import kproto

values = [b"good morning", b"good night"]


async def main() -> None:
    async with kproto.Client("localhost:9092") as client:
        async with client.producer() as producer:
            ack = await producer.send("greetings", b"hello", key=b"k")
            print(ack)  # acknowledged: topic, partition, offset, timestamp
            acks = await producer.send_many("greetings", values)  # one call for many
            print(acks[-1])
        async for record in client.consumer("greetings", start="earliest"):
            print(record.offset, record.value, record.headers)


asyncio.run(main())
