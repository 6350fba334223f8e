"""Resolves regular expressions of subscriptions to topics, and decides when to do so (KIP-848).

The rules are those of Kafka's GroupMetadataManager. All expressions of a group are resolved
together, at most every ten seconds, so that the assignment changes only once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache
from typing import Final, NamedTuple

from ...api_error import api_error
from .re2 import InvalidExpressionError, Re2Pattern

__all__ = ["ResolvedRegex", "check_expression", "needs_regex_refresh", "resolve_regexes"]

#: Minimum time between two refreshes in ms; Kafka has no setting for it.
_LEAST_INTERVAL_MS: Final = 10_000

#: Maximum number of parsed expressions that are cached.
_MOST_KEPT: Final = 256


class ResolvedRegex(NamedTuple):
    """Holds the topics that a regular expression matched at `timestamp_ms`.

    `version` is the number of topics that had been created in the cluster by that time.
    """

    topics: frozenset[str]
    version: int
    timestamp_ms: int


@lru_cache(_MOST_KEPT)
def _expression(text: str) -> Re2Pattern:
    return Re2Pattern(text)


def check_expression(text: str) -> None:
    """Raises INVALID_REGULAR_EXPRESSION if RE2 does not support the expression `text`."""
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
    """Returns, for each expression, the topics whose complete names match.

    `names` are the topics of the cluster. Ignores topics for which `may_describe` returns False.
    Each result gets `version` and `timestamp_ms`.
    """
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
    """Returns True if the regular expressions of a group must be resolved at `timestamp_ms`.

    Returns False if the group has no expression, or if the last resolution was at most ten seconds
    ago. Otherwise returns True if an expression is new or was removed, if a topic was created, or
    if `interval_ms` (group.consumer.regex.refresh.interval.ms) has passed.

    `expressions` are the expressions of all members. `known` has the resolved expressions. `is_new`
    is True if a heartbeat has a new expression. `version` is the number of topics created so far.
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
