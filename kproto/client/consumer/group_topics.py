"""`GroupTopics`: the topics of a group consumer, as a subscription or as assigned partitions."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace

from ...wire.errors import ConfigurationError
from ..commits.membership import GroupMembership
from ..fetch.start_options import checked_topics
from ..groups.subscription import Subscription, TopicPattern
from ..metadata.cluster import TopicPartition
from ..metadata.cluster_view import ClusterView
from ..processing.settings import RunSettings
from .record_processing import check_run_topics

__all__ = ["GroupTopics", "checked_subscription", "subscription_or_partitions", "with_added_topics"]


class GroupTopics:
    """Holds the subscription or the manually assigned partitions, and the retry topics of `run`.

    `subscription` is None for manually assigned partitions, and after `unsubscribe`.
    """

    def __init__(
        self,
        view: ClusterView,
        topics: str | Iterable[str] | re.Pattern[str] | TopicPattern | Iterable[TopicPartition],
    ) -> None:
        self._view = view
        self.subscription, self.manual_assignment = subscription_or_partitions(topics)
        self._retry_topics: frozenset[str] = frozenset()
        self._may_create = False

    def allow_creation(self) -> None:
        """Lets brokers create the named topics, also those of later subscriptions."""
        self._may_create = True
        self._allow(self.subscription, self.manual_assignment)

    def _allow(self, subscription: Subscription | None, tps: Iterable[TopicPartition]) -> None:
        if self._may_create:
            names = frozenset() if subscription is None else subscription.topics
            self._view.topic_creation.allow([*names, *(topic for topic, _ in tps)])

    def check_run(self, settings: RunSettings) -> None:
        """Raises ConfigurationError for topics of `run` that do not fit the consumer."""
        check_run_topics(settings, self.subscription, self.manual_assignment)

    def subscribe(self, subscription: Subscription, member: GroupMembership[Subscription]) -> None:
        """Replaces the subscription of the member; keeps the retry topics."""
        self._allow(subscription, ())
        member.subscribe(with_added_topics(subscription, self._retry_topics))
        self.subscription = subscription

    def unsubscribe(self, member: GroupMembership[Subscription]) -> None:
        """Ends the subscription of the member."""
        member.unsubscribe()
        self.subscription = None

    def subscribe_retry_topics(
        self, topics: frozenset[str], member: GroupMembership[Subscription] | None
    ) -> None:
        """Adds the retry topics `topics` to the subscription, and removes earlier retry topics."""
        if topics != self._retry_topics and member is not None and self.subscription is not None:
            member.subscribe(with_added_topics(self.subscription, topics))
        self._retry_topics = topics


def checked_subscription(
    topics: str | Iterable[str] | re.Pattern[str] | TopicPattern, run: RunSettings | None
) -> Subscription:
    """Returns the subscription to `topics`; `run` has the settings of a `run` in progress.

    Raises ConfigurationError for invalid topics, for partitions, and for topics that do not fit
    `run`.
    """
    subscription, _ = subscription_or_partitions(topics)
    if subscription is None:
        raise ConfigurationError("subscribe needs topics; pass partitions to Client.consumer")
    if run is not None:
        check_run_topics(run, subscription)
    return subscription


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
