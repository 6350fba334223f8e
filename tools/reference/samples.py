"""Chooses the instances of a form to compare: built ones, then random ones until there are enough.

Knows nothing of Java.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from kproto.messages.base import Message
from kproto.testing.instances import Fill, instance, instances, random_instances

from .pairs import Form

__all__ = ["SAMPLES", "samples"]

#: How many instances of each form are compared, if it has that many.
SAMPLES: Final = 50

#: The most random instances to draw; few forms have fewer than 50 values in all.
_DRAWS: Final = 500


def samples(form: Form, count: int = SAMPLES, *, seed: int = 0) -> dict[bytes, Message]:
    """Returns instances of `form` by their encoding: `count` distinct ones, or all that were found.

    The first are built: defaults, zeroes, distinct values, bounds, nulls at every depth, lengths
    around 127 and around 16,383 bytes, unknown tags; the others are random.
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
