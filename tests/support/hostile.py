"""A broker that is right until its n-th response, which an attack replaces.

It stands in front of a broker that is right. An attack is a function of the frame's content, of
what is in it, and of chance; it gives the bytes to send instead, and what happens to the connection
then. Each response of every connection counts, in the order in which they come.
"""

from __future__ import annotations

import asyncio
import random
import struct
from collections.abc import Callable
from enum import Enum
from typing import Any, NamedTuple

from kproto.messages import MetadataResponse
from kproto.protocol.connection import ReceivedResponse
from kproto.protocol.framing import DEFAULT_MAX_FRAME_BYTES, frame

from .middleman import Middleman

__all__ = ["ATTACKS", "HONEST_AFTERWARDS", "Attack", "Hostile"]


class Then(Enum):
    """What follows the bytes of an attack."""

    GO_ON = "as if nothing was"
    HANG_UP = "the connection is closed"
    SILENCE = "nothing more comes on this connection"


class Said(NamedTuple):
    """What is sent in the place of a frame."""

    data: bytes
    then: Then = Then.GO_ON


Attack = Callable[[bytes, ReceivedResponse, random.Random], Said]

_ID = 4  # bytes of the correlation id


def mutated(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """Some bytes behind the correlation id are others, more or fewer."""
    body = bytearray(content[_ID:])
    for _ in range(chance.randint(1, 6)):
        at = chance.randrange(len(body) + 1)
        match chance.randrange(4):
            case 0:
                body[at : at + 1] = chance.randbytes(1)
            case 1:
                body[at:at] = chance.randbytes(chance.randint(1, 4))
            case 2:
                del body[at : at + chance.randint(1, 4)]
            case _:
                body[at : at + 1] = chance.choice([b"\x00", b"\x7f", b"\x80", b"\xff"])
    return Said(frame(content[:_ID], bytes(body)))


def giant_inside(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """A number in the message is as large as it gets: a length, a time, an offset, an id."""
    body = bytearray(content[_ID:])
    giant = chance.choice([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f" + b"\xff" * 7])
    at = chance.randrange(max(1, len(body) - len(giant)))
    body[at : at + len(giant)] = giant
    return Said(frame(content[:_ID], bytes(body)))


def another_version(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """The same response in the form of another version."""
    message: Any = response.message
    versions = [version for version in type(message).VALID_VERSIONS if version != response.version]
    for version in chance.sample(versions, len(versions)):
        try:
            return Said(frame(content[:_ID], message.encode(version)))
        except Exception:
            continue  # it cannot carry what the broker said
    return Said(frame(content[:_ID]))


def another_id(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """The answer to a request that nobody made."""
    return Said(frame(struct.pack(">i", response.correlation_id + 1000), content[_ID:]))


def twice(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """The same answer again."""
    return Said(frame(content) * 2)


def empty(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """A frame with nothing in it."""
    return Said(frame(b""))


def noise(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """Anything but Kafka."""
    return Said(chance.randbytes(chance.randint(1, 200)), Then.SILENCE)


def giant_frame(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """A frame that is larger than any: of 2 GiB, or of less than nothing."""
    size = chance.choice([0x7FFFFFFF, DEFAULT_MAX_FRAME_BYTES + 1, -1, -0x80000000])
    return Said(struct.pack(">i", size) + content, Then.SILENCE)


def largest_frame(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """A frame as large as may be, of which little comes."""
    return Said(struct.pack(">i", DEFAULT_MAX_FRAME_BYTES) + content, Then.SILENCE)


def silence(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """No answer, to this and to all that follows."""
    return Said(b"", Then.SILENCE)


def lost(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """No answer to this one, but to the next."""
    return Said(b"")


def closed(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """The connection is closed in its place."""
    return Said(b"", Then.HANG_UP)


def half(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """A part of it, and the end of the connection."""
    whole = frame(content)
    return Said(whole[: chance.randrange(len(whole))], Then.HANG_UP)


def half_and_silence(content: bytes, response: ReceivedResponse, chance: random.Random) -> Said:
    """A part of it, and no more."""
    whole = frame(content)
    return Said(whole[: chance.randrange(len(whole))], Then.SILENCE)


ATTACKS: tuple[Attack, ...] = (
    mutated,
    giant_inside,
    another_version,
    another_id,
    twice,
    empty,
    noise,
    giant_frame,
    largest_frame,
    silence,
    lost,
    closed,
    half,
    half_and_silence,
)

#: After these a client that asks again gets all it wants; the others may have told it a lie in the
#: form of an answer, such as versions or brokers that there are none of.
HONEST_AFTERWARDS = frozenset(ATTACKS) - {mutated, giant_inside, another_version, noise}


class Hostile(Middleman):
    """Does `attack` to response number `number`, which counts from 1, and to the `times` next."""

    def __init__(
        self, target: str, number: int, attack: Attack, seed: object, times: int = 1
    ) -> None:
        super().__init__(target)
        self.number = number
        self.attack = attack
        self.times = times
        self.seen = 0
        self.attacked: list[str] = []
        self._chance = random.Random(f"{attack.__name__} {number} {seed}")
        self._silent: set[asyncio.Task[Any] | None] = set()

    def _passed(self, content: bytes, response: ReceivedResponse) -> tuple[bytes, bool]:
        connection = asyncio.current_task()
        if connection in self._silent:
            return b"", False
        self.seen += 1
        passed = frame(content)
        if isinstance(response.message, MetadataResponse):
            passed = self._renamed(response, response.message)
        if not self.number <= self.seen < self.number + self.times:
            return passed, False
        self.attacked.append(type(response.message).__name__)
        said = self.attack(passed[4:], response, self._chance)
        if said.then is Then.SILENCE:
            self._silent.add(connection)
        return said.data, said.then is Then.HANG_UP
