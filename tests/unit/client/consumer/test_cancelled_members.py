"""Cancels each coroutine of a consumer on the embedded cluster at each point where it waits.

Each coroutine is cancelled while the consumer is the only member. Coroutines of a group member are
also cancelled during rebalances. If the consumer was not closed, it continues reading. A new member
then reads each record that is not committed. No member commits a record that is not processed, and
no partition has two owners.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from kproto import GroupConsumer
from kproto.client.metadata.cluster import TopicPartition
from tests.support.selection import rest_slow
from tests.support.suspensions import Cancel, points, turns
from tests.unit.client.consumer.beside_members import BESIDE
from tests.unit.client.consumer.member_scenes import (
    MANUAL_ROWS,
    ME,
    ON_ASSIGNED,
    ON_REVOKED,
    ROWS,
    Scene,
)
from tests.unit.client.consumer.members_on_cluster import (
    EACH,
    PARTITIONS,
    Key,
    Redelivery,
    Stage,
    begin,
    staged,
)

#: "uniform" is an assignor of the broker, for the consumer protocol (KIP-848).
ASSIGNORS = ("range", "cooperative-sticky", "uniform")

#: Runs a prepared scene to its end.
Act = Callable[[Scene], Awaitable[None]]


async def play(act: Act, assignor: str, beside: str) -> None:
    """Runs `act` with one member, while the group also has the other members of `BESIDE[beside]`.

    Then checks that every record was processed and committed, and that no connection is left.
    """
    it = BESIDE[beside]
    async with staged(assignor) as stage:
        stage.callbacks_s = it.callbacks_s
        for _ in range(it.others):
            stage.other()
        if it.others:
            await stage.until(lambda: sum(it.assignment for it in stage.others) == PARTITIONS)
        await begin(ME, run_member(stage, act, it.others))
        await stage.others_leave()
        await stage.no_connection_is_left()
        left = {
            (partition, offset)
            for partition in range(PARTITIONS)
            for offset in range(stage.ledger.committed.get(partition, 0), EACH)
        }
        if left:
            await read_the_rest(stage, left)
        assert not stage.ledger.violations, stage.ledger.violations
        assert stage.ledger.all_processed.is_set()
        assert stage.ledger.committed == dict.fromkeys(range(PARTITIONS), EACH)


async def run_member(stage: Stage, act: Act, others: int) -> None:
    client = stage.client()
    scene = Scene(stage, client, stage.consumer(client, ME), PARTITIONS // (others + 1))
    try:
        await act(scene)
        for other in stage.others:
            other.wake()
        if not scene.ends:
            await scene.poll_until_all_processed()
            await scene.consumer.__aexit__(None, None, None)
        await stage.no_task_of(ME, "consumer", "groups")
        stage.no_connection_of_its_own(client)
    finally:
        await client.close()
    await stage.no_task_of(ME)


async def read_the_rest(stage: Stage, left: set[Key]) -> None:
    """Reads each uncommitted record once, with a new member."""
    name = "successor"
    found = set()
    async with stage.client() as client, stage.consumer(client, name) as consumer:
        records = aiter(consumer)
        for _ in left:
            record = await anext(records)
            key = (record.partition, record.offset)
            stage.ledger.record_delivered(name, key)
            stage.ledger.mark_processed(key)
            found.add(key)
    assert found == left


async def cancelled(row: str, beside: str, cancel: Cancel, scene: Scene) -> None:
    """Runs the coroutine of `row` together with the event `beside`, and cancels the coroutine."""
    work = await (ROWS | MANUAL_ROWS)[row](scene)
    await BESIDE[beside].begin(scene)
    try:
        await cancel.run(work)
    finally:
        scene.ends |= scene.ends_if_cancelled and cancel.reached
        if scene.closes_again:
            await scene.consumer.close()
            assert len(scene.stage.members) <= len(scene.stage.others), "it has left"
        if scene.ends:
            stage = scene.stage
            stage.ledger.partitions_released(ME)
            stage.ledger.redelivery = Redelivery.UNCOMMITTED if cancel.reached else scene.redelivery
            stage.ledger.in_flight = set(scene.in_flight)


async def cancelled_within(name: str, what: str, beside: str, cancel: Cancel, scene: Scene) -> None:
    """Cancels the call that a rebalance callback awaits; the callback then returns."""
    wait = (ON_ASSIGNED if name == "on_assigned" else ON_REVOKED)[what]
    was_called = False

    async def callback(partitions: list[TopicPartition]) -> None:
        nonlocal was_called
        if not was_called:
            was_called = True
            await cancel.run(wait(scene, partitions))

    scene.make(**{name: callback})
    await scene.enter()
    await scene.poll(3)
    await BESIDE[beside].begin(scene)
    await scene.poll(3)


WHEN: dict[str, Callable[[Callable[[Cancel], Any]], int]] = {
    "while it waits": lambda scene: points(scene, late=False),
    "when its result is there": lambda scene: points(scene, late=True),
    "at any iteration of the loop": lambda scene: turns(scene, step=5),
}
WAITING, RESULT_THERE, ANY_ITERATION = WHEN

#: The two settings of `make test`; rows alternate between them.
QUICK = (
    ("cooperative-sticky", "alone", RESULT_THERE),
    ("range", "another joins", WAITING),
)

#: Rows that work in background tasks while the cancelled coroutine waits at a single point.
LONG = (
    "committing",
    "committing_behind_a_pending_commit",
    "rebalancing",
    "leaving",
    "unsubscribing_and_leaving",
    "the_whole_life",
)


#: Rows that read whole lists: a member that keeps its partitions gets no third list.
BY_LISTS = ("record_lists", "values", "raw_batches")


def suits_assignors_of_the_broker(row: str, beside: str) -> bool:
    """Returns True if the test of `row` and the event `beside` also runs with a broker's assignor.

    A broker's assignor revokes only partitions that move. So if another member joins, a row of
    `BY_LISTS` would wait forever for its third list.
    """
    if row not in ROWS or row == "rebalancing":  # the broker rebalances by itself
        return False
    return row not in BY_LISTS or "another joins" not in beside


def cases() -> Iterator[Any]:
    """Yields the parameters of each test.

    A row is a coroutine to cancel, from `ROWS` or `MANUAL_ROWS`. Each row has a case with a setting
    of `QUICK`. `make test` runs this case for about a fourth of the rows, exhaustive tests for
    about another fourth, and thorough tests for the other rows.

    Further cases combine each row with each event of `BESIDE`. Rows of `MANUAL_ROWS` have no group,
    so they skip events of another member. These cases alternate between the assignors, and between
    the first two entries of `WHEN`. Some of these cases are exhaustive tests, the other cases are
    thorough tests. Rows of `LONG` have more cases, in which another member joins.
    """
    for at, row in enumerate(ROWS | MANUAL_ROWS):
        for number, beside in enumerate(BESIDE):
            if row in MANUAL_ROWS and "another" in beside:
                continue  # manual assignment has no member
            when = (WAITING, RESULT_THERE)[(at // 2 + number) % 2]
            both = suits_assignors_of_the_broker(row, beside)
            turn = (at + number) // 2 % 2
            marks = THOROUGH if both and turn else EXHAUSTIVE
            yield case(row, ASSIGNORS[(at + number) % 2], beside, when, marks)
            if both:
                yield case(row, ASSIGNORS[2], beside, when, EXHAUSTIVE if turn else THOROUGH)
        if row in LONG:
            yield case(row, ASSIGNORS[at % 2], "another joins", ANY_ITERATION)
            others = ASSIGNORS[(at + 1) % 2]
            yield case(row, others, "another joins, callbacks wait", ANY_ITERATION, THOROUGH)
            if suits_assignors_of_the_broker(row, "another joins"):
                yield case(row, ASSIGNORS[2], "another joins, callbacks wait", ANY_ITERATION)
                when_leaving = QUICKLY if row == "leaving" else EXHAUSTIVE
                yield case(row, ASSIGNORS[2], "another joins", WAITING, when_leaving)
        for number, (assignor, beside, when) in enumerate(QUICK):
            if at % 2 == number if row in ROWS else beside == "alone":
                rest = EXHAUSTIVE if at % 8 == number + 4 else THOROUGH
                yield case(row, assignor, beside, when, QUICKLY if at % 8 == number else rest)


EXHAUSTIVE, THOROUGH = (pytest.mark.exhaustive,), (pytest.mark.thorough,)
QUICKLY: tuple[pytest.MarkDecorator, ...] = ()


def case(
    row: str,
    assignor: str,
    beside: str,
    when: str,
    marks: tuple[pytest.MarkDecorator, ...] = EXHAUSTIVE,
) -> Any:
    name = "-".join((row, assignor, beside, when, *([] if marks else ["quick"])))
    return pytest.param(row, assignor, beside, when, id=name.replace(" ", "_"), marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(("row", "assignor", "beside", "when"), [*cases()])
def test_cancellation_leaves_no_task_and_loses_no_record(
    row: str, assignor: str, beside: str, when: str
) -> None:
    async def scene(cancel: Cancel) -> None:
        await play(lambda scene: cancelled(row, beside, cancel, scene), assignor, beside)

    assert WHEN[when](scene) > 0


def cases_within() -> Iterator[Any]:
    besides = ("another joins", "another leaves", "the coordinator moves", "alone")
    for name, waits in (("on_assigned", ON_ASSIGNED), ("on_revoked", ON_REVOKED)):
        for at, what in enumerate(waits):
            for number, beside in enumerate(besides):
                assignor = ASSIGNORS[(at + number) % 3]
                often = beside == "another joins" and at % 2 == 0
                marks = () if often else pytest.mark.exhaustive
                case_id = "-".join((name, what, beside, assignor)).replace(" ", "_")
                yield pytest.param(name, what, beside, assignor, id=case_id, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "what", "beside", "assignor"), [*cases_within()])
def test_callback_survives_cancellation_of_the_call_it_awaits(
    name: str, what: str, beside: str, assignor: str
) -> None:
    async def scene(cancel: Cancel) -> None:
        await play(
            lambda scene: cancelled_within(name, what, beside, cancel, scene), assignor, beside
        )

    assert points(scene, late=False) > 0


@pytest.mark.slow
@pytest.mark.parametrize("iterations", rest_slow([1, 5, 2, 3, 8, 20], 2, 2))
@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize("beside", ["another joins", "another leaves"])
def test_consumer_with_cancelled_polls_gets_every_record(
    beside: str, assignor: str, iterations: int
) -> None:
    """Cancels each poll after a few iterations of the event loop, as a caller's timeout can."""

    async def poll(scene: Scene) -> None:
        await scene.enter()
        await BESIDE[beside].begin(scene)
        for other in scene.stage.others:
            other.wake()
        while not scene.stage.ledger.all_processed.is_set():
            scene.mark_processed()
            poll_task = asyncio.ensure_future(anext(scene.records))
            for _ in range(iterations):
                await asyncio.sleep(0)
            poll_task.cancel()
            await asyncio.wait([poll_task])
            if not poll_task.cancelled():
                record = poll_task.result()
                scene.deliver(record.partition, record.offset)

    async def scene(cancel: Cancel) -> None:
        await play(poll, assignor, beside)

    assert points(scene, late=False) == 0


def test_every_coroutine_has_a_row() -> None:
    """The functions in the tables `ROWS` and `MANUAL_ROWS` call each public coroutine function."""
    lines = "".join(inspect.getsource(each) for each in (ROWS | MANUAL_ROWS).values())
    for name, _ in inspect.getmembers(GroupConsumer, inspect.iscoroutinefunction):
        if not name.startswith("_") or name in ("__aenter__", "__aexit__"):
            assert f"consumer.{name}(" in lines or name == "run", name
