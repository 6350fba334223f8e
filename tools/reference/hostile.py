"""Mutated encodings before Kafka's readers and ours: both take them, or both refuse.

Owns the mutations and the verdict on one; `fuzz` runs many. Where kproto refuses what Kafka's
class takes, the lenient walk must name the reason, or they disagree; as they do where kproto takes
what Kafka's class refuses.
"""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from itertools import islice
from typing import Final, NamedTuple

from kproto.schema.definitions import union
from kproto.schema.layout import layout
from kproto.testing.instances import instances, random_instances
from kproto.wire.errors import DecodeError

from .comparison import ADDED_LATER, DIFFERENT
from .lenient import Deviation, Unreadable, read_leniently
from .pairs import Form, Pair, all_pairs
from .process import Answer, Operation, Outcome, Reference, question

__all__ = ["Agreement", "Case", "Disagreement", "judge", "judged_pairs", "mutations", "seeds"]


class Agreement(Enum):
    """How kproto and Kafka's class agree on bytes; the value says it in words."""

    SAME = "both read them whole, and write the same bytes"
    MORE = "both read a message, write the same bytes, and leave the same bytes behind it"
    NEITHER = "both refuse them"


class Disagreement(NamedTuple):
    """Bytes on which kproto and Kafka's class disagree for no documented reason."""

    pair: Pair
    data: bytes
    ours: str
    theirs: str

    def __str__(self) -> str:
        return f"{self.pair}, {self.data.hex()}: kproto {self.ours}; Kafka {self.theirs}"


Case = Agreement | Deviation | Disagreement


def judged_pairs() -> tuple[Pair, ...]:
    """The pairs whose mutations are judged: all that mean the same in their release and the newest.

    Where a release lacks a tagged field that came later, it cannot tell whether it is well-formed.
    The newest release judges those forms.
    """
    return tuple(
        pair
        for pair in all_pairs()
        if (pair.release, pair.name) not in ADDED_LATER
        and (pair.release, pair.name, pair.version) not in DIFFERENT
    )


SEED_BYTES: Final = 2000
"""Encodings of more are left out where there are shorter ones: a mutation costs as much as they."""

RANDOM_SEEDS: Final = 12


def seeds(form: Form) -> list[bytes]:
    """Sound encodings of `form` to begin with, the shortest first."""
    built = [*instances(form.message, form.version)]
    built.extend(islice(random_instances(form.message, form.version), RANDOM_SEEDS))
    found = sorted(
        {made.encode(form.version) for made in built}, key=lambda data: (len(data), data)
    )
    return [data for data in found if len(data) <= SEED_BYTES] or found[:1]


def mutations(sound: list[bytes], source: random.Random) -> Iterator[bytes]:
    """Encodings out of `sound` with one to three mutations each, without end."""
    while True:
        data = bytearray(source.choice(sound))
        for _ in range(source.choice((1, 1, 1, 2, 3))):
            source.choice(_MUTATIONS)(data, source, sound)
        yield bytes(data)


#: Bytes that lengths, counts, tags and marks react to.
_TELLING_BYTES: Final = (0x00, 0x01, 0x02, 0x7F, 0x80, 0xFE, 0xFF)

#: Lengths and varints, in hexadecimal: null, below null, the longest, not minimal, too long, with
#: all bits set; and bytes that are not UTF-8.
_RUNS_IN_HEX: Final = """
    ffff fffe 7fff 8000 0000 ffffffff fffffffe 7fffffff 80000000 00000000 00000001 8000 8100 808000
    818000 8080808000 8180808000 ffffffff07 ffffffff0f 8080808008 8080808010 808080808000
    ffffffffff01 c328 eda080 f4908080
"""
_TELLING_RUNS: Final = tuple(bytes.fromhex(run) for run in _RUNS_IN_HEX.split())


def _flip_bit(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    if data:
        data[source.randrange(len(data))] ^= 1 << source.randrange(8)


def _set_byte(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    if data:
        byte = source.choice(_TELLING_BYTES) if source.random() < 0.7 else source.randrange(256)
        data[source.randrange(len(data))] = byte


def _count_by_one(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    if data:
        at = source.randrange(len(data))
        data[at] = (data[at] + source.choice((-1, 1))) % 256


def _truncate(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    del data[source.randrange(len(data) + 1) :]


def _insert(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    at = source.randrange(len(data) + 1)
    data[at:at] = source.randbytes(source.randint(1, 4))


def _delete(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    at = source.randrange(len(data) + 1)
    del data[at : at + source.randint(1, 4)]


def _write_run(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    run = source.choice(_TELLING_RUNS)
    at = source.randrange(len(data) + 1)
    # Over as many bytes, over one, or between two.
    data[at : at + source.choice((len(run), 1, 0))] = run


def _lengthen_varint(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    if data:
        at = source.randrange(len(data))
        data[at : at + 1] = bytes([data[at] | 0x80, 0])


def _repeat(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    at = source.randrange(len(data) + 1)
    data[at:at] = data[at : at + source.randint(1, 16)]


def _splice(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    other = source.choice(sound)
    data[source.randrange(len(data) + 1) :] = other[source.randrange(len(other) + 1) :]


def _put_tags(data: bytearray, source: random.Random, sound: list[bytes]) -> None:
    """One to three tagged fields in place of a zero, which may say that there are none."""
    zeroes = [at for at, byte in enumerate(data) if byte == 0]
    at = source.choice(zeroes[-8:]) if zeroes else len(data)
    count = source.randint(1, 3)
    section = bytearray([count])
    for _ in range(count):
        content = source.randbytes(source.randrange(6))
        size = len(content) + source.choice((0, 0, 0, 0, 1, -1))
        section += bytes([source.choice((0, 1, 2, 3, 100)), max(size, 0)]) + content
    data[at : at + 1] = section


_MUTATIONS: Final[tuple[Callable[[bytearray, random.Random, list[bytes]], None], ...]] = (
    _flip_bit,
    _flip_bit,
    _set_byte,
    _set_byte,
    _count_by_one,
    _truncate,
    _insert,
    _delete,
    _write_run,
    _write_run,
    _lengthen_varint,
    _repeat,
    _splice,
    _put_tags,
)


def judge(pair: Pair, mutated: Iterable[bytes], reference: Reference) -> Iterator[Case]:
    """Put each of `mutated` to Kafka's class and to ours; say how they agree."""
    asked: deque[bytes] = deque()

    def questions() -> Iterator[bytes]:
        for data in mutated:
            asked.append(data)
            yield question(Operation.REWRITE, pair.name, pair.version, data)

    for answer in reference.ask(questions()):
        yield _case(pair, asked.popleft(), answer)


def _case(pair: Pair, data: bytes, answer: Answer) -> Case:
    form = pair.form
    message = form.message
    try:
        read, end = message.decode_from(data, 0, form.version)
        written = read.encode(form.version)
    except DecodeError as error:
        if answer.outcome is Outcome.REFUSED:
            return Agreement.NEITHER
        return _deviation(form, data, answer.taken) or _disagreement(pair, data, str(error), answer)
    except Exception as error:  # noqa: BLE001 - a finding, and the bytes must be told with it
        return _disagreement(pair, data, f"raised {error!r}", answer)
    if (Outcome.DONE, written, end) != answer:
        return _disagreement(pair, data, f"reads {end} bytes, writes {written.hex()}", answer)
    if end == len(data):
        return Agreement.SAME
    try:
        message.decode(data, form.version)
    except DecodeError:
        return Agreement.MORE
    return _disagreement(pair, data, f"decode takes all, of which {end} are read", answer)


def _deviation(form: Form, data: bytes, taken: int) -> Deviation | None:
    """The first that is met in these bytes, if a lenient walk takes `taken` of them."""
    try:
        end, found = read_leniently(layout(union()[form.name], form.version), data)
    except Unreadable:
        return None
    return found[0] if found and end == taken else None


def _disagreement(pair: Pair, data: bytes, ours: str, answer: Answer) -> Disagreement:
    shown = answer.data.hex() if answer.accepted else answer.data.decode(errors="replace")
    theirs = f"{answer.outcome.name.lower()} after {answer.taken} bytes: {shown}"
    return Disagreement(pair, data, ours, theirs)
