"""Which topics an expression means, and when that is to be looked up again (KIP-848).

Owns the rules of refreshing, those of Kafka's GroupMetadataManager: all expressions of a group are
looked up together, so that they change who has what only once, and not more often than each ten
seconds. Knows no group and no clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from ...api_error import api_error
from .re2 import Expression, InvalidExpressionError

__all__ = ["ResolvedRegex", "check_expression", "needs_regex_refresh", "resolve_regexes"]

#: The least time between two refreshes, in ms, as in Kafka, where it is no setting.
_LEAST_INTERVAL_MS: Final = 10_000

#: How many expressions are kept as they were read; a test has few.
_MOST_KEPT: Final = 256


class ResolvedRegex(NamedTuple):
    """The topics that an expression matched.

    `version` is that of the cluster's topics then, `timestamp_ms` when that was.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@lru_cache(_MOST_KEPT)
def _expression(text: str) -> Expression:
    return Expression(text)


def check_expression(text: str) -> None:
    """Raises INVALID_REGULAR_EXPRESSION for what RE2 does not take, such as backreferences."""
    try:
        _expression(text)
    except InvalidExpressionError as error:
        raise api_error(
            "INVALID_REGULAR_EXPRESSION",
            f"SubscribedTopicRegex `{text}` is not a valid regular expression: {error}.",
        ) from None


def resolve_regexes(
    expressions: Iterable[str],
    names: Iterable[str],
    may_describe: Callable[[str], bool],
    version: int,
    timestamp_ms: int,
) -> dict[str, ResolvedRegex]:
    """What each expression matches: the whole name of a topic that the member may describe."""
    visible = [name for name in names if may_describe(name)]
    return {
        text: ResolvedRegex(
            frozenset(filter(_expression(text).matches, visible)), version, timestamp_ms
        )
        for text in expressions
    }


def needs_regex_refresh(
    wanted: Iterable[str],
    known: Mapping[str, ResolvedRegex],
    *,
    is_new: bool,
    version: int,
    timestamp_ms: int,
    interval_ms: int,
) -> bool:
    """Whether expressions are to be looked up now.

    `wanted` are those of all members, `is_new` tells that one is of a member's first heartbeat with
    it, `version` counts the topics that were made.
    """
    wanted = set(wanted)
    if not wanted and not is_new:
        return False
    last_ms = max((it.timestamp_ms for it in known.values()), default=None)
    if last_ms is not None and timestamp_ms <= last_ms + _LEAST_INTERVAL_MS:
        return False
    seen = min((it.version for it in known.values()), default=0)
    return (
        is_new
        or len(wanted) != len(known)
        or seen < version
        or (last_ms is not None and timestamp_ms > last_ms + interval_ms)
    )
