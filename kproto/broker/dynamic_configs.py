"""Holds and validates the dynamic configs of brokers and of client metrics subscriptions.

Sources: KIP-226 (dynamic configs of brokers), KIP-714 (client metrics), KIP-966
(min.insync.replicas). The order of checks and the error messages equal those of Kafka 4.4.0.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from ..wire.errors import BrokerResponseError
from .api_error import api_error
from .config_changes import ConfigChange, apply_changes
from .config_table import (
    BROKER,
    CLIENT_METRICS,
    TOPIC,
    ConfigSource,
    ConfigType,
    checked_value,
    config_defs,
    split_list,
)

__all__ = [
    "ALL_BROKERS",
    "INTERVAL",
    "MATCH",
    "METRICS",
    "BrokerConfigManager",
    "ClientMetricsConfigManager",
    "match_patterns",
]

#: The resource name of the configs that apply to all brokers.
ALL_BROKERS: Final = ""

_MIN_ISR: Final = "min.insync.replicas"

#: Whether a broker config can only be altered for a single broker or listener: by its `update`, the
#: text with which Kafka refuses it. "broker" applies only to the configs of all brokers.
_REFUSALS: Final = (
    ("read-only", "Cannot update these configs dynamically"),
    (
        "listener",
        (
            "These security configs can be dynamically updated only per-listener using the "
            "listener prefix"
        ),
    ),
    (
        "broker",
        "Cannot update these configs at default cluster level, broker id must be specified",
    ),
)


#: Numbers of threads, which one request can at most double or halve.
_THREAD_COUNTS: Final = (
    "background.threads",
    "num.io.threads",
    "num.network.threads",
    "num.recovery.threads.per.data.dir",
    "num.replica.fetchers",
    "remote.log.manager.copier.thread.pool.size",
    "remote.log.manager.expiration.thread.pool.size",
    "remote.log.manager.follower.thread.pool.size",
    "remote.log.reader.threads",
)
_CLEANER_THREADS: Final = "log.cleaner.threads"


class BrokerConfigManager:
    """Holds the dynamic configs of each broker, and those of all brokers.

    `static` are the initial configs of all brokers. If `has_elr` is set, min.insync.replicas is
    always set for all brokers, and for no single broker (KIP-966).
    """

    def __init__(self, *, has_elr: bool = False) -> None:
        self._has_elr = has_elr
        self._configs: dict[str, Mapping[str, str]] = {}
        if has_elr:
            default = config_defs(BROKER)[_MIN_ISR].default
            self._configs[ALL_BROKERS] = {_MIN_ISR: str(default)}

    @property
    def names(self) -> list[str]:
        """Returns the names of the brokers with dynamic configs; ALL_BROKERS may be one of them."""
        return sorted(self._configs)

    def configs_of(self, name: str) -> Mapping[str, str]:
        """Returns the dynamic configs of the broker with the node id `name`, or of ALL_BROKERS."""
        return self._configs.get(name, {})

    def values(self, node: str, config: str) -> list[tuple[str, ConfigSource]]:
        """Returns the dynamic values of a config for a broker, the value with precedence first."""
        found = (
            (self.configs_of(node).get(config), ConfigSource.DYNAMIC_BROKER),
            (self.configs_of(ALL_BROKERS).get(config), ConfigSource.DYNAMIC_DEFAULT_BROKER),
        )
        return [(value, source) for value, source in found if value is not None]

    def number(self, node: str, config: str, default: int) -> int:
        """Returns the dynamic value of a config that is a whole number; `default` if none is set.

        `node` is a node id or ALL_BROKERS.
        """
        values = self.values(node, config)
        return int(values[0][0]) if values else default

    def topic_defaults(self, node: str) -> dict[str, str]:
        """Returns the defaults of topic configs that the dynamic configs of a broker set."""
        found = {}
        for config in config_defs(TOPIC).values():
            values = self.values(node, config.broker_config) if config.broker_config else []
            if values:
                found[config.name] = values[0][0]
        return found

    def altered(self, name: str, changes: Iterable[ConfigChange]) -> Mapping[str, str]:
        """Returns the configs of a broker, or of ALL_BROKERS, after `changes`; stores nothing.

        Raises INVALID_REQUEST for a config that cannot be altered or an invalid value, and
        INVALID_CONFIG if min.insync.replicas may not be set or removed. Raises the errors of
        `apply_changes`.
        """
        known = config_defs(BROKER)
        lists = {
            each.name: each.default or "" for each in known.values() if each.type is ConfigType.LIST
        }
        configs = apply_changes(self.configs_of(name), list(changes), lists)
        for update, text in _REFUSALS:
            refused = [each for each in configs if each in known and known[each].update == update]
            if refused and (update != "broker" or name == ALL_BROKERS):
                raise api_error("INVALID_REQUEST", f"{text}: [{', '.join(refused)}]")
        try:
            configs |= {
                each: checked_value(known[each], value)
                for each, value in configs.items()
                if each in known
            }
        except BrokerResponseError as error:
            raise api_error("INVALID_REQUEST", error.detail) from None
        self._check_thread_counts(name, configs)
        if configs.get("log.retention.ms") == "0":
            raise api_error(
                "INVALID_REQUEST",
                "requirement failed: log.retention.ms must be unlimited (-1) or, greater than or "
                "equal to 1",
            )
        self._check_min_isr(name, configs)
        return configs

    def _check_thread_counts(self, name: str, configs: Mapping[str, str]) -> None:
        """Raises INVALID_REQUEST if a number of threads changes to more than double or below half.

        An increase of log.cleaner.threads has another message.
        """
        for config in (*_THREAD_COUNTS, _CLEANER_THREADS):
            default = str(config_defs(BROKER)[config].default)
            if name != ALL_BROKERS:
                default = self.configs_of(ALL_BROKERS).get(config, default)
            current = int(self.configs_of(name).get(config, default))
            count = int(configs.get(config, default))
            if current // 2 <= count <= current * 2:
                continue
            reason = (
                f"Dynamic thread count update validation failed for {config}={count}, value should "
            )
            if config == _CLEANER_THREADS:
                is_more = count > current
                bound = "increased to more than double" if is_more else "reduced to less than half"
                reason = f"Log cleaner threads cannot be {bound} the current value {current}"
            elif count > current:
                reason += f"not be greater than double the current value {current}"
            else:
                reason += f"be at least half the current value {current}"
            raise api_error(
                "INVALID_REQUEST",
                f"Invalid value org.apache.kafka.common.config.ConfigException: {reason} for "
                "configuration Invalid dynamic configuration",
            )

    def _check_min_isr(self, name: str, configs: Mapping[str, str]) -> None:
        if not self._has_elr or (_MIN_ISR in configs) == (name == ALL_BROKERS):
            return
        what = (
            "Cluster-level min.insync.replicas cannot be removed"
            if name == ALL_BROKERS
            else "Broker-level min.insync.replicas cannot be altered"
        )
        raise api_error("INVALID_CONFIG", f"{what} while ELR is enabled.")

    def replace(self, name: str, configs: Mapping[str, str]) -> None:
        """Stores the configs of a broker, or of ALL_BROKERS, in place of the former configs."""
        _replace(self._configs, name, configs)


INTERVAL: Final = "interval.ms"
MATCH: Final = "match"
METRICS: Final = "metrics"
_INTERVAL_BOUNDS_MS: Final = 100, 3_600_000

#: The labels of clients that `match` may name.
MATCH_LABELS: Final = frozenset(
    {
        "client_instance_id",
        "client_id",
        "client_software_name",
        "client_software_version",
        "client_source_address",
        "client_source_port",
    }
)


class ClientMetricsConfigManager:
    """Holds the configs of client metrics subscriptions by the name of the subscription."""

    def __init__(self) -> None:
        self._configs: dict[str, Mapping[str, str]] = {}
        #: Rises with each change, so that nodes notice changes.
        self.epoch = 0

    @property
    def names(self) -> list[str]:
        """Returns the names of the subscriptions, sorted."""
        return sorted(self._configs)

    def configs_of(self, name: str) -> Mapping[str, str]:
        """Returns the configs of a subscription; empty if there is no such subscription."""
        return self._configs.get(name, {})

    def altered(self, name: str, changes: Iterable[ConfigChange]) -> Mapping[str, str]:
        """Returns the configs of a subscription after `changes`, without storing them.

        Raises INVALID_REQUEST for an empty name, an unknown config and an invalid interval, and
        INVALID_CONFIG for an invalid pattern. Raises the errors of `apply_changes`.
        """
        configs = apply_changes(self.configs_of(name), list(changes), {})
        if not name:
            raise api_error("INVALID_REQUEST", "Subscription name can't be empty")
        known = config_defs(CLIENT_METRICS)
        for config in configs:
            if config not in known:
                raise api_error(
                    "INVALID_REQUEST", f"Unknown client metrics configuration: {config}"
                )
        configs = {config: checked_value(known[config], value) for config, value in configs.items()}
        if INTERVAL in configs:
            interval_ms = int(configs[INTERVAL])
            if not _INTERVAL_BOUNDS_MS[0] <= interval_ms <= _INTERVAL_BOUNDS_MS[1]:
                raise api_error(
                    "INVALID_REQUEST",
                    f"Invalid value {interval_ms} for {INTERVAL}, interval must be between 100 "
                    "and 3600000 (1 hour)",
                )
        match_patterns(configs.get(MATCH, ""))
        return configs

    def replace(self, name: str, configs: Mapping[str, str]) -> None:
        """Stores the configs of a subscription in place of the former configs."""
        _replace(self._configs, name, configs)
        self.epoch += 1


def match_patterns(match: str) -> dict[str, re.Pattern[str]]:
    """Returns the patterns of the config `match` by label. Raises INVALID_CONFIG."""
    patterns = {}
    for part in split_list(match):
        label, separator, pattern = (each.strip() for each in part.partition("="))
        try:
            compiled = re.compile(pattern)
        except re.error:
            compiled = None
        if not separator or label not in MATCH_LABELS or compiled is None:
            raise api_error("INVALID_CONFIG", f"Illegal client matching pattern: {part}")
        patterns[label] = compiled
    return patterns


def _replace(stored: dict[str, Mapping[str, str]], name: str, configs: Mapping[str, str]) -> None:
    if configs:
        stored[name] = configs
    else:
        stored.pop(name, None)
