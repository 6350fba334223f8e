"""Defines the subscription of a member: topics by name, or a pattern. Does no I/O.

The client matches a compiled pattern against whole topic names, except those of Kafka's internal
topics, as Java's consumer does. The broker matches a `TopicPattern`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ...wire.errors import ConfigurationError
from ..metadata.cluster import TopicInfo

__all__ = ["Subscription", "TopicPattern"]


@dataclass(frozen=True, slots=True)
class TopicPattern:
    """A pattern that the broker matches against whole topic names; `text` is RE2 (KIP-848).

    A `TopicPattern` requires a group of the consumer protocol, and Kafka 4.0. In all other groups
    use a pattern of `re.compile`, which the client matches. The broker omits topics that the
    principal may not DESCRIBE. Raises ConfigurationError if `text` is empty or no str; the broker
    refuses invalid RE2.
    """

    text: str

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text:
            raise ConfigurationError(
                f"the text of a TopicPattern is {self.text!r:.80}; it must be a str, not empty"
            )

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True, slots=True)
class Subscription:
    """Topics by name, by a `pattern` that the client matches, or by a `broker_pattern`.

    Use `Subscription.to` to create one. A subscription may have both `topics` and a
    `broker_pattern` (KIP-848).
    """

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    broker_pattern: TopicPattern | None = None

    @classmethod
    def to(cls, wanted: str | Iterable[str] | re.Pattern[str] | TopicPattern) -> Subscription:
        """Returns a subscription to one or several topics, or to a pattern.

        Raises ConfigurationError for other objects, for an empty name, and if there is no topic.
        """
        if isinstance(wanted, TopicPattern):
            return cls(broker_pattern=wanted)
        if isinstance(wanted, re.Pattern):
            if not isinstance(wanted.pattern, str):
                raise ConfigurationError(f"{wanted!r} is a pattern of bytes; it must be of str")
            return cls(pattern=wanted)
        if not isinstance(wanted, Iterable):
            raise ConfigurationError(f"{wanted!r} is neither topics nor a compiled pattern")
        topics = frozenset([wanted] if isinstance(wanted, str) else wanted)
        for topic in topics:
            if not isinstance(topic, str) or not topic:
                raise ConfigurationError(f"{topic!r} is no name of a topic")
        if not topics:
            raise ConfigurationError("a subscription names no topic; `unsubscribe` ends one")
        return cls(topics)

    def includes(self, topic: str) -> bool:
        """Returns True if a topic is subscribed to. Does not check if the topic is internal.

        With a `broker_pattern` returns True for every topic: the broker assigns only topics that
        match.
        """
        if self.broker_pattern is not None:
            return True
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        return topic in self.topics

    def matches_locally(self, topic: str) -> bool:
        """Returns True if a topic is subscribed to; matches a `broker_pattern` by Python's `re`.

        Python interprets most patterns as RE2 does; a pattern that `re` refuses matches no topic.
        """
        if self.broker_pattern is None or topic in self.topics:
            return self.includes(topic)
        try:
            return re.fullmatch(self.broker_pattern.text, topic) is not None
        except re.error:
            return False

    def among(self, topics: Iterable[TopicInfo]) -> frozenset[str]:
        """Returns the names of the topics that the member subscribes to when it joins.

        With a `pattern`, returns the names of the `topics` that match the pattern. Internal topics
        and topics with an error do not match.
        """
        if self.pattern is None:
            return self.topics
        return frozenset(
            info.name
            for info in topics
            if not info.internal and not info.error_code and self.includes(info.name)
        )

    def __str__(self) -> str:
        if self.broker_pattern is not None:
            return f"pattern {self.broker_pattern.text!r} of the broker"
        if self.pattern is not None:
            return f"pattern {self.pattern.pattern!r}"
        return ", ".join(sorted(self.topics))
