"""Generates the cases of a run: endless for each message version, the same for the same seed.

The cases of a message version alternate by kind: valid values, bounds, each mutation by name, a mix
of them, valid and invalid JSON.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any, Final

from ..messages.base import Message
from ..testing.instances import instances, random_instances
from .case import Case, MessageVersion, Operation
from .lenient_reader import walk_message
from .mutations import mutate, mutations

__all__ = ["KINDS", "generate_cases"]

#: The kinds of cases in their order, each with a description.
KINDS: Final[dict[str, str]] = {
    "boundary": "bounds, nulls, empty and long values, unknown tagged fields",
    "value": "valid values at random",
    "flip": "one bit flipped",
    "cut": "bytes cut off at the end",
    "grow": "bytes put in or behind",
    "length": "a length that is another",
    "count": "a count of elements that is another",
    "varint": "a varint longer than need be, or too long",
    "tags": "one more tagged field: unknown, twice, unordered or of a wrong size",
    "mix": "one to three changes of any kind, at any position",
    "json": "JSON with a field that is missing, unknown, null, of another type or out of range",
}

#: Most valid encodings to mutate, and their most bytes: a mutation costs as much as its encoding.
_SEEDS: Final = 12
_SEED_BYTES: Final = 2000


def generate_cases(
    message_version: MessageVersion, seed: int, kinds: tuple[str, ...] = tuple(KINDS)
) -> Iterator[Case]:
    """Yields cases of a message version without end, one of each kind after the other."""
    makers = [
        _MAKERS.get(kind, _mutated)(message_version, kind, f"{seed} {message_version} {kind}")
        for kind in kinds
    ]
    for maker in cycle(makers):
        yield next(maker)


def _value(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    # `random_instances` takes a number: derived from the text, it is the same in every run.
    number = random.Random(seed).getrandbits(32)  # noqa: S311 - values for tests, not secrets
    yield from _asked(
        random_instances(message_version.cls, message_version.version, seed=number),
        message_version,
        kind,
    )


def _boundary(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    yield from _asked(
        cycle(instances(message_version.cls, message_version.version)), message_version, kind
    )


def _asked(values: Iterator[Message], message_version: MessageVersion, kind: str) -> Iterator[Case]:
    """Yields each value in all operations, one after the other."""
    for value in values:
        data = value.encode(message_version.version)
        yield Case(Operation.REWRITE, message_version, data, kind)
        yield Case(Operation.DECODE, message_version, data, kind)
        yield Case(
            Operation.ENCODE, message_version, _text(value.to_json(message_version.version)), kind
        )


def _sound(message_version: MessageVersion) -> list[bytes]:
    """Returns valid encodings of `message_version` to mutate, the shortest first."""
    built: list[Message] = [*instances(message_version.cls, message_version.version)]
    built.extend(islice(random_instances(message_version.cls, message_version.version), _SEEDS))
    found = sorted(
        {made.encode(message_version.version) for made in built}, key=lambda it: (len(it), it)
    )
    return [data for data in found if len(data) <= _SEED_BYTES] or found[:1]


def _mutated(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    source = random.Random(seed)  # noqa: S311 - as above
    sound = _sound(message_version)
    length_fields = [walk_message(message_version.shape, data).length_fields for data in sound]
    anything = mutations(sound, source)
    while True:
        made = None
        if kind != "mix":
            index = source.randrange(len(sound))
            made = mutate(kind, sound[index], length_fields[index], source)
        # A message version without such a field gets a mutation of any kind instead.
        data = next(anything) if made is None else made
        operation = Operation.DECODE if source.random() < 0.25 else Operation.REWRITE
        yield Case(operation, message_version, data, "mix" if made is None else kind)


def _json(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    source = random.Random(seed)  # noqa: S311 - as above
    sound = [
        value.to_json(message_version.version)
        for value in instances(message_version.cls, message_version.version)[:4]
    ]
    while True:
        node = json.loads(json.dumps(source.choice(sound)))
        _spoil(node, source)
        yield Case(Operation.ENCODE, message_version, _text(node), kind)


_MAKERS: Final[dict[str, Callable[[MessageVersion, str, str], Iterator[Case]]]] = {
    "value": _value,
    "boundary": _boundary,
    "json": _json,
}

#: Replacements of a value; those of its own type test the bounds.
_OTHERS: Final[tuple[Any, ...]] = (
    *(None, True, 0, 1, -1, 128, -129, 32768, 2**31, 2**32, 2**63, 0.5, 1.0, "", "16", "x"),
    *("====", "AAA", "\U0001f600", [], {}, [None], [[]]),
)


def _spoil(node: dict[str, Any], source: random.Random) -> None:
    """Changes one thing in a JSON object, at any depth."""
    inside: Any = node
    while True:
        keys = list(inside) if isinstance(inside, dict) else list(range(len(inside)))
        if not keys:
            if isinstance(inside, dict):
                inside["unknownField"] = 1
            else:
                inside.append(source.choice(_OTHERS))
            return
        key = source.choice(keys)
        if isinstance(inside[key], dict | list) and source.random() < 0.8:
            inside = inside[key]
            continue
        break
    match source.randrange(6):
        case 0 if isinstance(inside, dict):
            inside["unknownField"] = inside[key]
        case 0 if isinstance(inside, list):
            inside.append(inside[key])
        case 1:
            del inside[key]
        case _:
            inside[key] = source.choice(_OTHERS)


def _text(node: object) -> str:
    return json.dumps(node, separators=(",", ":"))
