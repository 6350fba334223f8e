"""What the user is told when partitions come and go, in which order, and what he may do then."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from kproto import ConfigurationError
from kproto.client.consumer.group_consumer import GroupConsumer
from kproto.testing.clock import ManualClock
from tests.unit.client.consumer.grouped import FAR, QUICK, group
from tests.unit.client.consumer.test_group_reading import P0, P1, TEN, THREE, quiet, take


class Told:
    """Notes what callbacks are told; each is a coroutine function."""

    def __init__(self) -> None:
        self.lines: list[tuple[str, Any]] = []
        self.do: Callable[[str], Any] | None = None

    def callbacks(self) -> dict[str, Any]:
        def callback(name: str) -> Any:
            async def call(places: Any) -> None:
                self.lines.append((name, places))
                if self.do is not None:
                    await self.do(name)

            return call

        return {name: callback(name) for name in ("on_assigned", "on_revoked", "on_lost")}


async def test_each_is_told_once_and_in_order() -> None:
    told = Told()
    async with group(TEN, THREE) as it:
        async with it.consumer(**told.callbacks()):
            await it.owner.assign([P1, P0])
            await it.owner.assign([])
            await it.owner.revoke([P1], FAR)
            await it.owner.on_partitions_lost([P0])
            await it.owner.assign([P1])
        assert told.lines == [
            ("on_assigned", [P0, P1]),
            ("on_revoked", [P1]),
            ("on_lost", [P0]),
            ("on_assigned", [P1]),
            ("on_revoked", [P1]),  # at the end
        ]


async def test_plain_functions_are_as_good_and_on_revoked_stands_in_for_on_lost() -> None:
    lines: list[Any] = []
    async with group(TEN) as it, it.consumer(on_revoked=lines.append) as consumer:
        await it.owner.assign([P0])
        await it.owner.on_partitions_lost([P0])
        assert lines == [[P0]]
        await quiet(aiter(consumer))


async def test_nothing_is_handed_out_before_on_assigned_is_over() -> None:
    told = Told()
    over = asyncio.Event()
    told.do = lambda name: over.wait()
    async with group(TEN) as it, it.consumer(**told.callbacks()) as consumer:
        coming = asyncio.create_task(it.owner.assign([P0]))
        records = aiter(consumer)
        await quiet(records)
        assert told.lines == [("on_assigned", [P0])]
        over.set()
        await coming
        assert await take(records, 1) == [(0, 0)]


async def test_on_assigned_can_say_where_to_begin() -> None:
    async with group(TEN, THREE) as it:
        consumers: list[GroupConsumer] = []

        async def on_assigned(places: list[tuple[str, int]]) -> None:
            (consumer,) = consumers
            assert await consumer.position(P1) == 0
            assert await consumer.committed(P1) == {P1: None}
            consumer.seek(P0, 8)
            consumer.pause(P1)

        async with it.consumer(on_assigned=on_assigned) as consumer:
            consumers.append(consumer)
            await it.owner.assign([P0, P1])
            assert await take(aiter(consumer), 2) == [(0, 8), (0, 9)]
            assert consumer.paused == {P1}


async def test_offsets_can_still_be_committed_in_on_revoked() -> None:
    async with group(TEN, THREE) as it:
        consumers: list[GroupConsumer] = []

        async def on_revoked(places: list[tuple[str, int]]) -> None:
            (consumer,) = consumers
            assert places == [P0]
            await consumer.commit({P0: 2}, "flushed")
            assert it.coordinator.offsets[P0] == (2, -1, "flushed")
            await asyncio.create_task(consumer.commit())
            assert it.coordinator.offsets[P0] == (3, -1, "")

        async with it.consumer(on_revoked=on_revoked, auto_commit=False) as consumer:
            consumers.append(consumer)
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 3)
            going = asyncio.create_task(it.owner.revoke([P0], FAR))
            await quiet(records)
            await going
            assert it.coordinator.committed == [{P0: 2}, {P0: 3}]
        assert len(it.coordinator.commits) == 2


async def test_also_when_it_is_closed() -> None:
    async with group(TEN) as it:
        consumers: list[GroupConsumer] = []

        async def on_revoked(places: list[tuple[str, int]]) -> None:
            await consumers[0].commit()

        async with it.consumer(on_revoked=on_revoked, auto_commit=False) as consumer:
            consumers.append(consumer)
            await it.owner.assign([P0])
            await take(aiter(consumer), 3)
        assert it.coordinator.committed == [{P0: 3}]


async def test_on_revoked_comes_when_the_record_in_hand_is_done() -> None:
    told = Told()
    async with group(TEN) as it, it.consumer(**told.callbacks()) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([going], timeout=0.03)
        assert told.lines == [("on_assigned", [P0])]
        await quiet(records)
        await going
        assert told.lines[1:] == [("on_revoked", [P0])]


@pytest.mark.parametrize("comes", ["while a record is in hand", "in on_revoked"])
async def test_a_revocation_that_was_cut_short_is_made_whole(comes: str) -> None:
    """As where the consumer unsubscribes in a rebalance: what is still ours is given up anew."""
    told = Told()
    async with group(TEN) as it, it.consumer(**told.callbacks()) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        begun = asyncio.Event()

        async def flush(name: str) -> None:
            begun.set()
            if len(told.lines) == 2:
                await asyncio.Event().wait()

        told.do = flush
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        if comes == "in on_revoked":
            coming = asyncio.create_task(anext(records))
            await begun.wait()
        else:
            await asyncio.sleep(0)
        going.cancel()
        await asyncio.wait([going])
        assert it.owner.owned_partitions() == [P0]
        if comes != "in on_revoked":
            told.do = None
            coming = asyncio.create_task(anext(records))
        await it.owner.revoke([P0], FAR)
        assert told.lines[-1] == ("on_revoked", [P0])
        assert it.owner.owned_partitions() == []
        assert it.coordinator.committed == [{P0: 3}]
        await it.owner.assign([P0])
        assert (await coming).offset == 3


async def test_who_has_heard_of_it_to_the_end_is_not_told_again() -> None:
    """As where the consumer unsubscribes while the last commit is under way."""
    told = Told()
    async with group(TEN) as it, it.consumer(**told.callbacks()) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        it.coordinator.answers.clear()
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0)
        coming = asyncio.create_task(anext(records))
        await it.broker.until(lambda: bool(it.coordinator.commits))
        going.cancel()
        await asyncio.wait([going])
        it.coordinator.answers.set()
        await it.owner.revoke([P0], FAR)
        assert told.lines[1:] == [("on_revoked", [P0])]
        await it.owner.assign([P0])
        assert (await coming).offset == 3
        again = asyncio.create_task(it.owner.revoke([P0], FAR))
        await quiet(records)
        await again
        assert told.lines[2:] == [("on_assigned", [P0]), ("on_revoked", [P0])]


@pytest.mark.parametrize("next_is", ["on_assigned", "the end"])
async def test_who_was_cut_short_at_a_loss_is_told_of_it_again(next_is: str) -> None:
    """As by unsubscribing in the midst of it; before the partition comes again, or at the end."""
    told = Told()
    async with group(THREE) as it:
        async with it.consumer(**told.callbacks()):
            await it.owner.assign([P0])
            begun = asyncio.Event()

            async def work(name: str) -> None:
                begun.set()
                await asyncio.Event().wait()

            told.do = work
            losing = asyncio.create_task(it.owner.on_partitions_lost([P0]))
            await begun.wait()
            losing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await losing
            told.do = None
            if next_is == "on_assigned":
                await it.owner.assign([P0])
        again = [("on_assigned", [P0]), ("on_revoked", [P0])] if next_is == "on_assigned" else []
        assert told.lines[1:] == [("on_lost", [P0]), ("on_lost", [P0]), *again]


async def test_what_a_callback_raises_is_raised_to_who_asks() -> None:
    def on_assigned(places: object) -> None:
        raise ZeroDivisionError("mine")

    async with group(TEN) as it, it.consumer(on_assigned=on_assigned) as consumer:
        records = aiter(consumer)
        asked = asyncio.create_task(anext(records))
        await asyncio.sleep(0)
        await it.owner.assign([P0])
        with pytest.raises(ZeroDivisionError) as told:
            await asked
        assert told.value.__notes__ == ["raised by on_assigned for t[0]"]
        assert await take(records, 2) == [(0, 0), (0, 1)]  # it is assigned all the same


async def test_what_on_revoked_could_not_finish_is_not_committed() -> None:
    def on_revoked(places: object) -> None:
        raise ZeroDivisionError("mine")

    async with group(TEN) as it, it.consumer(on_revoked=on_revoked) as consumer:
        await it.owner.assign([P0])
        records = aiter(consumer)
        await take(records, 3)
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0)
        with pytest.raises(ZeroDivisionError):
            await anext(records)
        await going
        assert it.coordinator.commits == []


async def test_what_nobody_was_told_is_raised_at_the_end(caplog: pytest.LogCaptureFixture) -> None:
    def on_revoked(places: object) -> None:
        raise ZeroDivisionError("mine")

    async with group(TEN) as it:
        consumer = await it.consumer(on_revoked=on_revoked).__aenter__()
        await it.owner.assign([P0])
        with pytest.raises(ZeroDivisionError):
            await consumer.__aexit__(None, None, None)
        assert it.member.calls[-2:] == [("leave", True), "close"]
        consumer = await it.consumer(on_revoked=on_revoked).__aenter__()
        await it.owner.assign([P0])
        with caplog.at_level(logging.WARNING):
            await consumer.__aexit__(ValueError, ValueError(), None)
        assert "nobody was told: mine" in caplog.text
        assert it.member.calls[-2:] == [("leave", True), "close"]


async def test_a_callback_cannot_wait_for_its_own_end() -> None:
    async with group(TEN) as it:
        faults: list[str] = []
        consumers: list[GroupConsumer] = []

        async def on_assigned(places: object) -> None:
            for work in (consumers[0].close(), anext(aiter(consumers[0]))):
                with pytest.raises(ConfigurationError, match="a callback cannot") as told:
                    await work
                faults.append(str(told.value))

        async with it.consumer(on_assigned=on_assigned) as consumer:
            consumers.append(consumer)
            await it.owner.assign([P0])
            assert len(faults) == 2
            assert await take(aiter(consumer), 1) == [(0, 0)]


async def test_one_change_after_the_other() -> None:
    told = Told()
    over = asyncio.Event()
    told.do = lambda name: over.wait()
    async with group(TEN, THREE) as it, it.consumer(**told.callbacks()) as consumer:
        coming = asyncio.create_task(it.owner.assign([P0]))
        await asyncio.sleep(0)
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.wait([going], timeout=0.03)
        assert told.lines == [("on_assigned", [P0])]
        assert consumer.assignment == frozenset()
        over.set()
        await asyncio.gather(coming, going)
        assert told.lines == [("on_assigned", [P0]), ("on_revoked", [P0])]
        await quiet(aiter(consumer))


async def test_closing_waits_for_no_record_in_hand_of_a_rebalance() -> None:
    async with group(TEN) as it:
        async with it.consumer() as consumer:
            await it.owner.assign([P0])
            records = aiter(consumer)
            await take(records, 3)
            going = asyncio.create_task(it.owner.revoke([P0], FAR))
            await asyncio.sleep(0)
            await consumer.close()
            await going
        assert it.coordinator.committed == [{P0: 2}]


async def test_a_callback_that_ends_iterations_ends_nothing_in_silence() -> None:
    async def on_assigned(places: Any) -> None:
        await anext(aiter(Empty()))

    async with group(TEN) as it, it.consumer(on_assigned=on_assigned) as consumer:
        await it.owner.assign([P0])
        with pytest.raises(RuntimeError, match="on_assigned raised StopAsyncIteration"):
            await anext(aiter(consumer))


class Empty:
    """An iteration without anything."""

    def __aiter__(self) -> Empty:
        return self

    async def __anext__(self) -> None:
        raise StopAsyncIteration


async def test_a_callback_that_is_not_to_be_stopped_has_nothing_committed_behind_it() -> None:
    """It is cancelled when the membership is lost: what it gives up is others' by then."""

    async def on_revoked(places: Any) -> None:
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.sleep(60)

    async with group(TEN) as it, it.consumer(on_revoked=on_revoked) as consumer:
        await it.owner.assign([P0])
        await take(aiter(consumer), 3)
        consumer._subscriptions.poll.on_poll(0.0)
        going = asyncio.create_task(it.owner.revoke([P0], FAR))
        await asyncio.sleep(0.01)
        going.cancel()
        await asyncio.wait([going])
        assert going.cancelled()
        await it.owner.on_partitions_lost([P0])
        assert it.coordinator.commits == []


async def test_closing_waits_for_a_callback_no_longer_than_it_may(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async def on_assigned(places: Any) -> None:
        await asyncio.Event().wait()

    clock = ManualClock()
    settings = replace(QUICK, error_flush_ms=200)
    async with group(TEN, clock=clock, settings=settings) as it:
        consumer = await it.consumer(on_assigned=on_assigned).__aenter__()
        assigning = asyncio.create_task(it.owner.assign([P0]))
        await asyncio.sleep(0)
        ending = asyncio.create_task(consumer.__aexit__(ValueError, ValueError(), None))
        with caplog.at_level(logging.WARNING):
            await clock.advance(199)
            assert not ending.done()
            await clock.advance(2)
            await ending
        assert "t[0]: given up without a word" in caplog.text
        assert it.member.calls == ["start", ("leave", True), "close"]
        assigning.cancel()
        await asyncio.wait([assigning])


async def test_partitions_by_hand_come_and_go_too() -> None:
    told: list[tuple[str, Any]] = []
    async with group(TEN) as it:
        consumer = it.consumer(
            [P0],
            on_assigned=lambda places: told.append(("came", places)),
            on_revoked=lambda places: told.append(("goes", places)),
        )
        async with consumer:
            assert told == [("came", [P0])]
        assert told == [("came", [P0]), ("goes", [P0])]


@pytest.mark.parametrize("name", ["on_assigned", "on_revoked", "on_lost"])
async def test_what_cannot_be_called_is_refused_at_once(name: str) -> None:
    async with group(TEN) as it:
        with pytest.raises(ConfigurationError, match=f"{name} is 'print'"):
            it.consumer(**{name: "print"})
