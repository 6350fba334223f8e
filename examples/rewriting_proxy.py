"""A rewriting proxy: clients connect through it, whatever address the broker advertises.

    python examples/rewriting_proxy.py localhost:9092 localhost:19092

The program listens at the first address, and forwards requests to the broker at the second address.
In the responses by which clients find brokers, such as Metadata and FindCoordinator, the proxy
replaces the broker's address by the first address. The proxy forwards everything else unchanged.
Ctrl-C ends the proxy.
"""

import asyncio
import contextlib
import sys
from collections.abc import Callable
from typing import Any

from kproto import KprotoError
from kproto.protocol.connection import PendingRequests, ServerConnection
from kproto.protocol.framing import FrameReader

Address = tuple[str, int]


async def pass_on(
    source: asyncio.StreamReader, target: asyncio.StreamWriter, rewrite: Callable[[bytes], bytes]
) -> None:
    frames = FrameReader()
    while data := await source.read(65536):
        for frame in frames.feed(data):
            target.write(rewrite(frame))
        await target.drain()
    with contextlib.suppress(OSError):  # the other side is closed already
        target.write_eof()


def name_proxy(message: Any, proxy: Address) -> None:
    """Replaces the addresses of brokers in a response, such as Metadata, by that of the proxy."""
    named = [message, *getattr(message, "brokers", ()), *getattr(message, "coordinators", ())]
    for place in [*named, *getattr(message, "node_endpoints", ())]:
        if getattr(place, "host", ""):
            place.host, place.port = proxy


async def serve(
    proxy: Address, target: Address, client: asyncio.StreamReader, to_client: asyncio.StreamWriter
) -> None:
    server, pending = ServerConnection(), PendingRequests()

    def rewrite_request(frame: bytes) -> bytes:
        request = server.receive(frame)
        if expected := server.pending(request):
            pending.expect(expected)
        return request.to_frame()

    def rewrite_response(frame: bytes) -> bytes:
        response = pending.match(frame)
        name_proxy(response.message, proxy)
        return response.to_frame()

    with contextlib.closing(to_client):
        try:
            broker, to_broker = await asyncio.open_connection(*target)
            with contextlib.closing(to_broker):
                async with asyncio.TaskGroup() as both:
                    both.create_task(pass_on(client, to_broker, rewrite_request))
                    both.create_task(pass_on(broker, to_client, rewrite_response))
        except* (ConnectionResetError, BrokenPipeError):
            pass  # the client or the broker closed its connection
        except* (KprotoError, OSError) as lost:
            print(f"connection closed: {lost.exceptions[0]}", file=sys.stderr)


def address(text: str) -> Address:
    host, _, port = text.rpartition(":")
    if not host or port not in map(str, range(1, 65_536)):
        sys.exit(f"{text!r} is no address such as localhost:9092\n\n{__doc__}")
    return host.strip("[]"), int(port)


async def main(proxy: Address, target: Address) -> None:
    try:
        _, broker = await asyncio.open_connection(*target)
        broker.close()
    except OSError as error:
        sys.exit(f"no broker answers at {target[0]}:{target[1]}, the second address: {error}")
    async with asyncio.TaskGroup() as clients:

        def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            if server.is_serving():
                clients.create_task(serve(proxy, target, reader, writer))
            else:
                writer.close()

        try:
            server = await asyncio.start_server(accept, *proxy)
        except OSError as error:
            sys.exit(f"cannot listen at {proxy[0]}:{proxy[1]}, the first address: {error}")
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
