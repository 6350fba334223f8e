"""What a member subscribes to: topics by their names, or by a pattern. Knows no broker.

A pattern is matched here, and not by brokers: it is the whole name that matches, and Kafka's
internal topics are left out, as in Java's consumer.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from ...wire.errors import ConfigurationError
from ..cluster.metadata import TopicInfo

__all__ = ["Subscription"]


@dataclass(frozen=True, slots=True)
class Subscription:
    """Topics by name, or all whose whole name matches `pattern`. Made by `to`."""

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None

    @classmethod
    def to(cls, wanted: str | Iterable[str] | re.Pattern[str]) -> Subscription:
        """A subscription to one topic, to several, or to a pattern. Raises ConfigurationError."""
        if isinstance(wanted, re.Pattern):
            if not isinstance(wanted.pattern, str):
                raise ConfigurationError(f"{wanted!r} is a pattern of bytes; topics have a str")
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

    def wants(self, topic: str) -> bool:
        """Whether a topic, that is not internal, is subscribed to."""
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        return topic in self.topics

    def among(self, topics: Iterable[TopicInfo]) -> frozenset[str]:
        """The topics to ask for: those named, or those of these that match."""
        if self.pattern is None:
            return self.topics
        return frozenset(
            info.name
            for info in topics
            if not info.internal and not info.error_code and self.wants(info.name)
        )

    def __str__(self) -> str:
        if self.pattern is not None:
            return f"pattern {self.pattern.pattern!r}"
        return ", ".join(sorted(self.topics))
