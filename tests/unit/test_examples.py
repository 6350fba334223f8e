"""Tests the example programs: they end quietly on Ctrl-C, report errors, and forward every byte."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import struct
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from kproto import Client
from kproto.broker import Broker
from kproto.messages import MetadataRequest
from kproto.protocol.connection import ClientConnection
from tests.support.environment import ROOT
from tools.setup.ports import free_ports

PROXIES = ("proxy.py", "rewriting_proxy.py")
TIMEOUT_S = 120

#: Runs before a program: interrupts it at the fifth connection that it accepts.
INTERRUPTED = """
import os, signal, socket
accept, accepted = socket.socket.accept, []
def interrupted(listener):
    accepted.append(1)
    if len(accepted) == 5:
        os.kill(os.getpid(), signal.SIGINT)
    return accept(listener)
socket.socket.accept = interrupted
"""

proxies = pytest.mark.parametrize("name", PROXIES)


@asynccontextmanager
async def example(
    name: str, *arguments: str, text: str = "", dev: str = ""
) -> AsyncIterator[asyncio.subprocess.Process]:
    """Runs the example `name`, or the program `text` instead; kills it if it does not end.

    By default the program runs as users run it. In development mode (`dev`) asyncio also reports
    slow callbacks.
    """
    program = ("-c", text) if text else (str(ROOT / "examples" / name),)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-u",
        *program,
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env=os.environ | {"PYTHONPATH": str(ROOT), "PYTHONDEVMODE": dev},
    )
    try:
        async with asyncio.timeout(TIMEOUT_S):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()


async def listens(port: int) -> None:
    """Waits until the port accepts connections."""
    while True:
        try:
            _, writer = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            await asyncio.sleep(0.02)  # another process opens the port, so the test must poll
        else:
            writer.close()
            await writer.wait_closed()
            return


@proxies
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["localhost:9092"], "two addresses are required, not 1"),
        *(
            pytest.param(*each, marks=[pytest.mark.slow, pytest.mark.exhaustive])
            for each in (
                ([], "two addresses are required, not 0"),
                (["a:1", "b:2", "c:3"], "two addresses are required, not 3"),
                (
                    ["localhost", "localhost:9092"],
                    "'localhost' is no address such as localhost:9092",
                ),
                (["localhost:9092", "localhost:kafka"], "'localhost:kafka' is no address"),
                (["localhost:9092", "localhost:65536"], "'localhost:65536' is no address"),
                (["localhost:9092", "localhost:0"], "'localhost:0' is no address"),
                (["localhost:99999", "localhost:9092"], "'localhost:99999' is no address"),
            )
        ),
    ],
)
async def test_wrong_arguments_are_reported(name: str, arguments: list[str], words: str) -> None:
    async with example(name, *arguments) as process:
        printed, stderr = await process.communicate()
    assert (process.returncode, printed) == (1, b"")
    assert stderr.decode().startswith(words)
    assert f"python examples/{name} localhost:9092 localhost:19092" in stderr.decode()
    assert "Traceback" not in stderr.decode()


@proxies
@pytest.mark.slow
async def test_an_unreachable_broker_is_reported_at_start_and_later(name: str) -> None:
    dead, port = free_ports(2)
    async with example(name, f"127.0.0.1:{port}", f"127.0.0.1:{dead}") as process:
        _, stderr = await process.communicate()
    assert process.returncode == 1
    assert stderr.decode().startswith(
        f"no broker answers at 127.0.0.1:{dead}, the second address: "
    )
    assert stderr.count(b"\n") == 1, stderr.decode()
    async with Broker() as broker:
        async with example(name, broker.bootstrap, broker.bootstrap) as process:
            _, stderr = await process.communicate()
        assert stderr.startswith(b"cannot listen at 127.0.0.1:")
        async with example(name, f"127.0.0.1:{port}", broker.bootstrap) as process:
            await listens(port)
            await broker.close()
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            assert await reader.read() == b""
            writer.close()
            assert process.stderr is not None
            while b"Connect call failed" not in (line := await process.stderr.readline()):
                assert line.startswith(b"connection closed: "), line


@proxies
async def test_an_interrupted_proxy_ends_quietly(name: str) -> None:
    (port,) = free_ports(1)
    async with (
        Broker() as broker,
        example(name, f"127.0.0.1:{port}", broker.bootstrap) as process,
    ):
        await listens(port)
        _, idle = await asyncio.open_connection("127.0.0.1", port)
        async with Client(f"127.0.0.1:{port}"):
            process.send_signal(signal.SIGINT)
            _, stderr = await process.communicate()
        idle.close()
        assert (process.returncode, stderr) == (0, b"")


@proxies
@pytest.mark.slow
async def test_a_proxy_interrupted_while_clients_connect_closes_every_connection(name: str) -> None:
    """When Ctrl-C arrives, the proxy has accepted some clients that it does not serve yet."""
    (port,) = free_ports(1)
    text = (ROOT / "examples" / name).read_text(encoding="utf-8")
    async with (
        Broker() as broker,
        example(
            name, f"127.0.0.1:{port}", broker.bootstrap, text=INTERRUPTED + text, dev="1"
        ) as process,
    ):
        await listens(port)
        process.send_signal(signal.SIGSTOP)
        clients = [socket.create_connection(("127.0.0.1", port)) for _ in range(25)]
        process.send_signal(signal.SIGCONT)
        _, stderr = await process.communicate()
        for client in clients:
            client.close()
    assert process.returncode == 0
    assert b"Error on transport creation" not in stderr, stderr.decode()
    assert b"ResourceWarning" not in stderr, stderr.decode()


@proxies
async def test_a_client_that_disconnects_is_not_logged(name: str) -> None:
    (port,) = free_ports(1)
    _, request = ClientConnection().send(MetadataRequest(), 9)
    async with (
        Broker() as broker,
        example(name, f"127.0.0.1:{port}", broker.bootstrap) as process,
    ):
        await listens(port)
        for lingers in (True, False) * 10:
            with socket.create_connection(("127.0.0.1", port)) as client:
                client.sendall(request)  # the client does not wait for the response
                if not lingers:
                    reset = struct.pack("ii", 1, 0)
                    client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
        async with Client(f"127.0.0.1:{port}") as last:
            await last.refresh()
        while broker.connections:  # noqa: ASYNC110 - another process ends them
            await asyncio.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, stderr = await process.communicate()
        assert (process.returncode, stderr) == (0, b"")


@pytest.mark.slow
async def test_the_interrupted_first_program_ends_quietly() -> None:
    text = (ROOT / "examples" / "first_client.py").read_text(encoding="utf-8")
    async with Broker() as broker:
        broker.create_topic("greetings", partitions=1)
        mine = text.replace("localhost:9092", broker.bootstrap)
        async with example("first_client.py", text=mine) as process:
            assert process.stdout is not None
            async for line in process.stdout:
                if b"good night" in line:
                    break
            else:  # the program has ended
                _, stderr = await process.communicate()
                pytest.fail(f"exit code {process.returncode}: {stderr.decode()}")
            process.send_signal(signal.SIGINT)
            _, stderr = await process.communicate()
            assert (process.returncode, stderr) == (0, b"")


async def test_a_client_stays_on_the_rewriting_proxy() -> None:
    """The proxy must replace the broker's address in Metadata, or the client would bypass it."""
    (port,) = free_ports(1)
    async with (
        Broker() as broker,
        example("rewriting_proxy.py", f"127.0.0.1:{port}", broker.bootstrap),
    ):
        broker.create_topic("t", partitions=1)
        await listens(port)
        async with Client(f"127.0.0.1:{port}") as client:
            answer = await client.request(MetadataRequest())
            assert [(node.host, node.port) for node in answer.brokers] == [("127.0.0.1", port)]
            async with client.producer(compression="gzip") as producer:
                await producer.send_many("t", [b"one", b"two"])
            values = [r.value async for r in client.consumer("t", stop_at_end=True)]
            assert values == [b"one", b"two"]
