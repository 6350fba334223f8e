"""Alters and describes configs of a real and of the embedded broker, Kafka 4.4.0."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from kproto.messages.alter_configs_request import AlterableConfig as NewConfig
from kproto.messages.alter_configs_request import AlterConfigsRequest
from kproto.messages.alter_configs_request import AlterConfigsResource as Replaced
from kproto.messages.describe_configs_request import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
)
from kproto.messages.incremental_alter_configs_request import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from kproto.messages.list_config_resources_request import ListConfigResourcesRequest

from .conversations import Said
from .talk import PATIENCE_S, Talk, error

__all__ = ["STATIC", "altering_configs", "describing_all_configs"]

TOPIC, BROKER, LOGGER, METRICS, GROUP = 2, 4, 8, 16, 32
SET, DELETE, APPEND, SUBTRACT = range(4)
_STATIC = 4
_DEFAULT = 5

STATIC = "static"
"""The answer for a config that server.properties sets; the other broker may have the default."""


def describing_all_configs(talk: Talk) -> Said:
    """Describes all configs; the values of those that server.properties sets are not compared."""
    name = talk.create("all")
    for kind, resource in ((TOPIC, name), (BROKER, "1"), (GROUP, "g"), (METRICS, "m")):
        configs = _described(talk, kind, resource)
        yield (kind, "names"), sorted(configs)
        for config, (value, source, *facts, synonyms) in configs.items():
            defaults = [each for each in synonyms if each[2] == _DEFAULT]
            yield (kind, config), (facts, defaults)
            is_static = any(each[2] == _STATIC for each in synonyms)
            yield (kind, config, "value"), STATIC if is_static else (value, source, synonyms)


def altering_configs(talk: Talk) -> Said:
    topic = talk.create("t")
    changes: list[tuple[int, str, list[tuple[str, int, str | None]]]] = []

    def step(kind: int, resource: str, *wanted: tuple[str, int, str | None]) -> None:
        changes.append((kind, resource, list(wanted)))

    for value in ("x", "-2", "", " 5000 ", "99999999999999999999"):
        step(TOPIC, topic, ("retention.ms", SET, value))
    for name, value in (
        ("nope", "1"),
        ("cleanup.policy", "foo"),
        ("cleanup.policy", "compact,"),
        ("cleanup.policy", "compact,compact"),
        ("cleanup.policy", ""),
        ("compression.type", "foo"),
        ("compression.gzip.level", "77"),
        ("compression.gzip.level", "-1"),
        ("max.message.bytes", "-1"),
        ("max.message.bytes", "99999999999"),
        ("message.timestamp.type", "x"),
        ("min.cleanable.dirty.ratio", "1.5"),
        ("min.cleanable.dirty.ratio", "x"),
        ("min.insync.replicas", "0"),
        ("preallocate", "maybe"),
        ("preallocate", "TRUE"),
        ("remote.storage.enable", "true"),
        ("segment.bytes", "1"),
        ("leader.replication.throttled.replicas", "0:1,1:1"),
        ("leader.replication.throttled.replicas", "foo"),
        ("follower.replication.throttled.replicas", "*"),
    ):
        step(TOPIC, topic, (name, SET, value))
    step(TOPIC, topic, ("retention.ms", SET, None))
    step(TOPIC, topic, ("retention.ms", APPEND, "5"))
    step(TOPIC, topic, ("retention.ms", SET, "5"), ("retention.ms", SET, "6"))
    step(TOPIC, topic, ("cleanup.policy", DELETE, None))
    for operation, part in ((APPEND, "compact"), (APPEND, "compact"), (SUBTRACT, "delete")):
        step(TOPIC, topic, ("cleanup.policy", operation, part))
    for resource in ("nope", "a b", ""):
        step(TOPIC, resource, ("retention.ms", SET, "1"))
    step(BROKER, "1", ("message.max.bytes", SET, "5000"), ("foo.bar", SET, "baz"))
    step(BROKER, "", ("message.max.bytes", SET, "6000"))
    step(BROKER, "1", ("num.partitions", SET, "9"))
    step(BROKER, "1", ("min.insync.replicas", SET, "2"))
    step(BROKER, "1", ("ssl.keystore.password", SET, "x"))
    for name, value in (
        ("num.io.threads", "99"),
        ("num.io.threads", "1"),
        ("num.io.threads", "0"),
        ("num.io.threads", "x"),
        ("num.io.threads", "16"),
        ("num.io.threads", "8"),
        ("num.network.threads", "99"),
        ("num.replica.fetchers", "99"),
        ("log.cleaner.threads", "99"),
        ("log.retention.ms", "0"),
    ):
        step(BROKER, "1", (name, SET, value))
    step(BROKER, "1", ("leader.replication.throttled.rate", SET, "1000"))
    step(BROKER, "", ("min.insync.replicas", DELETE, None))
    step(BROKER, "", ("num.partitions", SET, "9"))
    step(BROKER, "", ("listeners", SET, "PLAINTEXT://:1"))
    step(BROKER, "", ("log.retention.ms", SET, "x"))
    step(BROKER, "7", ("message.max.bytes", SET, "99"))
    step(BROKER, "x", ("message.max.bytes", SET, "99"))
    for operation, level in ((SET, "DEBUG"), (SET, "debug"), (APPEND, "INFO"), (DELETE, None)):
        step(LOGGER, "1", ("root", operation, level))
    step(LOGGER, "1", ("no.such.logger", SET, "INFO"))
    step(LOGGER, "", ("root", SET, "INFO"))
    step(LOGGER, "7", ("root", SET, "INFO"))
    for name, value in (
        ("nope", "1"),
        ("interval.ms", "10"),
        ("interval.ms", "1000"),
        ("metrics", "a.,b."),
        ("match", "client_id=x"),
        ("match", "foo"),
    ):
        step(METRICS, "m", (name, SET, value))
    step(METRICS, "", ("interval.ms", SET, "1000"))
    for name, value in (
        ("share.session.timeout.ms", "50000"),
        ("share.session.timeout.ms", "70000"),
        ("share.session.timeout.ms", "x"),
        ("share.isolation.level", "foo"),
        ("share.delivery.count.limit", "99"),
        ("streams.heartbeat.interval.ms", "1"),
        ("nope", "1"),
    ):
        step(GROUP, "g", (name, SET, value))
    for kind in (0, 3, 99):
        step(kind, "x", ("a", SET, "b"))
    for number, (kind, resource, wanted) in enumerate(changes):
        yield (number, kind, wanted), _alter(talk, kind, resource, wanted)
    names = ("cleanup.policy", "max.message.bytes", "preallocate")
    timeout = "share.session.timeout.ms"
    # The node learns of changes in their order, and the last accepted one is the group's.
    group = _settled(talk, GROUP, "g", lambda it: it[timeout][0] == "50000")
    yield (
        "topic",
        _settled(talk, TOPIC, topic, lambda it: it["max.message.bytes"][0] == "5000")(*names),
    )
    yield (
        "broker",
        _settled(talk, BROKER, "1", lambda it: "foo.bar" in it)(
            "foo.bar", "leader.replication.throttled.rate", "message.max.bytes"
        ),
    )
    yield "brokers", _described(talk, BROKER, "")
    yield "metrics", _described(talk, METRICS, "m")
    yield "group", group(timeout)
    yield "resources", _configured(talk, BROKER, LOGGER, METRICS, GROUP)
    for kind, resource, configs in (
        (TOPIC, topic, {"segment.ms": "7000"}),
        (TOPIC, topic, {"nope": "1"}),
        (TOPIC, "nope", {}),
        (BROKER, "1", {"num.partitions": "1"}),
        (BROKER, "1", {}),
        (BROKER, "", {}),
        (BROKER, "", {"min.insync.replicas": "1"}),
        (LOGGER, "1", {"root": "INFO"}),
        (METRICS, "m", {}),
        (GROUP, "g", {}),
        (0, "x", {}),
    ):
        yield ("replace", kind, resource, str(configs)), _replace(talk, kind, resource, configs)
    deadline = time.monotonic() + PATIENCE_S
    while (listed := _configured(talk, METRICS, GROUP)) and time.monotonic() < deadline:
        time.sleep(0.05)
    # A node takes over the configs of brokers after it lists changes.
    inherited = _settled(talk, TOPIC, topic, lambda it: it["max.message.bytes"][0] == "1048588")
    yield "replaced", inherited(*names[:2])
    yield "no resources", listed


def _configured(talk: Talk, *kinds: int) -> list[tuple[int, str]]:
    """Returns the resources of some types that have configs, as (type, name)."""
    listed = talk.ask(ListConfigResourcesRequest(resource_types=list(kinds)), 1)
    return sorted((it.resource_type, it.resource_name) for it in listed.config_resources)


def _described(talk: Talk, kind: int, name: str) -> dict[str, Any]:
    resource = DescribeConfigsResource(
        resource_type=kind, resource_name=name, configuration_keys=None
    )
    request = DescribeConfigsRequest(resources=[resource], include_synonyms=True)
    (found,) = talk.ask(request, 4).results
    assert found.error_code == 0, found
    return {
        it.name: (
            it.value,
            it.config_source,
            it.config_type,
            it.read_only,
            it.is_sensitive,
            [(each.name, each.value, each.source) for each in it.synonyms],
        )
        for it in sorted(found.configs, key=lambda it: it.name)
    }


def _settled(
    talk: Talk, kind: int, name: str, condition: Callable[[dict[str, Any]], object]
) -> Callable[..., list[Any]]:
    """Returns a function from names to descriptions, once the node knows the changes."""
    deadline = time.monotonic() + PATIENCE_S
    configs = _described(talk, kind, name)
    while not condition(configs) and time.monotonic() < deadline:
        time.sleep(0.05)
        configs = _described(talk, kind, name)
    return lambda *names: [configs.get(each) for each in names]


def _alter(
    talk: Talk, kind: int, name: str, changes: list[tuple[str, int, str | None]]
) -> tuple[str, str | None]:
    configs = [
        AlterableConfig(name=config, config_operation=operation, value=value)
        for config, operation, value in changes
    ]
    resource = AlterConfigsResource(resource_type=kind, resource_name=name, configs=configs)
    (found,) = talk.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1).responses
    return error(found.error_code), _message(found)


def _replace(talk: Talk, kind: int, name: str, configs: dict[str, str]) -> tuple[str, str | None]:
    wanted = [NewConfig(name=config, value=value) for config, value in configs.items()]
    resource = Replaced(resource_type=kind, resource_name=name, configs=wanted)
    (found,) = talk.ask(AlterConfigsRequest(resources=[resource]), 2).responses
    return error(found.error_code), _message(found)


def _message(found: Any) -> str | None:
    """Returns the error message; of an unknown or misnamed topic, only whether there is one."""
    text: str | None = found.error_message
    return "a message" if text and "TOPIC" in error(found.error_code) else text
