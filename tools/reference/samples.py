"""Chooses the instances of a form to compare: constructed ones, then random ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from kproto.messages.base import Message
from kproto.testing.instances import Fill, instance, instances, random_instances

from .pairs import Form

__all__ = ["SAMPLES", "samples"]

#: The number of instances of each form to compare, if it has that many.
SAMPLES: Final = 50

#: The most random instances to create; few forms have fewer than 50 different values.
_DRAWS: Final = 500


def samples(form: Form, count: int = SAMPLES, *, seed: int = 0) -> dict[bytes, Message]:
    """Returns up to `count` instances of `form`, keyed by their encodings, which all differ.

    The first are constructed: defaults, zeroes, distinct values, bounds, nulls at every depth,
    lengths around 127 and 16,383 bytes, unknown tagged fields. The others are random.
    """
    found: dict[bytes, Message] = {}
    for built in chain(_built(form), _drawn(form, seed)):
        found.setdefault(built.encode(form.version), built)
        if len(found) == count:
            break
    return found


def _built(form: Form) -> Iterator[Message]:
    yield from instances(form.message, form.version)
    yield instance(form.message, form.version, Fill.LONG)


def _drawn(form: Form, seed: int) -> Iterator[Message]:
    return islice(random_instances(form.message, form.version, seed=seed), _DRAWS)
