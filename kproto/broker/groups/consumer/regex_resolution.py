"""Resolves regular expressions of subscriptions to topics, and decides when to refresh (KIP-848).

The rules are those of Kafka's GroupMetadataManager: all expressions of a group are resolved
together, so that assignments change once, and at most every ten seconds. Knows no group and no
clock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from ...api_error import api_error
from .re2 import Expression, InvalidExpressionError

__all__ = ["ResolvedRegex", "check_expression", "needs_regex_refresh", "resolve_regexes"]

#: Minimum time between two refreshes in ms; Kafka has no setting for it.
_LEAST_INTERVAL_MS: Final = 10_000

#: How many parsed expressions are cached.
_MOST_KEPT: Final = 256


class ResolvedRegex(NamedTuple):
    """The topics that a regular expression matched.

    `version` counts the topics created in the cluster until then, `timestamp_ms` is the time.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@lru_cache(_MOST_KEPT)
def _expression(text: str) -> Expression:
    return Expression(text)


def check_expression(text: str) -> None:
    """Raises INVALID_REGULAR_EXPRESSION for what RE2 does not support, such as backreferences."""
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
    """Returns the topics whose whole names match, among those that the member may describe."""
    visible = [name for name in names if may_describe(name)]
    return {
        text: ResolvedRegex(
            frozenset(filter(_expression(text).matches, visible)), version, timestamp_ms
        )
        for text in expressions
    }


def needs_regex_refresh(
    expressions: Iterable[str],
    known: Mapping[str, ResolvedRegex],
    *,
    is_new: bool,
    version: int,
    timestamp_ms: int,
    interval_ms: int,
) -> bool:
    """Returns whether the expressions must be resolved now.

    `expressions` are the expressions of all members, `is_new` says that a heartbeat has a new one,
    `version` counts the topics created so far.
    """
    expressions = set(expressions)
    if not expressions and not is_new:
        return False
    last_ms = max((it.timestamp_ms for it in known.values()), default=None)
    if last_ms is not None and timestamp_ms <= last_ms + _LEAST_INTERVAL_MS:
        return False
    seen = min((it.version for it in known.values()), default=0)
    return (
        is_new
        or len(expressions) != len(known)
        or seen < version
        or (last_ms is not None and timestamp_ms > last_ms + interval_ms)
    )
