"""Which protocol a generation goes by: one that all members support, the most wanted of those."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from ..coordinators import java_hash
from .java_order import bucket, grown_size

__all__ = ["elected_protocol"]


def elected_protocol(members: Iterable[Sequence[str]]) -> str:
    """Each member votes for the first of its protocols that all support.

    Of several with as many votes it is the one that comes first in a Java HashMap, as in Kafka, so
    that the same group goes by the same protocol there. Raises ValueError where there is none.
    """
    wanted = list(members)
    common = set.intersection(*(set(names) for names in wanted)) if wanted else set()
    votes = Counter(next(name for name in names if name in common) for names in wanted if common)
    buckets = grown_size(len(votes))
    most = max(votes.values())
    tied = [name for name, count in votes.items() if count == most]
    return min(tied, key=lambda name: bucket(java_hash(name), buckets))
