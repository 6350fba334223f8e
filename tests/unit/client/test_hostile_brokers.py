"""Replaces each response of a session by a hostile response.

The client retries or raises one error, and never hangs. The client's memory use is limited by the
bytes received, whatever lengths the responses claim.
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

#: Time limit of one operation in seconds: its deadline, one more attempt, and a margin for a
#: busy machine.
LONGEST_S = 6.0

#: Memory limit of a session in bytes, on top of the bytes received.
MOST_MEMORY = 16_000_000

TIME_OUTS = (kproto.RequestTimeoutError, kproto.BrokerConnectionError)

#: An honest session has at most this many responses; a margin covers repeated requests.
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

#: A quick selection of attacks: a correlation id of no request, and a connection that closes before
#: or within the response.
FEW = {half}


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
    """A client session of several operations, each of which runs even if others failed."""

    def __init__(
        self,
        bootstrap: str,
        settings: kproto.ClientSettings | None = None,
        *,
        is_under_attack: bool = False,
    ) -> None:
        self.is_under_attack = is_under_attack
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
        # With a false end offset the consumer waits, because records may still arrive.
        with contextlib.suppress(*[TimeoutError] * self.is_under_attack):
            async with asyncio.timeout(1.5), consumer:
                async for _ in consumer:
                    pass

    async def works(self) -> None:
        """Checks that the client works when the broker is honest again.

        On a busy machine the client's short timeouts may expire at an honest broker, too. The check
        then starts again.
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
    """Fails all name lookups, because names in hostile responses would reach DNS servers."""

    async def refuse(host: object, port: object, **_: object) -> Any:
        raise socket.gaierror(socket.EAI_NONAME, f"{host!r} is no name here")

    loop.getaddrinfo = refuse  # type: ignore[method-assign]  # only of this event loop


async def attacked(
    broker: Broker, attack: Attack, number: int, seed: object = 0, times: int = 1
) -> Hostile:
    """Runs a session whose broker attacks `times` responses from response `number` on.

    Returns that broker. If the broker is honest after the attack, the session must work again.
    """
    loop = asyncio.get_running_loop()
    no_names(loop)
    unhandled: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unhandled.append(context))
    try:
        async with Hostile(broker.bootstrap, number, attack, seed, times) as hostile:
            session = Session(hostile.bootstrap, is_under_attack=attack not in HONEST_AFTERWARDS)
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
        assert not unhandled
    except BaseException as error:
        error.add_note(f"{attack.__name__} at response {number} {hostile.attacked}, seed {seed}")
        raise
    finally:
        loop.set_exception_handler(None)
    return hostile


async def every_response(broker: Broker, attack: Attack, seed: object, step: int = 1) -> set[str]:
    """Attacks every `step`-th response, each in a session of its own.

    Returns the names of the attacked responses.
    """
    found: set[str] = set()
    for number in range(1, RESPONSES + 1, step):
        found.update((await attacked(broker, attack, number, seed)).attacked)
    return found


@pytest.mark.parametrize("port", [-1, 65_536, 2**31 - 1])
async def test_invalid_port_is_refused(port: int) -> None:
    """A Metadata response may contain an invalid port."""
    address = Address("127.0.0.1", port)
    with pytest.raises(kproto.BrokerConnectionError, match="is no port"):
        await BrokerConnection.open(address, kproto.ClientSettings())


@pytest.mark.parametrize("attack", CASES)
@pytest.mark.slow
async def test_session_survives_each_hostile_response(broker: Broker, attack: Attack) -> None:
    found = await every_response(broker, attack, seed=0)
    # On a busy machine a session may end before the attack.
    assert len(found & EXPECTED) >= len(EXPECTED) - 2


async def test_honest_session_has_no_errors(broker: Broker) -> None:
    async with Hostile(broker.bootstrap, 0, silence, 0) as honest:
        session = Session(honest.bootstrap, kproto.ClientSettings())
        await session.run()
        assert session.errors == []
        assert honest.seen <= RESPONSES
        await session.works()
        await session.client.close()


@pytest.mark.slow
@pytest.mark.parametrize("attack", CASES)
async def test_session_survives_a_permanently_hostile_broker(
    broker: Broker, attack: Attack
) -> None:
    """The third response and all later responses are hostile.

    Usually the third response is a Metadata response.
    """
    hostile = await attacked(broker, attack, 3, times=1_000_000)
    assert len(hostile.attacked) > 1


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "attack", [giant_frame, giant_inside, largest_frame], ids=lambda attack: attack.__name__
)
async def test_memory_is_bounded_by_the_bytes_received(broker: Broker, attack: Attack) -> None:
    await attacked(broker, silence, 1_000)  # loads modules and fills caches before the measurement
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
async def test_session_survives_many_mutations(broker: Broker, seed: int) -> None:
    for attack in (mutated, giant_inside):
        await every_response(broker, attack, seed)
