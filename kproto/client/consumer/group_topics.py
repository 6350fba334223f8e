"""The topics of a group consumer: a subscription, or manually assigned partitions.

Plain functions on plain data.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ...wire.errors import ConfigurationError
from ..fetch.start_options import checked_topics
from ..groups.subscription import Subscription, TopicPattern
from ..metadata.cluster import TopicPartition

__all__ = ["subscription_or_partitions", "with_added_topics"]


def subscription_or_partitions(
    topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
) -> tuple[Subscription | None, list[TopicPartition]]:
    """Returns a subscription and no partitions, or None and the manually assigned partitions.

    Raises ConfigurationError for invalid topics, and for topics together with partitions.
    """
    if isinstance(topics, re.Pattern | TopicPattern):
        return Subscription.to(topics), []
    wanted = checked_topics(topics)
    names = [topic for topic in wanted if isinstance(topic, str)]
    tps = [topic for topic in wanted if not isinstance(topic, str)]
    if names and tps:
        raise ConfigurationError(
            f"{names[0]!r} is a topic and {tps[0]!r} a partition: a group consumer either "
            "subscribes to topics, or is assigned partitions"
        )
    return Subscription.to(names) if names else None, list(dict.fromkeys(tps))


def with_added_topics(subscription: Subscription, topics: frozenset[str]) -> Subscription:
    """Returns the subscription with `topics` added.

    A subscription with a compiled pattern is unchanged, because the pattern matches the topics.
    """
    if not topics or subscription.pattern is not None:
        return subscription
    return replace(subscription, topics=subscription.topics | topics)
