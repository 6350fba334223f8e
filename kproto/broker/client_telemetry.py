"""Tracks the telemetry subscriptions of client instances (KIP-714).

The rules are those of Kafka's ClientMetricsManager. Times are in ms of the monotonic clock.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from ..wire.uuid import ZERO_UUID, Uuid
from .api_error import api_error
from .dynamic_configs import INTERVAL, MATCH, METRICS, ClientMetricsConfigManager, match_patterns

__all__ = ["ACCEPTED_COMPRESSIONS", "TELEMETRY_MAX_BYTES", "ClientTelemetry", "Subscription"]

#: The compression types that a client may use: zstd, lz4, gzip, snappy. Without compression, 0.
ACCEPTED_COMPRESSIONS: Final = (4, 3, 1, 2)
_NO_COMPRESSION: Final = 0

#: Kafka's default of telemetry.max.bytes.
TELEMETRY_MAX_BYTES: Final = 1_048_576

#: Kafka's default of interval.ms, and the interval of a client without subscription.
_INTERVAL_MS: Final = 300_000

#: As many client instances are remembered as in Kafka's cache.
_MOST_INSTANCES: Final = 16_384


class Subscription(NamedTuple):
    """Holds the metrics that a client instance must push, and the interval in ms."""

    subscription_id: int
    push_interval_ms: int
    metrics: tuple[str, ...]


@dataclass(slots=True)
class _Instance:
    subscription: Subscription
    got_ms: int | None = None
    pushed_ms: int | None = None
    may_get_at_once: bool = True
    is_terminating: bool = False


class ClientTelemetry:
    """Holds the client instances of one node."""

    def __init__(self, configs: ClientMetricsConfigManager) -> None:
        self._configs = configs
        self._instances: dict[bytes, _Instance] = {}

    def subscribe(
        self, instance_id: bytes, labels: Mapping[str, str], now_ms: int
    ) -> tuple[Uuid, Subscription]:
        """Returns the id of a client instance, and its subscription.

        A zero `instance_id` gets a new id. `labels` are the properties of the client, which the
        config `match` selects. Raises THROTTLING_QUOTA_EXCEEDED if the push interval has not passed
        since the last request.
        """
        new_id = Uuid.random() if instance_id == ZERO_UUID else Uuid(instance_id)
        subscription = self._subscription({**labels, "client_instance_id": str(new_id)})
        instance = self._instances.get(new_id)
        if instance is None:
            if len(self._instances) >= _MOST_INSTANCES:
                del self._instances[next(iter(self._instances))]
            instance = self._instances[new_id] = _Instance(subscription)
        last_ms = max(
            (each for each in (instance.got_ms, instance.pushed_ms) if each is not None),
            default=None,
        )
        interval_ms = instance.subscription.push_interval_ms
        if last_ms is not None and now_ms - last_ms < interval_ms and not instance.may_get_at_once:
            raise api_error("THROTTLING_QUOTA_EXCEEDED", "the push interval has not passed")
        instance.got_ms, instance.may_get_at_once = now_ms, False
        instance.subscription = subscription
        return new_id, subscription

    def push(
        self,
        instance_id: bytes,
        subscription_id: int,
        *,
        compression: int,
        size: int,
        is_terminating: bool,
        now_ms: int,
    ) -> None:
        """Accepts the metrics of a client instance, which are `size` bytes.

        Raises INVALID_REQUEST after the last push of an instance, THROTTLING_QUOTA_EXCEEDED before
        the end of the push interval, UNKNOWN_SUBSCRIPTION_ID, UNSUPPORTED_COMPRESSION_TYPE and
        TELEMETRY_TOO_LARGE.
        """
        instance = self._instances.get(instance_id)
        if instance is None:
            raise api_error("UNKNOWN_SUBSCRIPTION_ID", "the client instance has no subscription")
        if instance.is_terminating:
            raise api_error("INVALID_REQUEST", "the client instance has terminated")
        pushed_ms, got_ms = instance.pushed_ms, instance.got_ms
        waits = (
            pushed_ms is not None
            and (got_ms is None or got_ms <= pushed_ms)
            and now_ms - pushed_ms < instance.subscription.push_interval_ms
        )
        if waits and not is_terminating:
            raise api_error("THROTTLING_QUOTA_EXCEEDED", "the push interval has not passed")
        if subscription_id != instance.subscription.subscription_id:
            instance.may_get_at_once = True
            raise api_error(
                "UNKNOWN_SUBSCRIPTION_ID",
                f"the subscription is {instance.subscription.subscription_id}",
            )
        if compression not in (_NO_COMPRESSION, *ACCEPTED_COMPRESSIONS):
            instance.may_get_at_once = True
            raise api_error("UNSUPPORTED_COMPRESSION_TYPE", f"unknown compression {compression}")
        if size > TELEMETRY_MAX_BYTES:
            raise api_error("TELEMETRY_TOO_LARGE", f"{size} bytes exceed {TELEMETRY_MAX_BYTES}")
        instance.pushed_ms, instance.is_terminating = now_ms, is_terminating

    def _subscription(self, labels: Mapping[str, str]) -> Subscription:
        """Returns the subscription of a client: all configs whose patterns match its labels."""
        intervals: list[int] = []
        metrics: set[str] = set()
        for name in self._configs.names:
            configs = self._configs.configs_of(name)
            patterns = match_patterns(configs.get(MATCH, ""))
            if all(each.fullmatch(labels.get(label, "")) for label, each in patterns.items()):
                intervals.append(int(configs.get(INTERVAL, _INTERVAL_MS)))
                metrics |= _names(configs.get(METRICS, ""))
        chosen = ("*",) if "*" in metrics else tuple(sorted(metrics))
        interval_ms = min(intervals, default=_INTERVAL_MS)
        checksum = zlib.crc32(repr((chosen, interval_ms)).encode())
        return Subscription(checksum - (checksum >> 31 << 32), interval_ms, chosen)


def _names(metrics: str) -> set[str]:
    return {each.strip() for each in metrics.split(",") if each.strip()}
