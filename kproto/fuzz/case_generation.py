"""Generates an endless sequence of cases for a message version.

The same seed gives the same sequence. The kinds of cases (`KINDS`) alternate: valid values, valid
encodings with a mutation, and corrupted JSON.
"""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from itertools import cycle, islice
from typing import Any, Final

from ..messages.base import Message
from ..testing.instances import instances, random_instances
from ..testing.sized_instances import sized_fields, sized_instance
from .case import Case, MessageVersion, Operation
from .explicit_defaults import absent_tags, with_explicit_defaults
from .lenient_reader import walk_message
from .mutations import mutate, mutations

__all__ = ["KINDS", "generate_cases"]

#: The kinds of cases, in the order in which they alternate, with a description each.
KINDS: Final[dict[str, str]] = {
    "boundary": "bounds, nulls, empty and long values, unknown tagged fields",
    "value": "valid values at random",
    "size": "a length or count at the border of an encoding, up to 32767",
    "default": "a tagged field whose bytes are there although it has its default",
    "flip": "one bit flipped",
    "cut": "bytes cut off at the end",
    "grow": "bytes inserted or appended",
    "length": "a wrong length",
    "count": "a wrong count of elements",
    "varint": "a varint longer than needed, or longer than allowed",
    "tags": "one more tagged field: unknown, twice, unordered or of a wrong size",
    "mix": "one to three changes of any kind, at any position",
    "json": "JSON with a field that is missing, unknown, null, of another type or out of range",
}

#: How many encodings of random messages are added to the encodings to mutate.
_SEEDS: Final = 12

#: Maximum size of an encoding to mutate, in bytes, because each mutation copies all bytes.
_SEED_BYTES: Final = 2000


def generate_cases(
    message_version: MessageVersion, seed: int, kinds: tuple[str, ...] = tuple(KINDS)
) -> Iterator[Case]:
    """Yields an endless sequence of cases of a message version, one of each of `kinds` in turn."""
    makers = [
        _MAKERS.get(kind, _mutated)(message_version, kind, f"{seed} {message_version} {kind}")
        for kind in kinds
    ]
    for maker in cycle(makers):
        yield next(maker)


def _value(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    # `random_instances` needs an int as seed. `Random` derives the same int from equal strings.
    number = random.Random(seed).getrandbits(32)  # noqa: S311 - values for tests, not secrets
    yield from _in_all_operations(
        random_instances(message_version.cls, message_version.version, seed=number),
        message_version,
        kind,
    )


def _boundary(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    yield from _in_all_operations(
        cycle(instances(message_version.cls, message_version.version)), message_version, kind
    )


def _size(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    """Yields a case for each length of each field that has one, in random order and operations."""
    source = random.Random(seed)  # noqa: S311 - as above
    cls, version = message_version.cls, message_version.version
    choices = [(field.path, size) for field in sized_fields(cls, version) for size in field.sizes]
    if not choices:
        yield from _mutated(message_version, "mix", seed)
    while True:
        source.shuffle(choices)
        for path, size in choices:
            value = sized_instance(cls, version, path, size)
            operation = source.choice(tuple(Operation))
            content: bytes | str = value.encode(version)
            if operation is Operation.ENCODE:
                content = _text(value.to_json(version))
            yield Case(operation, message_version, content, kind)


def _explicit_default(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    source = random.Random(seed)  # noqa: S311 - as above
    usable = []
    for data in _valid_encodings(message_version):
        sections = walk_message(message_version.shape, data).tag_sections
        if any(map(absent_tags, sections)):
            usable.append((data, sections))
    if not usable:
        yield from _mutated(message_version, "mix", seed)
    while True:
        data, sections = source.choice(usable)
        found = with_explicit_defaults(data, sections, source)
        assert found is not None
        operation = Operation.DECODE if source.random() < 0.25 else Operation.REWRITE
        yield Case(operation, message_version, found, kind)


def _in_all_operations(
    values: Iterator[Message], message_version: MessageVersion, kind: str
) -> Iterator[Case]:
    """Yields three cases for each message in `values`: REWRITE, DECODE and ENCODE."""
    for value in values:
        data = value.encode(message_version.version)
        yield Case(Operation.REWRITE, message_version, data, kind)
        yield Case(Operation.DECODE, message_version, data, kind)
        yield Case(
            Operation.ENCODE, message_version, _text(value.to_json(message_version.version)), kind
        )


def _valid_encodings(message_version: MessageVersion) -> list[bytes]:
    """Returns the valid encodings of `message_version` to mutate, the shortest first.

    Leaves out encodings of more than `_SEED_BYTES`. If all encodings are longer, returns only the
    shortest.
    """
    built: list[Message] = [*instances(message_version.cls, message_version.version)]
    built.extend(islice(random_instances(message_version.cls, message_version.version), _SEEDS))
    found = sorted(
        {mutated.encode(message_version.version) for mutated in built}, key=lambda it: (len(it), it)
    )
    return [data for data in found if len(data) <= _SEED_BYTES] or found[:1]


def _mutated(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    source = random.Random(seed)  # noqa: S311 - as above
    valid = _valid_encodings(message_version)
    length_fields = [walk_message(message_version.shape, data).length_fields for data in valid]
    anything = mutations(valid, source)
    while True:
        mutated = None
        if kind != "mix":
            index = source.randrange(len(valid))
            mutated = mutate(kind, valid[index], length_fields[index], source)
        # If no field of the encoding allows the mutation, a random mutation is used instead.
        data = next(anything) if mutated is None else mutated
        operation = Operation.DECODE if source.random() < 0.25 else Operation.REWRITE
        yield Case(operation, message_version, data, "mix" if mutated is None else kind)


def _json(message_version: MessageVersion, kind: str, seed: str) -> Iterator[Case]:
    source = random.Random(seed)  # noqa: S311 - as above
    valid = [
        value.to_json(message_version.version)
        for value in instances(message_version.cls, message_version.version)[:4]
    ]
    while True:
        node = json.loads(json.dumps(source.choice(valid)))
        _corrupt(node, source)
        yield Case(Operation.ENCODE, message_version, _text(node), kind)


_MAKERS: Final[dict[str, Callable[[MessageVersion, str, str], Iterator[Case]]]] = {
    "value": _value,
    "boundary": _boundary,
    "size": _size,
    "default": _explicit_default,
    "json": _json,
}

#: Replacements of a JSON value: values of a wrong type, and values out of range.
_REPLACEMENTS: Final[tuple[Any, ...]] = (
    *(None, True, 0, 1, -1, 128, -129, 32768, 2**31, 2**32, 2**63, 0.5, 1.0, "", "16", "x"),
    *("====", "AAA", "\U0001f600", [], {}, [None], [[]]),
)


def _corrupt(node: dict[str, Any], source: random.Random) -> None:
    """Removes, adds, duplicates or replaces a random value in a JSON object, at a random depth."""
    container: Any = node
    while True:
        keys = list(container) if isinstance(container, dict) else list(range(len(container)))
        if not keys:
            if isinstance(container, dict):
                container["unknownField"] = 1
            else:
                container.append(source.choice(_REPLACEMENTS))
            return
        key = source.choice(keys)
        if isinstance(container[key], dict | list) and source.random() < 0.8:
            container = container[key]
            continue
        break
    match source.randrange(6):
        case 0 if isinstance(container, dict):
            container["unknownField"] = container[key]
        case 0 if isinstance(container, list):
            container.append(container[key])
        case 1:
            del container[key]
        case _:
            container[key] = source.choice(_REPLACEMENTS)


def _text(node: object) -> str:
    return json.dumps(node, separators=(",", ":"))
