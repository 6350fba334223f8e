"""Tests the example proxies between aiokafka and the embedded broker."""

from __future__ import annotations

import asyncio
import os
import re
import sys
from collections import Counter
from pathlib import Path

import pytest

from kproto.broker import Broker, BrokerSettings

ROOT = Path(__file__).resolve().parents[2]

#: The broker advertises this host with its own port; the proxy listens there.
PROXY_HOST = "127.0.0.2"

AIOKAFKA = """
import asyncio, sys
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer, TopicPartition

async def main(bootstrap):
    producer = AIOKafkaProducer(bootstrap_servers=bootstrap)
    await producer.start()
    sent = await producer.send_and_wait("seen", b"through the proxy")
    await producer.stop()
    consumer = AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest")
    await consumer.start()
    consumer.assign([TopicPartition("seen", 0)])
    record = await consumer.getone()
    await consumer.stop()
    print(sent.offset, record.value)

asyncio.run(main(sys.argv[1]))
"""


@pytest.mark.peers
async def test_proxy_prints_the_messages_of_aiokafka(peers_python: Path) -> None:
    async with Broker(BrokerSettings(advertised_host=PROXY_HOST)) as broker:
        broker.create_topic("seen", partitions=1)
        port = broker.bootstrap.rpartition(":")[2]
        proxy = await asyncio.create_subprocess_exec(
            sys.executable,
            str(ROOT / "examples" / "proxy.py"),
            f"{PROXY_HOST}:{port}",
            f"127.0.0.1:{port}",
            stdout=asyncio.subprocess.PIPE,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        try:
            await until_it_listens(int(port))
            client = await asyncio.create_subprocess_exec(
                str(peers_python),
                "-c",
                AIOKAFKA,
                f"{PROXY_HOST}:{port}",
                stdout=asyncio.subprocess.PIPE,
            )
            async with asyncio.timeout(60):
                printed, _ = await client.communicate()
        finally:
            proxy.kill()
            shown, _ = await proxy.communicate()
    assert printed.decode().strip() == "0 b'through the proxy'"
    lines = shown.decode().splitlines()
    seen = Counter(lines_of(lines))
    assert {"-> ApiVersionsRequest", "-> ProduceRequest", "-> FetchRequest"} <= seen.keys()
    assert {"<- ApiVersionsResponse", "<- ProduceResponse", "<- FetchResponse"} <= seen.keys()
    assert seen["-> ProduceRequest"] == seen["<- ProduceResponse"] == 1
    assert seen["-> MetadataRequest"] == seen["<- MetadataResponse"] > 0


@pytest.mark.peers
async def test_rewriting_proxy_keeps_aiokafka_connected(peers_python: Path) -> None:
    """The broker advertises an unreachable address, which the proxy must replace for aiokafka."""
    async with Broker(BrokerSettings(advertised_host="192.0.2.1")) as broker:
        broker.create_topic("seen", partitions=1)
        port = broker.bootstrap.rpartition(":")[2]
        proxy = await asyncio.create_subprocess_exec(
            sys.executable,
            str(ROOT / "examples" / "rewriting_proxy.py"),
            f"{PROXY_HOST}:{port}",
            f"127.0.0.1:{port}",
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        )
        try:
            await until_it_listens(int(port))
            client = await asyncio.create_subprocess_exec(
                str(peers_python),
                "-c",
                AIOKAFKA,
                f"{PROXY_HOST}:{port}",
                stdout=asyncio.subprocess.PIPE,
            )
            async with asyncio.timeout(60):
                printed, _ = await client.communicate()
        finally:
            proxy.kill()
            await proxy.wait()
    assert printed.decode().strip() == "0 b'through the proxy'"


def lines_of(lines: list[str]) -> list[str]:
    """Returns the direction and the message name of each line in the proxy's log.

    Fails if a line lacks the version or the size of the message.
    """
    found = []
    for line in lines:
        match = re.fullmatch(r"(-> \w+Request|<- \w+Response) v\d+, [1-9]\d* bytes", line)
        assert match, line
        found.append(match[1])
    return found


async def until_it_listens(port: int) -> None:
    async with asyncio.timeout(20):
        while True:
            try:
                _, writer = await asyncio.open_connection(PROXY_HOST, port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                await writer.wait_closed()
                return
