"""Finds the smallest example of a fault, from a case that causes it.

First, values are removed from the message, if the case still causes the fault without them. Then
hypothesis draws messages of the same version, with a change of the same kind, and shrinks them.
Finally, bytes are removed from the shorter result of these two steps. This last step is left out if
the shorter result is JSON. The result is the same for the same seed. The caller limits the
attempts: its function `reproduces` returns False after the last attempt.
"""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable, Iterator
from copy import copy
from typing import Any, Final, TypeVar, cast

from ..messages.base import Struct
from ..wire.errors import ConfigurationError, DecodeError, EncodeError
from ..wire.tags import RawTaggedField
from .case import Case, MessageVersion, Operation
from .lenient_reader import LengthUnit, length_fields_in, walk_message
from .mutations import MUTATIONS, mutate, number_bytes

__all__ = ["check_hypothesis", "fewer_bytes", "fewer_values", "minimize", "smallest_case"]

T = TypeVar("T")

#: Returns True if a case causes the fault of the finding.
Reproduces = Callable[[Case], bool]

#: Maximum number of parts into which an array is divided, to remove each of them, and of elements
#: that are made smaller. An array that is still larger becomes shorter first.
_MOST_PARTS: Final = 64

#: The same for the bytes of a message. Each variant copies all bytes.
_MOST_BYTES: Final = 2048

#: Maximum number of messages that hypothesis draws to find a message with the fault. To shrink this
#: message, hypothesis draws more messages.
_DRAWN: Final = 60


def check_hypothesis() -> None:
    """Raises ConfigurationError if hypothesis is not installed."""
    try:
        import hypothesis  # noqa: F401 - only tests whether it is installed
    except ImportError:
        raise ConfigurationError(
            "finding the smallest cases needs hypothesis, which is part of the extra "
            "kproto[testing]: install it, or add --no-shrink"
        ) from None


def smallest_case(case: Case, reproduces: Reproduces, *, seed: int) -> Case:
    """Returns the smallest case found for which `reproduces` returns True; this may be `case`."""
    steps = _less_json if isinstance(case.content, str) else _case_of_fewer_values
    found = minimize(case, reproduces, steps, _rank)
    drawn = _drawn(found, reproduces, seed)
    if drawn is not None and _rank(drawn) < _rank(found):
        found = drawn
    if isinstance(case.content, str):
        return found
    return minimize(found, reproduces, _less_bytes, _rank)


def _rank(case: Case) -> tuple[int, bytes]:
    content = case.content
    data = content if isinstance(content, bytes) else content.encode()
    return len(data), data


def minimize(
    case: T,
    reproduces: Callable[[T], bool],
    steps: Callable[[T], Iterator[T]],
    rank: Callable[[T], Any],
) -> T:
    """Replaces `case` by the first case of `steps(case)` that has a lower rank and reproduces.

    A case reproduces if `reproduces` returns True for it. Repeats the replacement until
    `steps(case)` has no such case; returns the last `case`.
    """
    shrunk = True
    while shrunk:
        shrunk = False
        for smaller in steps(case):
            if rank(smaller) < rank(case) and reproduces(smaller):
                case = smaller
                shrunk = True
                break
    return case


def _case_of_fewer_values(case: Case) -> Iterator[Case]:
    return map(case.with_content, fewer_values(case.message_version, cast("bytes", case.content)))


def _case_of_fewer_bytes(case: Case) -> Iterator[Case]:
    return map(case.with_content, fewer_bytes(cast("bytes", case.content)))


def fewer_values(message_version: MessageVersion, data: bytes) -> Iterator[bytes]:
    """Yields the message in `data`, then copies of it with one value removed or changed, encoded.

    First yields all these encodings alone, then yields each encoding with the bytes that follow the
    message in `data`. Yields nothing if kproto cannot read the message.
    """
    try:
        read, end = message_version.cls.decode_from(data, 0, message_version.version)
    except DecodeError:
        return
    for ending in (b"", data[end:]):
        for message in (read, *_less(read)):
            try:
                yield message.encode(message_version.version) + ending
            except EncodeError:  # the removed value is required
                continue


def _less_bytes(case: Case) -> Iterator[Case]:
    yield from _shorter_values(case)
    yield from _case_of_fewer_bytes(case)


def _shorter_values(case: Case) -> Iterator[Case]:
    """Yields cases in which one string or bytes field is emptied or halved, with a correct length.

    If kproto cannot read the message, yields cases only for the fields before the first unreadable
    byte. Unlike `_case_of_fewer_bytes`, corrects the length.
    """
    data = cast("bytes", case.content)
    lengths = [
        it
        for it in length_fields_in(case.message_version.shape, data)
        if it.role is LengthUnit.LENGTH
    ]
    for length_field in lengths:
        for size in (0, length_field.value // 2):
            if 0 <= size < length_field.value and length_field.stop <= len(data):
                content = data[length_field.end : length_field.end + size]
                head = data[: length_field.begin] + number_bytes(length_field, size)
                yield case.with_content(head + content + data[length_field.stop :])


def fewer_bytes(data: bytes) -> Iterator[bytes]:
    """Yields simpler variants of `data`.

    The first variants lack a range of bytes, long ranges first. All later variants have one byte
    set to 0.
    """
    size = len(data)
    while size and size * _MOST_BYTES >= len(data):
        for first in range(0, len(data), size):
            yield data[:first] + data[first + size :]
        size //= 2
    for index, byte in enumerate(data[:_MOST_BYTES]):
        if byte:
            yield data[:index] + b"\0" + data[index + 1 :]


def _less_json(case: Case) -> Iterator[Case]:
    for node in _less(json.loads(case.content)):
        yield case.with_content(json.dumps(node, separators=(",", ":")))


def _less(node: Any) -> Iterator[Any]:
    """Yields copies of a message or JSON value, each with one part removed or simplified.

    Larger removals come first.
    """
    match node:
        case dict():
            for key in node:
                yield {name: element for name, element in node.items() if name != key}
            for key, element in node.items():
                for smaller in _less(element):
                    yield {**node, key: smaller}
        case list():
            size = len(node)
            while size:
                for first in range(0, len(node), size):
                    yield [*node[:first], *node[first + size :]]
                size //= 2
                if size * _MOST_PARTS < len(node):
                    break
            for index, element in enumerate(node[:_MOST_PARTS]):
                for smaller in _less(element):
                    yield [*node[:index], smaller, *node[index + 1 :]]
        case Struct():
            for name in (*node._names(), "unknown_tagged_fields"):
                for smaller in _less(getattr(node, name)):
                    made = copy(node)
                    setattr(made, name, smaller)
                    yield made
        case RawTaggedField():
            for smaller in _less(node.data):
                yield RawTaggedField(node.tag, smaller)
        case bytes() if node:
            yield b""
            yield node[: len(node) // 2]
            yield node[:-1]
        case str() if node:
            yield ""
            for size in (len(node) // 2, 1):
                yield node[size:]
                yield node[:-size]
        case bool():
            if node:
                yield False
        case int() if node not in (0, 1):
            yield 0
            yield 1


def _drawn(case: Case, reproduces: Reproduces, seed: int) -> Case | None:
    """Returns a random case for which `reproduces` returns True, shrunk by hypothesis.

    Returns None if hypothesis finds no such case.
    """
    from hypothesis import HealthCheck, Phase, find, settings
    from hypothesis import strategies as st
    from hypothesis.errors import HypothesisException, HypothesisWarning

    from ..testing.strategies import messages

    message_version = case.message_version
    version = message_version.version

    def made(drawn: tuple[Any, int]) -> Case:
        message, number = drawn
        if case.operation is Operation.ENCODE:
            node = message.to_json(version)
            return case.with_content(json.dumps(node, separators=(",", ":")))
        data = message.encode(version)
        if case.kind in MUTATIONS:
            source = random.Random(number)  # noqa: S311 - values for tests, not secrets
            length_fields = walk_message(message_version.shape, data).length_fields
            data = mutate(case.kind, data, length_fields, source) or data
        return case.with_content(data)

    limits = settings(
        max_examples=_DRAWN,
        database=None,
        deadline=None,
        phases=(Phase.generate, Phase.shrink),
        # Each example sends a case to the command and the judge, which may be slow.
        suppress_health_check=(
            HealthCheck.too_slow,
            HealthCheck.data_too_large,
            HealthCheck.large_base_example,
            HealthCheck.filter_too_much,
        ),
    )
    changes = st.integers(0, 999) if case.kind in MUTATIONS else st.just(0)
    cases = st.tuples(messages(message_version.cls, version), changes).map(made)
    try:
        rng = random.Random(seed)  # noqa: S311 - values for tests, not secrets
        with warnings.catch_warnings():
            # They tell authors of tests about large examples, which are usual here.
            warnings.simplefilter("ignore", HypothesisWarning)
            return find(cases, reproduces, settings=limits, random=rng)
    except HypothesisException:  # hypothesis found no such case, or the results were flaky
        return None
