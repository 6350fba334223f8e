"""What a member subscribes to: topics by their names, or by a pattern. Knows no broker.

A compiled pattern is matched here, and not by brokers: it is the whole name that matches, and
Kafka's internal topics are left out, as in Java's consumer. A `TopicPattern` is matched by them.
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
    """Topics whose whole name matches `text`, which is RE2 and read by the broker (KIP-848).

    For groups of the consumer protocol on Kafka 4.0 and later; a pattern of `re.compile` is matched
    by the client, in groups of both kinds. The broker leaves out what the principal may not
    DESCRIBE. Raises ConfigurationError; what is no RE2 is refused by the broker.
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
    """Topics by name, or all whose whole name matches `pattern`, or the broker's `remote` one.

    Made by `to`. Beside a remote pattern there may be `topics` (KIP-848).
    """

    topics: frozenset[str] = frozenset()
    pattern: re.Pattern[str] | None = None
    remote: TopicPattern | None = None

    @classmethod
    def to(cls, wanted: str | Iterable[str] | re.Pattern[str] | TopicPattern) -> Subscription:
        """A subscription to one topic, to several, or to a pattern. Raises ConfigurationError."""
        if isinstance(wanted, TopicPattern):
            return cls(remote=wanted)
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
        """Whether a topic, that is not internal, is subscribed to.

        What a broker matches only the broker knows: it assigns nothing else.
        """
        if self.remote is not None:
            return True
        if self.pattern is not None:
            return self.pattern.fullmatch(topic) is not None
        return topic in self.topics

    def surely_wants(self, topic: str) -> bool:
        """The same, as far as it is known here: Python reads most patterns as RE2 does."""
        if self.remote is None or topic in self.topics:
            return self.wants(topic)
        try:
            return re.fullmatch(self.remote.text, topic) is not None
        except re.error:
            return False

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
        if self.remote is not None:
            return f"pattern {self.remote.text!r} of the broker"
        if self.pattern is not None:
            return f"pattern {self.pattern.pattern!r}"
        return ", ".join(sorted(self.topics))
