"""Runs the broker that `kproto broker` asks for, until it is told to stop."""

from __future__ import annotations

import argparse
import asyncio
import logging
import signal

from ..broker import Broker, BrokerSettings
from .broker import TopicToCreate

__all__ = ["run"]


def run(options: argparse.Namespace) -> int:
    """Run the broker until SIGINT or SIGTERM; the exit code."""
    settings = BrokerSettings(
        host=options.host,
        port=options.port,
        advertised_host=options.advertised_host,
        advertised_port=options.advertised_port,
        num_partitions=options.partitions,
        max_stored_bytes=options.max_stored_bytes,
        auto_create_topics=options.auto_create_topics,
    )
    if options.verbose:
        logging.basicConfig(format="%(asctime)s %(message)s", level=logging.INFO)
    asyncio.run(_serve(settings, options.topics))
    return 0


async def _serve(settings: BrokerSettings, topics: list[TopicToCreate]) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    broker = Broker(settings)
    for topic in topics:
        broker.create_topic(topic.name, topic.partitions)
    async with broker:
        where = broker.listens_at
        if broker.bootstrap != where:
            where += f"; clients connect to {broker.bootstrap}"
        print(f"kproto broker, in memory, listens on {where}", flush=True)
        await stop.wait()
