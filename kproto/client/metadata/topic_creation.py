"""`TopicCreation`: tracks the topics that metadata requests may create, and existing topics.

Plain data: `ClusterView` sends the requests.
"""

from __future__ import annotations

from collections.abc import Iterable

from ..settings import ClientSettings

__all__ = ["TopicCreation"]


class TopicCreation:
    """Decides how long an unknown topic is requested, and in which request.

    If a broker does not know a topic, the topic usually does not exist. But metadata of a new topic
    reaches the brokers with a short delay. So a topic is requested for `metadata_wait_ms` if a
    request may create it, or if this client has created it or has received its metadata. Any other
    topic is requested only for `unknown_topic_wait_ms`, or `metadata_wait_ms` if that is shorter.
    """

    def __init__(self, settings: ClientSettings) -> None:
        self._settings = settings
        self._creatable: set[str] = set()
        self._existing: set[str] = set()

    def allow(self, names: Iterable[str]) -> None:
        """Allows brokers to create these topics, in all later metadata requests of this client."""
        self._creatable.update(names)

    def add_existing(self, names: Iterable[str]) -> None:
        """Adds topics that exist: this client has created them, or has received their metadata."""
        self._existing.update(names)

    def remove_existing(self, names: Iterable[str]) -> None:
        """Removes topics that this client has deleted."""
        self._existing.difference_update(names)

    def is_allowed(self, name: str) -> bool:
        """Returns True if a metadata request may create the topic."""
        return name in self._creatable

    def split(self, names: frozenset[str]) -> list[tuple[frozenset[str], bool]]:
        """Splits topics into Metadata requests that may create topics, and requests that may not.

        Returns the topics of each request, with True if the request may create its topics. If
        `names` is empty, returns one request without topics, for the brokers alone.
        """
        creatable = names & self._creatable
        requests = [(names - creatable, False), (creatable, True)]
        return [each for each in requests if each[0]] or [(names, False)]

    def wait_setting(self, name: str) -> str:
        """Returns the name of the setting that limits the wait for the metadata of a topic.

        It is `metadata_wait_ms` for a topic that a request may create, or that is known to exist.
        For any other topic it is `unknown_topic_wait_ms`, or `metadata_wait_ms` if that is shorter.
        """
        if name in self._creatable or name in self._existing:
            return "metadata_wait_ms"
        settings = self._settings
        is_shorter = settings.unknown_topic_wait_ms < settings.metadata_wait_ms
        return "unknown_topic_wait_ms" if is_shorter else "metadata_wait_ms"
