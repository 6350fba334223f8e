"""Defines the resource types, the sources and the types of configs, with Kafka's codes."""

from __future__ import annotations

from .kafka_enum import KafkaEnum

__all__ = ["ConfigResourceType", "ConfigSource", "ConfigType"]


class ConfigResourceType(KafkaEnum):
    """The types of resources that have configs; a broker's loggers are a resource, too."""

    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32


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
