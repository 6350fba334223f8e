"""Runs Apache's Kafka image with testcontainers if a Docker engine answers.

The Kafka container of testcontainers is made for another vendor's image and its start-up script, so
this module uses the plain container.
"""

from __future__ import annotations

import gc
import time
import warnings
from pathlib import PurePosixPath

from testcontainers.core.container import DockerContainer
from testcontainers.core.docker_client import DockerClient

from tools.kafka.probe import answers_api_versions
from tools.kafka.properties import Ports, server_properties
from tools.setup.ports import free_ports

__all__ = ["DockerKafka", "DockerKafkaError", "engine_answers"]

START_TIMEOUT_S = 120.0
"""Time limit of the container's start, after the image is loaded; a broker starts in seconds."""

POLL_S = 0.1
LOG_TAIL_CHARACTERS = 3000
BROKER_PORT = 9092
CONTROLLER_PORT = 9093


class DockerKafkaError(RuntimeError):
    """Raised if an engine answers, but no broker starts on it."""


def engine_answers() -> bool:
    """Returns whether a Docker engine answers; the Docker client alone does not suffice."""
    with warnings.catch_warnings():
        # After a refused connection, the engine's client does not close its socket.
        warnings.simplefilter("ignore", ResourceWarning)
        answers = _ping()
        gc.collect()
    return answers


def _ping() -> bool:
    try:
        client = DockerClient().client
    except Exception:  # the client has many errors for an engine that does not answer
        return False
    try:
        return bool(client.ping())
    except Exception:
        return False
    finally:
        client.close()


class DockerKafka:
    """A broker of one version in a container, reachable at `bootstrap` after construction."""

    def __init__(self, version: str) -> None:
        self.version = version
        self._container = DockerContainer(f"apache/kafka:{version}")
        host = self._container.get_docker_client().host()
        # The broker needs its advertised address before it starts, so this module chooses the
        # host's port, and not the engine.
        (port,) = free_ports(1, host="")
        self.bootstrap = f"{host}:{port}"
        self._container.with_bind_ports(BROKER_PORT, port)
        for name, value in environment(version, host, port).items():
            self._container.with_env(name, value)
        try:
            self._container.start()
            self._wait_until_ready(host, port)
        except DockerKafkaError:
            self.close()
            raise
        except Exception as error:  # any error of the engine: no image, no space, no rights
            self.close()
            raise DockerKafkaError(f"Docker could not start Kafka {version}: {error}") from error

    def _wait_until_ready(self, host: str, port: int) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not answers_api_versions(host, port, timeout_s=1.0):
            if time.monotonic() > deadline:
                output = b"\n".join(self._container.get_logs()).decode("utf-8", "replace")
                raise DockerKafkaError(
                    f"Kafka {self.version} in Docker did not answer at {self.bootstrap}; "
                    f"its log ends with:\n{output[-LOG_TAIL_CHARACTERS:]}"
                )
            time.sleep(POLL_S)

    def close(self) -> None:
        """Stops and removes the container."""
        self._container.stop()


def environment(version: str, host: str, port: int) -> dict[str, str]:
    """Returns the JVM broker's settings as the image's environment variables."""
    properties = server_properties(
        version,
        PurePosixPath("/tmp/kafka"),
        Ports(broker=BROKER_PORT, controller=CONTROLLER_PORT),
        {
            "listeners": f"PLAINTEXT://:{BROKER_PORT},CONTROLLER://:{CONTROLLER_PORT}",
            "advertised.listeners": f"PLAINTEXT://{host}:{port}",
            "controller.quorum.voters": f"1@localhost:{CONTROLLER_PORT}",
        },
    )
    return {f"KAFKA_{key.upper().replace('.', '_')}": value for key, value in properties.items()}
