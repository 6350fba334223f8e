"""Each response of a session in turn is replaced: one clear error or a retry, and never a hang.

Memory stays within what really came, whatever lengths are told.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import socket
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
import pytest_asyncio

import kproto
from kproto.broker import Broker
from kproto.client.network.connection import BrokerConnection
from kproto.client.settings import Address
from tests.support.hostile import (
    ATTACKS,
    HONEST_AFTERWARDS,
    Attack,
    Hostile,
    another_id,
    closed,
    giant_frame,
    giant_inside,
    half,
    largest_frame,
    mutated,
    silence,
)
from tests.unit.client.scripted_broker import quick

TOPIC = "t"
REQUEST_MS = 100
DELIVERY_MS = 250

#: What one operation may take at the most, in seconds: its deadline and one attempt more, and what
#: a busy machine adds.
LONGEST_S = 6.0

#: What a session may take of memory beside what came, in bytes: its own buffers.
MOST_MEMORY = 16_000_000

TIME_OUTS = (kproto.RequestTimeoutError, kproto.BrokerConnectionError)

#: How many responses a session has at the least, and some more for what is asked again.
RESPONSES = 22

EXPECTED = {
    "ApiVersionsResponse",
    "MetadataResponse",
    "InitProducerIdResponse",
    "ProduceResponse",
    "ListOffsetsResponse",
    "FetchResponse",
    "CreateTopicsResponse",
    "DeleteTopicsResponse",
}

#: Enough for a first look: a connection that ends, early or late, and what is no answer at all.
FEW = {another_id, closed, half}


def marks_of(attack: Attack) -> tuple[pytest.MarkDecorator, ...]:
    return () if attack in FEW else (pytest.mark.exhaustive,)


CASES = [pytest.param(attack, id=attack.__name__, marks=marks_of(attack)) for attack in ATTACKS]


@pytest_asyncio.fixture
async def broker() -> AsyncIterator[Broker]:
    async with Broker() as broker:
        yield broker


def impatient() -> kproto.ClientSettings:
    return quick(
        metadata_wait_ms=DELIVERY_MS,
        delivery_timeout_ms=DELIVERY_MS,
        connect_timeout_ms=REQUEST_MS,
        connect_timeout_max_ms=2 * REQUEST_MS,
        request_timeout_ms=REQUEST_MS,
        throttle_max_ms=REQUEST_MS,
    )


class Session:
    """A client that does one thing after the other, whatever becomes of each."""

    def __init__(
        self,
        bootstrap: str,
        settings: kproto.ClientSettings | None = None,
        *,
        is_lied_to: bool = False,
    ) -> None:
        self.is_lied_to = is_lied_to
        self.client = kproto.Client(bootstrap, settings or impatient())
        self.errors: list[kproto.KprotoError] = []
        self.longest_s = 0.0

    async def run(self) -> None:
        await self.attempt(self.client.refresh)
        await self.attempt(lambda: self.client.create_topics(TOPIC))
        producer = self.client.producer()
        for _ in range(2):
            await self.attempt(lambda: producer.send(TOPIC, b"x", partition=0))
        await self.attempt(lambda: self.client.list_offsets({(TOPIC, 0): "latest"}))
        await self.attempt(lambda: self.client.fetch(TOPIC, 0, 0, max_wait_ms=5))
        await self.attempt(self.read)
        await self.attempt(lambda: producer.send_many(TOPIC, [b"y"] * 5))
        await self.attempt(lambda: self.client.delete_topics(TOPIC))
        await self.attempt(producer.close)

    async def attempt(self, work: Callable[[], Awaitable[object]]) -> None:
        now = asyncio.get_running_loop().time
        begun = now()
        try:
            async with asyncio.timeout(10):
                await work()
        except kproto.KprotoError as error:
            self.errors.append(error)
        self.longest_s = max(self.longest_s, now() - begun)

    async def read(self) -> None:
        consumer = self.client.consumer(TOPIC, stop_at_end=True, max_wait_ms=5)
        # An end that there is none of is waited for, as records may come until it is reached.
        with contextlib.suppress(*[TimeoutError] * self.is_lied_to):
            async with asyncio.timeout(1.5), consumer:
                async for _ in consumer:
                    pass

    async def works(self) -> None:
        """The same client gets what it asks for, once it is not lied to any more.

        On a busy machine its short time-outs may strike a sound broker, too; then it asks again.
        """
        async with asyncio.timeout(15):
            for number in itertools.count():
                try:
                    await self.work(f"afterwards-{number}")
                except kproto.KprotoError as error:
                    cause = error.cause if isinstance(error, kproto.DeliveryError) else error
                    if not isinstance(cause, TIME_OUTS):
                        raise
                else:
                    return

    async def work(self, name: str) -> None:
        await self.client.create_topics(name)
        async with self.client.producer() as producer:
            ack = await producer.send(name, b"z")
        found = [it.value async for it in self.client.consumer(name, stop_at_end=True)]
        assert (ack.offset, found) == (0, [b"z"])
        await self.client.delete_topics(name)


def no_names(loop: asyncio.AbstractEventLoop) -> None:
    """Look no name up: those of brokers that there are none of would be asked for far away."""

    async def refuse(host: object, port: object, **_: object) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, f"{host!r} is no name here")

    loop.getaddrinfo = refuse  # type: ignore[method-assign]  # of this loop alone


async def attacked(
    broker: Broker, attack: Attack, number: int, seed: object = 0, times: int = 1
) -> Hostile:
    """Run a session; returns the broker that it met."""
    loop = asyncio.get_running_loop()
    no_names(loop)
    unseen: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unseen.append(context))
    try:
        async with Hostile(broker.bootstrap, number, attack, seed, times) as hostile:
            session = Session(hostile.bootstrap, is_lied_to=attack not in HONEST_AFTERWARDS)
            try:
                await session.run()
                assert session.longest_s < LONGEST_S
                hostile.times = 0
                if attack in HONEST_AFTERWARDS and times == 1:
                    await session.works()
            finally:
                await session.client.close()
            for name in list(broker.topics):
                broker.delete_topic(name)
        assert not unseen
    except BaseException as error:
        error.add_note(f"{attack.__name__} at response {number} {hostile.attacked}, seed {seed}")
        raise
    finally:
        loop.set_exception_handler(None)
    return hostile


async def every_response(broker: Broker, attack: Attack, seed: object, step: int = 1) -> set[str]:
    """Attack one response after the other; returns what they were."""
    found: set[str] = set()
    for number in range(1, RESPONSES + 1, step):
        found.update((await attacked(broker, attack, number, seed)).attacked)
    return found


@pytest.mark.parametrize("port", [-1, 65_536, 2**31 - 1])
async def test_a_port_that_is_none(port: int) -> None:
    """As a Metadata response may tell it."""
    address = Address("127.0.0.1", port)
    with pytest.raises(kproto.BrokerConnectionError, match="is no port"):
        await BrokerConnection.open(address, kproto.ClientSettings())


@pytest.mark.parametrize("attack", CASES)
async def test_a_session_with_a_hostile_broker(broker: Broker, attack: Attack) -> None:
    found = await every_response(broker, attack, seed=0)
    # On a busy machine a session may not come to its end in time.
    assert len(found & EXPECTED) >= len(EXPECTED) - 2


async def test_an_honest_session_has_no_errors(broker: Broker) -> None:
    async with Hostile(broker.bootstrap, 0, silence, 0) as honest:
        session = Session(honest.bootstrap, kproto.ClientSettings())
        await session.run()
        assert session.errors == []
        assert honest.seen <= RESPONSES
        await session.works()
        await session.client.close()


@pytest.mark.slow
@pytest.mark.parametrize("attack", CASES)
async def test_a_broker_that_stays_hostile(broker: Broker, attack: Attack) -> None:
    """From the third response on, which is of Metadata or later, nothing is right any more."""
    hostile = await attacked(broker, attack, 3, times=1_000_000)
    assert len(hostile.attacked) > 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "attack", [giant_frame, giant_inside, largest_frame], ids=lambda attack: attack.__name__
)
async def test_memory_follows_what_came(broker: Broker, attack: Attack) -> None:
    await attacked(broker, silence, 1_000)  # what is imported and kept by a session
    tracemalloc.start()
    try:
        for seed in range(2):
            await every_response(broker, attack, seed, step=2)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < MOST_MEMORY


@pytest.mark.exhaustive
@pytest.mark.parametrize("seed", range(1, 41))
async def test_many_mutations(broker: Broker, seed: int) -> None:
    for attack in (mutated, giant_inside):
        await every_response(broker, attack, seed)
