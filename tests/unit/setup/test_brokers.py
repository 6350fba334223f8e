"""Tests in which order the test setup searches for a broker, and the result if it finds none."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import pytest

from tests.support import brokers
from tests.support.availability import PREFIX, missing_lines, not_available, skip_untested
from tests.support.brokers import Brokers, RunningKafka
from tests.support.docker_kafka import DockerKafkaError, environment
from tools.kafka import KafkaStartError
from tools.kafka.properties import FIXED


class Started:
    """Fakes a broker, as a container or as a JVM node, and records its start and stop."""

    def __init__(self, bootstrap: str, happened: list[str]) -> None:
        self.bootstrap = bootstrap
        self._happened = happened
        happened.append(f"start {bootstrap}")

    def close(self) -> None:
        self._happened.append(f"close {self.bootstrap}")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


@pytest.fixture
def happened(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Fakes a machine with Docker and Java; returns a list of the starts and stops of brokers."""
    events: list[str] = []
    monkeypatch.delenv("KPROTO_BOOTSTRAP", raising=False)
    monkeypatch.setattr(brokers, "engine_answers", lambda: True)
    monkeypatch.setattr(brokers, "DockerKafka", lambda v: Started(f"docker-{v}:1", events))
    monkeypatch.setattr(brokers, "KafkaNode", lambda v: Started(f"jvm-{v}:1", events))
    return events


def raising(error: Exception) -> Callable[[str], Started]:
    def start(version: str) -> Started:
        raise error

    return start


def test_a_named_broker_comes_first(happened: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KPROTO_BOOTSTRAP", "[::1]:9092,other:9093")
    found = Brokers().get("4.4.0")
    assert found == RunningKafka("[::1]:9092,other:9093", "external", "external")
    assert found.address == ("::1", 9092)
    assert brokers.versions() == ("external",)
    assert happened == []


def test_docker_is_second_with_one_container_per_version(happened: list[str]) -> None:
    assert brokers.versions() == ("4.4.0", "3.9.2")
    running = Brokers()
    found = running.get("4.4.0")
    assert found == RunningKafka("docker-4.4.0:1", "4.4.0", "docker")
    assert running.get("4.4.0") is found
    running.get("3.9.2")
    running.close()
    expected = ["start docker-4.4.0:1", "start docker-3.9.2:1"]
    assert happened == [*expected, "close docker-3.9.2:1", "close docker-4.4.0:1"]


def test_the_jvm_is_used_if_no_engine_answers(
    happened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers, "engine_answers", lambda: False)
    running = Brokers()
    assert running.get("3.9.2") == RunningKafka("jvm-3.9.2:1", "3.9.2", "jvm")
    running.close()
    assert happened == ["start jvm-3.9.2:1", "close jvm-3.9.2:1"]


def test_the_jvm_is_used_if_the_image_is_missing(
    happened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers, "DockerKafka", raising(DockerKafkaError("no such image")))
    assert Brokers().get("4.4.0").origin == "jvm"
    assert happened == ["start jvm-4.4.0:1"]


def test_a_failed_start_is_not_tried_again(
    happened: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(brokers, "engine_answers", lambda: False)
    monkeypatch.setattr(brokers, "KafkaNode", raising(KafkaStartError("out of memory")))
    running = Brokers()
    with pytest.raises(KafkaStartError, match="out of memory"):
        running.get("4.4.0")
    monkeypatch.setattr(brokers, "KafkaNode", raising(AssertionError("tried again")))
    with pytest.raises(KafkaStartError, match="out of memory"):
        running.get("4.4.0")
    assert happened == []


def test_the_summary_has_a_line_for_each_reason_and_what_to_install() -> None:
    java = "no Java 17 or newer: install a JDK"
    reasons = [
        f"Skipped: {PREFIX}Spark: {java}",
        "Skipped: no IPv6 here",
        f"Skipped: {PREFIX}a real Kafka 4.4.0: {java}",
        f"Skipped: {PREFIX}kfake: go: no route\n\tto a proxy; install Go",
        f"Skipped: {PREFIX}Spark: {java}",
    ]
    assert missing_lines(reasons) == [
        f"3 skipped: Spark, a real Kafka 4.4.0: {java}",
        "1 skipped: kfake: go: no route to a proxy; install Go",
    ]
    (long,) = missing_lines([f"{PREFIX}kfake: {'word ' * 1000}"])
    assert len(long) < 400


def test_the_reason_ends_with_the_program_to_install() -> None:
    with pytest.raises(pytest.skip.Exception, match="a broker: no Java; install a JDK"):
        skip_untested("a broker", "no Java", "a JDK")


def test_a_missing_part_skips_locally_and_fails_in_ci(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("CI", raising=False)
    with pytest.raises(pytest.skip.Exception, match="NOT TESTED: a broker: no Java"):
        not_available("a broker", "no Java")
    monkeypatch.setenv("CI", "true")
    with pytest.raises(pytest.fail.Exception, match="NOT TESTED: a broker: no Java"):
        not_available("a broker", "no Java")


def test_the_container_has_the_settings_of_the_jvm_node_and_its_own_addresses() -> None:
    variables = environment("3.9.2", "docker.example", 40000)
    assert variables["KAFKA_ADVERTISED_LISTENERS"] == "PLAINTEXT://docker.example:40000"
    assert variables["KAFKA_LISTENERS"] == "PLAINTEXT://:9092,CONTROLLER://:9093"
    assert variables["KAFKA_GROUP_COORDINATOR_REBALANCE_PROTOCOLS"] == "classic,consumer"
    assert "KAFKA_GROUP_COORDINATOR_REBALANCE_PROTOCOLS" not in environment("4.4.0", "h", 1)
    for key, value in FIXED.items():
        assert variables[f"KAFKA_{key.upper().replace('.', '_')}"] == value
