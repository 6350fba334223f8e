"""What `replica.selector.class` may be: the names of Kafka's own selectors (KIP-392)."""

from __future__ import annotations

from typing import Final

from ..wire.errors import ConfigurationError

__all__ = ["LEADER_SELECTOR", "RACK_AWARE_SELECTOR", "check_selector"]

LEADER_SELECTOR: Final = "LeaderSelector"
RACK_AWARE_SELECTOR: Final = "RackAwareReplicaSelector"

#: Where Kafka has them; the name alone will do here.
_PACKAGE: Final = "org.apache.kafka.common.replica."


def check_selector(name: str | None) -> None:
    """Raises ConfigurationError for a selector that Kafka does not bring."""
    known = (LEADER_SELECTOR, RACK_AWARE_SELECTOR)
    if name is not None and name.removeprefix(_PACKAGE) not in known:
        raise ConfigurationError(
            f"replica_selector is {name!r}; it is None, {LEADER_SELECTOR!r} or "
            f"{RACK_AWARE_SELECTOR!r}, with {_PACKAGE} before it or without"
        )
