"""A logging proxy: prints name, version and size of each request and response of a Kafka client.

    python examples/proxy.py localhost:9092 localhost:19092

The program listens at the first address, and forwards every byte unchanged to the broker at the
second address. Clients reconnect to the address that a broker advertises, so the broker must
advertise the proxy's address: with Kafka, set `advertised.listeners=PLAINTEXT://localhost:9092`.
Ctrl-C ends the proxy.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable

from kproto import KprotoError
from kproto.protocol.connection import PendingRequests, ServerConnection
from kproto.protocol.framing import FrameReader

Address = tuple[str, int]


async def pass_on(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, show: Callable[[bytes], None]
) -> None:
    frames = FrameReader()
    while data := await source.read(65536):
        for frame in frames.feed(data):
            show(frame)
        target.write(data)
        await target.drain()
    with contextlib.suppress(OSError):  # the other side is closed already
        target.write_eof()


async def serve(
    target: Address, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
) -> None:
    server, pending = ServerConnection(), PendingRequests()

    def show_request(frame: bytes) -> None:
        request = server.receive(frame)
        print(f"-> {request.name} v{request.version}, {request.size} bytes", flush=True)
        if expected := server.pending(request):
            pending.expect(expected)

    def show_response(frame: bytes) -> None:
        response = pending.match(frame)
        print(f"<- {response.name} v{response.version}, {response.size} bytes", flush=True)

    with contextlib.closing(to_client):
        try:
            broker, to_broker = await asyncio.open_connection(*target)
            with contextlib.closing(to_broker):
                async with asyncio.TaskGroup() as both:
                    both.create_task(pass_on(client, to_broker, show_request))
                    both.create_task(pass_on(broker, to_client, show_response))
        except* (ConnectionResetError, BrokenPipeError):
            pass  # the client or the broker closed its connection
        except* (KprotoError, OSError) as lost:
            print(f"connection closed: {lost.exceptions[0]}", file=sys.stderr)


def address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or port not in map(str, range(1, 65_536)):
        sys.exit(f"{text!r} is no address such as localhost:9092\n\n{__doc__}")
    return host.strip("[]"), int(port)


async def main(listen: Address, target: Address) -> None:
    try:
        _, broker = await asyncio.open_connection(*target)
        broker.close()
    except OSError as error:
        sys.exit(f"no broker answers at {target[0]}:{target[1]}, the second address: {error}")
    async with asyncio.TaskGroup() as clients:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if server.is_serving():
                clients.create_task(serve(target, reader, writer))
            else:
                writer.close()

        try:
            server = await asyncio.start_server(accept, *listen)
        except OSError as error:
            sys.exit(f"cannot listen at {listen[0]}:{listen[1]}, the first address: {error}")
        with contextlib.closing(server):
            try:
                await asyncio.Event().wait()
            finally:  # accepts no new connection, and finishes those being accepted
                for listener in server.sockets:
                    asyncio.get_running_loop().remove_reader(listener)
                await asyncio.sleep(0.1)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(f"two addresses are required, not {len(sys.argv) - 1}\n\n{__doc__}")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(main(address(sys.argv[1]), address(sys.argv[2])))
