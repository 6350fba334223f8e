"""Chooses the instances of a message and version to compare: constructed, then random ones."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice
from typing import Final

from kproto.messages.base import Message
from kproto.testing.instances import Fill, instance, instances, random_instances

from .pairs import KprotoMessageVersion

__all__ = ["SAMPLES", "samples"]

#: The number of different instances of a message version to compare. A few message versions have
#: fewer.
SAMPLES: Final = 50

#: The maximum number of random instances to create; a few message versions have fewer than 50
#: values.
_DRAWS: Final = 500


def samples(
    form: KprotoMessageVersion, count: int = SAMPLES, *, seed: int = 0
) -> dict[bytes, Message]:
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


def _built(form: KprotoMessageVersion) -> Iterator[Message]:
    yield from instances(form.message, form.version)
    yield instance(form.message, form.version, Fill.LONG)


def _drawn(form: KprotoMessageVersion, seed: int) -> Iterator[Message]:
    return islice(random_instances(form.message, form.version, seed=seed), _DRAWS)
