"""Reading ahead: what happens where the thread has no loop, and where a batch is broken."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Coroutine
from typing import Any, NoReturn

import pytest
from kproto_pipeline.columnar import decode_records
from kproto_pipeline.fetching import read_ahead
from kproto_pipeline.offsets import OffsetRange
from kproto_pipeline.options import parse_read_options

from kproto import CorruptBatchError
from tests.unit.client.scripted_broker import ScriptedBroker
from tests.unit.client.scripted_log import ScriptedLog, batch


def test_a_loop_that_cannot_be_made_is_an_error_of_the_reader(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As when the process has no file descriptor left; whoever reads must not wait for ever."""

    def no_descriptor(coroutine: Coroutine[Any, Any, None]) -> NoReturn:
        coroutine.close()
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(asyncio, "run", no_descriptor)
    options = parse_read_options({"kafka.bootstrap.servers": "localhost:1", "subscribe": "flights"})
    with pytest.raises(OSError, match="Too many open files"):
        next(read_ahead(options, OffsetRange("flights", 0, 0, 1)))


DAMAGE = {
    "magic": (16, b"\x09", "unknown magic 9"),
    "length": (8, (2**31 - 13).to_bytes(4, "big"), "the data ends inside a batch"),
}


@pytest.mark.parametrize("kind", DAMAGE)
async def test_good_batches_come_before_a_broken_one(kind: str) -> None:
    at, damage, reason = DAMAGE[kind]
    async with ScriptedBroker({"t": 1}) as broker:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"good"]))
        log.append(batch(1, [b"bad"]))
        log.damage(at, damage)
        options = parse_read_options(
            {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}
        )
        arrived: list[bytes] = []

        def read() -> None:
            arrived.extend(read_ahead(options, OffsetRange("t", 0, 0, 2)))

        with pytest.raises(CorruptBatchError, match=reason) as told:
            await asyncio.to_thread(read)
        assert told.value.base_offset == 1
        first = next(decode_records(arrived[0]))
        assert first.offsets.tolist() == [0]


async def test_a_batch_that_only_says_that_it_lies_before_is_broken() -> None:
    """Its last offset is not believed, and so it is not what the fetch brought that is wrong."""
    async with ScriptedBroker({"t": 1}) as broker:
        log = ScriptedLog(broker)
        log.append(batch(0, [b"v"] * 5))
        log.damage(23, (-7).to_bytes(4, "big", signed=True))
        options = parse_read_options(
            {"kafka.bootstrap.servers": broker.bootstrap, "subscribe": "t"}
        )
        with pytest.raises(CorruptBatchError, match="CRC"):
            await asyncio.to_thread(list, read_ahead(options, OffsetRange("t", 0, 0, 5)))
