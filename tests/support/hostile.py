"""Runs a proxy in front of a correct broker; the proxy attacks responses, chosen by number.

An attack is a function of the frame's content, the decoded response and a random generator. The
function returns the bytes to send instead, and what happens to the connection afterwards. The
proxy numbers the responses of all connections in order of arrival.
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
    """The state of the connection after an attack."""

    GO_ON = "the connection works as before"
    HANG_UP = "the connection is closed"
    SILENCE = "the connection stays open, and no more bytes arrive"


class Reply(NamedTuple):
    """The bytes that replace a frame, and the state of the connection after them."""

    data: bytes
    then: Then = Then.GO_ON


Attack = Callable[[bytes, ReceivedResponse, random.Random], Reply]

_ID = 4  # size of the correlation id


def mutated(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Changes, adds or removes some bytes after the correlation id."""
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
    return Reply(frame(content[:_ID], bytes(body)))


def giant_inside(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Overwrites bytes at a random position of the body with the largest number.

    The overwritten bytes are perhaps a length or an offset.
    """
    body = bytearray(content[_ID:])
    giant = chance.choice([b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x7f" + b"\xff" * 7])
    at = chance.randrange(max(1, len(body) - len(giant)))
    body[at : at + len(giant)] = giant
    return Reply(frame(content[:_ID], bytes(body)))


def another_version(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Encodes the response in another version than that of the request."""
    message: Any = response.message
    versions = [version for version in type(message).VALID_VERSIONS if version != response.version]
    for version in chance.sample(versions, len(versions)):
        try:
            return Reply(frame(content[:_ID], message.encode(version)))
        except Exception:
            continue  # the other version cannot encode the response
    return Reply(frame(content[:_ID]))


def another_id(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Replaces the correlation id by an id that no request has."""
    return Reply(frame(struct.pack(">i", response.correlation_id + 1000), content[_ID:]))


def twice(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Sends the response twice."""
    return Reply(frame(content) * 2)


def empty(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Sends an empty frame."""
    return Reply(frame(b""))


def noise(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Sends random bytes, and then nothing more."""
    return Reply(chance.randbytes(chance.randint(1, 200)), Then.SILENCE)


def giant_frame(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Sends a wrong frame size: 2 GiB, a size above the limit, or a negative size."""
    size = chance.choice([0x7FFFFFFF, DEFAULT_MAX_FRAME_BYTES + 1, -1, -0x80000000])
    return Reply(struct.pack(">i", size) + content, Then.SILENCE)


def largest_frame(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Sends the largest allowed frame size, and then only a few bytes."""
    return Reply(struct.pack(">i", DEFAULT_MAX_FRAME_BYTES) + content, Then.SILENCE)


def silence(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Sends no response from now on."""
    return Reply(b"", Then.SILENCE)


def lost(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Drops this response only."""
    return Reply(b"")


def closed(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Closes the connection instead of responding."""
    return Reply(b"", Then.HANG_UP)


def half(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Sends a part of the frame, then closes the connection."""
    whole = frame(content)
    return Reply(whole[: chance.randrange(len(whole))], Then.HANG_UP)


def half_and_silence(content: bytes, response: ReceivedResponse, chance: random.Random) -> Reply:
    """Sends a part of the frame and nothing more."""
    whole = frame(content)
    return Reply(whole[: chance.randrange(len(whole))], Then.SILENCE)


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

#: After these attacks a client that retries succeeds. The other attacks can look like valid
#: responses, for example with wrong versions or brokers.
HONEST_AFTERWARDS = frozenset(ATTACKS) - {mutated, giant_inside, another_version, noise}


class Hostile(Middleman):
    """Applies `attack` to `times` responses, from response number `number` on, counted from 1."""

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
        reply = self.attack(passed[4:], response, self._chance)
        if reply.then is Then.SILENCE:
            self._silent.add(connection)
        return reply.data, reply.then is Then.HANG_UP
