"""A logging proxy: prints each request and response of any Kafka client by name, version, size.

    python examples/proxy.py localhost:9092 localhost:19092

listens at the first address and passes every byte on, as it is, to the broker at the second.
Clients reconnect to the address that a broker advertises, so it must advertise the proxy's: a
real one by `advertised.listeners=PLAINTEXT://localhost:9092`.
"""

import asyncio
import sys
from collections.abc import Callable

from kproto import KprotoError
from kproto.protocol.connection import PendingRequests, ServerConnection
from kproto.protocol.framing import FrameReader


async def pass_on(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, show: Callable[[bytes], None]
) -> None:
    frames = FrameReader()
    while data := await source.read(65536):
        for frame in frames.feed(data):
            show(frame)
        target.write(data)
        await target.drain()
    target.write_eof()


async def serve(client: asyncio.StreamReader, to_client: asyncio.StreamWriter) -> None:
    broker, to_broker = await asyncio.open_connection(*address(sys.argv[2]))
    server, pending = ServerConnection(), PendingRequests()

    def show_request(frame: bytes) -> None:
        request = server.receive(frame)
        print(f"-> {request.name} v{request.version}, {request.size} bytes", flush=True)
        if expected := server.pending(request):
            pending.expect(expected)

    def show_response(frame: bytes) -> None:
        response = pending.match(frame)
        print(f"<- {response.name} v{response.version}, {response.size} bytes", flush=True)

    try:
        async with asyncio.TaskGroup() as both:
            both.create_task(pass_on(client, to_broker, show_request))
            both.create_task(pass_on(broker, to_client, show_response))
    except* (KprotoError, OSError) as lost:
        print(f"connection given up: {lost.exceptions[0]}", file=sys.stderr)
    finally:
        to_client.close()
        to_broker.close()


def address(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    return host, int(port)


async def main() -> None:
    server = await asyncio.start_server(serve, *address(sys.argv[1]))
    async with server:
        await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
