"""Defines the sources and the types of configs, with Kafka's codes (KIP-226, KIP-569)."""

from __future__ import annotations

from .kafka_enum import KafkaEnum

__all__ = ["ConfigSource", "ConfigType"]


class ConfigSource(KafkaEnum):
    """The sources of a config's value (KIP-226); UNKNOWN also before Kafka 1.1."""

    UNKNOWN = 0
    TOPIC = 1
    DYNAMIC_BROKER = 2
    DYNAMIC_DEFAULT_BROKER = 3
    STATIC_BROKER = 4
    DEFAULT = 5
    DYNAMIC_BROKER_LOGGER = 6
    CLIENT_METRICS = 7
    GROUP = 8


class ConfigType(KafkaEnum):
    """The types of configs (KIP-569)."""

    UNKNOWN = 0
    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9
