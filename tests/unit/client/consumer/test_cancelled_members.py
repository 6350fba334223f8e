"""A consumer whose member is a real one, on brokers, cancelled where it waits: nothing is lost.

Each coroutine is cancelled at each of its points, alone and while the group changes. Then the same
consumer reads on, where it was not closed; behind it somebody else reads what is left, each record
once. No member commits what is not done, and no partition has two owners.
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from kproto import GroupConsumer
from kproto.client.metadata.cluster import TopicPartition
from tests.support.suspensions import Cancel, points, turns
from tests.unit.client.consumer.beside_members import BESIDE
from tests.unit.client.consumer.member_scenes import (
    BY_HAND,
    ME,
    ON_ASSIGNED,
    ON_REVOKED,
    ROWS,
    Scene,
)
from tests.unit.client.consumer.members_on_cluster import (
    EACH,
    PARTITIONS,
    Again,
    Key,
    Stage,
    begin,
    staged,
)

#: The last one is the broker's, of the consumer protocol (KIP-848).
ASSIGNORS = ("range", "cooperative-sticky", "uniform")

#: A scene, from where it is prepared to its end.
Act = Callable[[Scene], Awaitable[None]]


async def play(act: Act, assignor: str, beside: str) -> None:
    """Play one scene, with those who are beside it, and look at what is left."""
    it = BESIDE[beside]
    async with staged(assignor) as stage:
        stage.callbacks_s = it.callbacks_s
        for _ in range(it.others):
            stage.other()
        if it.others:
            await stage.until(lambda: sum(it.assignment for it in stage.others) == PARTITIONS)
        await begin(ME, plays(stage, act, it.others))
        await stage.others_leave()
        await stage.nobody_is_connected()
        left = {
            (partition, offset)
            for partition in range(PARTITIONS)
            for offset in range(stage.ledger.committed.get(partition, 0), EACH)
        }
        if left:
            await inherit(stage, left)
        assert not stage.ledger.wrong, stage.ledger.wrong
        assert stage.ledger.all_done.is_set()
        assert stage.ledger.committed == dict.fromkeys(range(PARTITIONS), EACH)


async def plays(stage: Stage, act: Act, others: int) -> None:
    client = stage.client()
    scene = Scene(stage, client, stage.consumer(client, ME), PARTITIONS // (others + 1))
    try:
        await act(scene)
        for other in stage.others:
            other.wake()
        if not scene.ends:
            await scene.take_all()
            await scene.consumer.__aexit__(None, None, None)
        await stage.no_task_of(ME, "consumer", "groups")
        stage.no_connection_of_its_own(client)
    finally:
        await client.close()
    await stage.no_task_of(ME)


async def inherit(stage: Stage, left: set[Key]) -> None:
    """Whoever starts next gets all that is left, each record once."""
    name = "heir"
    found = set()
    async with stage.client() as client, stage.consumer(client, name) as consumer:
        records = aiter(consumer)
        for _ in left:
            record = await anext(records)
            key = (record.partition, record.offset)
            stage.ledger.handed_out(name, key)
            stage.ledger.is_done(key)
            found.add(key)
    assert found == left


async def cancelled(row: str, beside: str, cancel: Cancel, scene: Scene) -> None:
    """The coroutine of a row is cancelled."""
    work = await (ROWS | BY_HAND)[row](scene)
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
            stage.ledger.leaves(ME)
            stage.ledger.again = Again.UNCOMMITTED if cancel.reached else scene.again
            stage.ledger.in_hand = set(scene.in_hand)


async def cancelled_within(name: str, what: str, beside: str, cancel: Cancel, scene: Scene) -> None:
    """What a callback waits for is cancelled, and the callback goes on, as behind a time-out."""
    wait = (ON_ASSIGNED if name == "on_assigned" else ON_REVOKED)[what]
    was_called = False

    async def callback(places: list[TopicPartition]) -> None:
        nonlocal was_called
        if not was_called:
            was_called = True
            await cancel.run(wait(scene, places))

    scene.make(**{name: callback})
    await scene.enter()
    await scene.take(3)
    await BESIDE[beside].begin(scene)
    await scene.take(3)


WHEN: dict[str, Callable[[Callable[[Cancel], Any]], int]] = {
    "as it waits": lambda scene: points(scene, late=False),
    "as what it waits for is there": lambda scene: points(scene, late=True),
    "at any turn of the loop": lambda scene: turns(scene, step=5),
}
WAITING, THERE, TURNS = WHEN

#: What `make test` has of each row, by turns.
QUICK = (
    ("cooperative-sticky", "alone", THERE),
    ("range", "another joins", WAITING),
)

#: What goes on in tasks of its own, while who is cancelled waits at one point.
LONG = (
    "committing",
    "committing_one_behind_the_other",
    "rebalancing",
    "leaving",
    "unsubscribing_and_leaving",
    "the_whole_life",
)


#: What is read whole in a list: who keeps the partitions that he has read gets no third one.
BY_LISTS = ("record_lists", "values", "raw_batches")


def is_for_brokers_that_assign(row: str, beside: str) -> bool:
    """Whether a row has an end where the broker says who reads what, and takes only what moves."""
    if row not in ROWS or row == "rebalancing":  # which the broker does by itself
        return False
    return row not in BY_LISTS or "another joins" not in beside


def cases() -> Iterator[Any]:
    """`make test` has each row once, by turns alone and in a rebalance.

    The rest is exhaustive: each row beside everything, by turns with either assignor, or that of
    the broker, and at either moment. Those whose turn it is not are thorough.
    """
    for at, row in enumerate(ROWS | BY_HAND):
        for number, beside in enumerate(BESIDE):
            if row in BY_HAND and "another" in beside:
                continue  # it has no member
            when = (WAITING, THERE)[(at // 2 + number) % 2]
            both = is_for_brokers_that_assign(row, beside)
            turn = (at + number) // 2 % 2
            marks = THOROUGH if both and turn else EXHAUSTIVE
            yield case(row, ASSIGNORS[(at + number) % 2], beside, when, marks)
            if both:
                yield case(row, ASSIGNORS[2], beside, when, EXHAUSTIVE if turn else THOROUGH)
        if row in LONG:
            yield case(row, ASSIGNORS[at % 2], "another joins", TURNS)
            others = ASSIGNORS[(at + 1) % 2]
            yield case(row, others, "another joins, callbacks wait", TURNS, THOROUGH)
            if is_for_brokers_that_assign(row, "another joins"):
                yield case(row, ASSIGNORS[2], "another joins, callbacks wait", TURNS)
                yield case(row, ASSIGNORS[2], "another joins", WAITING, QUICKLY)
        for number, (assignor, beside, when) in enumerate(QUICK):
            if at % 2 == number if row in ROWS else beside == "alone":
                yield case(row, assignor, beside, when, QUICKLY)


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
def test_nothing_is_left_and_nothing_lost(row: str, assignor: str, beside: str, when: str) -> None:
    async def scene(cancel: Cancel) -> None:
        await play(lambda scene: cancelled(row, beside, cancel, scene), assignor, beside)

    assert WHEN[when](scene) > 0


def cases_within() -> Iterator[Any]:
    besides = ("another joins", "another leaves", "the coordinator moves", "alone")
    for name, waits in (("on_assigned", ON_ASSIGNED), ("on_revoked", ON_REVOKED)):
        for at, what in enumerate(waits):
            for number, beside in enumerate(besides):
                assignor = ASSIGNORS[(at + number) % 3]
                marks = () if beside == "another joins" else pytest.mark.exhaustive
                case_id = "-".join((name, what, beside, assignor)).replace(" ", "_")
                yield pytest.param(name, what, beside, assignor, id=case_id, marks=marks)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "what", "beside", "assignor"), [*cases_within()])
def test_who_waits_within_a_callback_may_be_cancelled(
    name: str, what: str, beside: str, assignor: str
) -> None:
    async def scene(cancel: Cancel) -> None:
        await play(
            lambda scene: cancelled_within(name, what, beside, cancel, scene), assignor, beside
        )

    assert points(scene, late=False) > 0


@pytest.mark.slow
@pytest.mark.parametrize("patience", [1, 2, 3, 5, 8, 20])
@pytest.mark.parametrize("assignor", ASSIGNORS)
@pytest.mark.parametrize("beside", ["another joins", "another leaves"])
def test_who_is_cancelled_at_each_ask_gets_every_record(
    beside: str, assignor: str, patience: int
) -> None:
    """As who polls and has no patience: so many turns of the loop, and then he asks anew."""

    async def poll(scene: Scene) -> None:
        await scene.enter()
        await BESIDE[beside].begin(scene)
        for other in scene.stage.others:
            other.wake()
        while not scene.stage.ledger.all_done.is_set():
            scene.is_done()
            asked = asyncio.ensure_future(anext(scene.records))
            for _ in range(patience):
                await asyncio.sleep(0)
            asked.cancel()
            await asyncio.wait([asked])
            if not asked.cancelled():
                record = asked.result()
                scene.have(record.partition, record.offset)

    async def scene(cancel: Cancel) -> None:
        await play(poll, assignor, beside)

    assert points(scene, late=False) == 0


def test_every_coroutine_has_a_row() -> None:
    """By what its rows call; those of reading are asked for by `anext`."""
    lines = "".join(inspect.getsource(each) for each in (ROWS | BY_HAND).values())
    for name, _ in inspect.getmembers(GroupConsumer, inspect.iscoroutinefunction):
        if not name.startswith("_") or name in ("__aenter__", "__aexit__"):
            assert f"consumer.{name}(" in lines or name == "run", name  # by `handling`
