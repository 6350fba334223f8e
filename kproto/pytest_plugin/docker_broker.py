"""Runs Apache's Kafka image with testcontainers, if a Docker engine answers."""

from __future__ import annotations

import socket
from types import TracebackType
from typing import Any, Final, Self

__all__ = ["DockerBroker", "DockerBrokerError", "kafka_environment"]

_BROKER_PORT: Final = 9092
_CONTROLLER_PORT: Final = 9093
#: A line that Kafka logs when it serves clients.
_STARTED: Final = "Kafka Server started"


class DockerBrokerError(RuntimeError):
    """Raised if no broker can run in Docker; the message has the reason."""


class DockerBroker:
    """Runs a broker of one release in a container, within `with`; `bootstrap` is its address.

    Raises DockerBrokerError if testcontainers is not installed, if no engine answers, or if the
    container does not start.
    """

    def __init__(self, release: str) -> None:
        try:
            from testcontainers.core.container import DockerContainer
        except ImportError as error:
            raise DockerBrokerError(
                f"KPROTO_BOOTSTRAP=docker needs testcontainers, which is not installed: {error}"
            ) from None
        self._release = release
        try:
            # Connects to the engine.
            self._container: Any = DockerContainer(f"apache/kafka:{release}")
            host = self._container.get_docker_client().host()
        except Exception as error:
            raise DockerBrokerError(f"no Docker engine answers: {error}") from error
        # Responses name the broker's address, so the port must be known before the start.
        port = _free_port()
        self.bootstrap = f"{host}:{port}"
        self._container.with_bind_ports(_BROKER_PORT, port)
        for name, value in kafka_environment(host, port).items():
            self._container.with_env(name, value)

    def __enter__(self) -> Self:
        from testcontainers.core.wait_strategies import LogMessageWaitStrategy

        self._container.waiting_for(LogMessageWaitStrategy(_STARTED))
        try:
            self._container.start()
        except Exception as error:
            self._container.stop()
            raise DockerBrokerError(
                f"Kafka {self._release} does not start in Docker: {error}"
            ) from error
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._container.stop()


def kafka_environment(host: str, port: int) -> dict[str, str]:
    """Returns the settings of one node as environment variables of the image.

    Groups rebalance at once, and transactions work with one replica.
    """
    return {
        "KAFKA_NODE_ID": "1",
        "KAFKA_PROCESS_ROLES": "broker,controller",
        "KAFKA_LISTENERS": f"PLAINTEXT://:{_BROKER_PORT},CONTROLLER://:{_CONTROLLER_PORT}",
        "KAFKA_ADVERTISED_LISTENERS": f"PLAINTEXT://{host}:{port}",
        "KAFKA_CONTROLLER_LISTENER_NAMES": "CONTROLLER",
        "KAFKA_CONTROLLER_QUORUM_VOTERS": f"1@localhost:{_CONTROLLER_PORT}",
        "KAFKA_LISTENER_SECURITY_PROTOCOL_MAP": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT",
        "KAFKA_GROUP_INITIAL_REBALANCE_DELAY_MS": "0",
        "KAFKA_OFFSETS_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_REPLICATION_FACTOR": "1",
        "KAFKA_TRANSACTION_STATE_LOG_MIN_ISR": "1",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_REPLICATION_FACTOR": "1",
        "KAFKA_SHARE_COORDINATOR_STATE_TOPIC_MIN_ISR": "1",
    }


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("", 0))
        port: int = probe.getsockname()[1]
    return port
