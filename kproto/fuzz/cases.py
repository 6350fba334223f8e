"""Makes the cases of a run: endless for each form, the same for the same seed.

A form is a message and a version. Its cases take turns by kind: sound values, bounds, each mutation
by name, the mix of them, JSON that is sound and JSON that is not.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any, Final

from ..messages.base import Message
from ..testing.instances import instances, random_instances
from .case import Case, Form, Operation
from .lenient import walked
from .mutations import mutate, mutations

__all__ = ["KINDS", "cases_of"]

#: The kinds of cases in the order of their turns, and what each is in words.
KINDS: Final[dict[str, str]] = {
    "boundary": "bounds, nulls, empty and long values, unknown tagged fields",
    "value": "sound values at random",
    "flip": "one bit flipped",
    "cut": "bytes cut off at the end",
    "grow": "bytes put in or behind",
    "length": "a length that is another",
    "count": "a count of elements that is another",
    "varint": "a varint longer than need be, or too long",
    "tags": "one more tagged field: unknown, twice, unordered or of a wrong size",
    "mix": "one to three changes of any sort, wherever they fall",
    "json": "JSON with a field that is missing, unknown, null, of another type or out of range",
}

#: Sound encodings that mutations start from, at most; those of more bytes are left out, since
#: each mutation costs as much as they.
_SEEDS: Final = 12
_SEED_BYTES: Final = 2000


def cases_of(form: Form, seed: int, kinds: tuple[str, ...] = tuple(KINDS)) -> Iterator[Case]:
    """Cases of `form` without end, one of each kind in turn."""
    makers = [_MAKERS.get(kind, _mutated)(form, kind, f"{seed} {form} {kind}") for kind in kinds]
    for maker in cycle(makers):
        yield next(maker)


def _value(form: Form, kind: str, seed: str) -> Iterator[Case]:
    # `random_instances` takes a number: one of the text's own, the same in every run.
    number = random.Random(seed).getrandbits(32)  # noqa: S311 - values for tests, not secrets
    yield from _asked(random_instances(form.cls, form.version, seed=number), form, kind)


def _boundary(form: Form, kind: str, seed: str) -> Iterator[Case]:
    yield from _asked(cycle(instances(form.cls, form.version)), form, kind)


def _asked(values: Iterator[Message], form: Form, kind: str) -> Iterator[Case]:
    """Each value in all operations, one after the other."""
    for value in values:
        data = value.encode(form.version)
        yield Case(Operation.REWRITE, form, data, kind)
        yield Case(Operation.DECODE, form, data, kind)
        yield Case(Operation.ENCODE, form, _text(value.to_json(form.version)), kind)


def _sound(form: Form) -> list[bytes]:
    """Sound encodings of `form` to begin with, the shortest first."""
    built: list[Message] = [*instances(form.cls, form.version)]
    built.extend(islice(random_instances(form.cls, form.version), _SEEDS))
    found = sorted({made.encode(form.version) for made in built}, key=lambda it: (len(it), it))
    return [data for data in found if len(data) <= _SEED_BYTES] or found[:1]


def _mutated(form: Form, kind: str, seed: str) -> Iterator[Case]:
    source = random.Random(seed)  # noqa: S311 - as above
    sound = _sound(form)
    places = [walked(form.shape, data).places for data in sound]
    anything = mutations(sound, source)
    while True:
        made = None
        if kind != "mix":
            index = source.randrange(len(sound))
            made = mutate(kind, sound[index], places[index], source)
        # A form without such a place has a mutation of any sort instead.
        data = next(anything) if made is None else made
        operation = Operation.DECODE if source.random() < 0.25 else Operation.REWRITE
        yield Case(operation, form, data, "mix" if made is None else kind)


def _json(form: Form, kind: str, seed: str) -> Iterator[Case]:
    source = random.Random(seed)  # noqa: S311 - as above
    sound = [value.to_json(form.version) for value in instances(form.cls, form.version)[:4]]
    while True:
        node = json.loads(json.dumps(source.choice(sound)))
        _spoil(node, source)
        yield Case(Operation.ENCODE, form, _text(node), kind)


_MAKERS: Final[dict[str, Callable[[Form, str, str], Iterator[Case]]]] = {
    "value": _value,
    "boundary": _boundary,
    "json": _json,
}

#: What is put in the place of a value; those of its own kind stand there for the bounds.
_OTHERS: Final[tuple[Any, ...]] = (
    *(None, True, 0, 1, -1, 128, -129, 32768, 2**31, 2**32, 2**63, 0.5, 1.0, "", "16", "x"),
    *("====", "AAA", "\U0001f600", [], {}, [None], [[]]),
)


def _spoil(node: dict[str, Any], source: random.Random) -> None:
    """Change one thing in a JSON object, at any depth."""
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
