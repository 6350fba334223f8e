"""Checks the options of the mark `kafka`, and converts them to the settings of a broker."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any, Final

from ..broker import BrokerSettings, Listener
from ..wire.checks import check_whole_number
from ..wire.errors import ConfigurationError

__all__ = ["BrokerOptions", "read_options"]

#: The first release with transactions (KIP-98).
_FIRST_WITH_TRANSACTIONS: Final = (0, 11)


@dataclass(frozen=True)
class BrokerOptions:
    """The options of a test: see `docs/how-to/pytest.md`.

    `topics` has the number of partitions of each topic. Raises ConfigurationError for invalid or
    contradictory options.
    """

    brokers: int = 1
    #: A release of Kafka, such as `3.9.2`; None for the newest that kproto knows.
    release: str | None = None
    topics: Mapping[str, int] = field(default_factory=dict)
    #: A mechanism with name and password, such as `kproto.ScramSha512("ada", "secret")`.
    sasl: Any = None
    #: Whether the test needs transactions. The embedded broker always has them, unless `release`
    #: is too old; a real cluster is asked.
    transactions: bool = False
    #: Further settings of the embedded broker.
    settings: BrokerSettings | None = None

    def __post_init__(self) -> None:
        check_whole_number("brokers", self.brokers, 1)
        for name, partitions in self.topics.items():
            check_whole_number(f"topics[{name!r}]", partitions, 1)
        if self.transactions and self.release is not None:
            parts = tuple(int(part) for part in self.release.split(".")[:2] if part.isdigit())
            if parts < _FIRST_WITH_TRANSACTIONS:
                raise ConfigurationError(
                    f"transactions=True with release={self.release!r}: transactions began with "
                    "0.11; name a later release"
                )
        if self.sasl is not None and not all(
            isinstance(getattr(self.sasl, name, None), str)
            for name in ("mechanism", "username", "password")
        ):
            raise ConfigurationError(
                f"sasl is {type(self.sasl).__name__}; give a mechanism with name and password, such"
                " as kproto.ScramSha512('ada', 'secret')"
            )

    def broker_settings(self) -> BrokerSettings:
        """Returns the settings of the embedded broker."""
        settings = self.settings or BrokerSettings()
        if self.release is not None:
            settings = replace(settings, release=self.release)
        if self.sasl is not None:
            settings = replace(
                settings,
                listeners=(Listener("SASL_PLAINTEXT", mechanisms=(self.sasl.mechanism,)),),
                users={**settings.users, self.sasl.username: self.sasl.password},
            )
        return settings


def read_options(given: Mapping[str, Any]) -> BrokerOptions:
    """Returns the options with the keyword arguments of a mark. Raises ConfigurationError."""
    known = [each.name for each in fields(BrokerOptions)]
    for name in given:
        if name not in known:
            raise ConfigurationError(f"there is no option {name!r}: take one of {', '.join(known)}")
    topics = given.get("topics", {})
    if not isinstance(topics, Mapping):
        if isinstance(topics, str) or not isinstance(topics, Iterable):
            raise ConfigurationError(
                f"topics is {topics!r:.80}; give the partitions by topic, such as {{'orders': 3}}"
            )
        given = {**given, "topics": dict.fromkeys(topics, 1)}
    return BrokerOptions(**given)
