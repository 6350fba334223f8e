"""Opens the broker of a test: embedded, the real cluster of `KPROTO_BOOTSTRAP`, or in Docker."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from types import TracebackType
from typing import Any, Final, Self

import pytest

from ..broker import RunningBroker, running
from ..wire.errors import ConfigurationError
from .docker_broker import DockerBroker, DockerBrokerError
from .options import BrokerOptions, read_options
from .real_cluster import RealCluster, real_cluster

__all__ = ["DOCKER", "NEWEST", "VARIABLE", "BrokerSource"]

#: The environment variable that selects the brokers: unset or empty for the embedded broker,
#: addresses for a real cluster, or DOCKER.
VARIABLE: Final = "KPROTO_BOOTSTRAP"
DOCKER: Final = "docker"
#: The release of Kafka in Docker, if the mark names none.
NEWEST: Final = "4.4.0"


class BrokerSource:
    """Opens brokers for tests, within `with`; containers run until its end.

    Reads `KPROTO_BOOTSTRAP` from the environment.
    """

    def __init__(self) -> None:
        self._external = os.environ.get(VARIABLE, "").strip()
        self._containers: dict[str, DockerBroker] = {}
        self._closing = ExitStack()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._closing.close()

    @contextmanager
    def open(self, given: Mapping[str, Any]) -> Iterator[RunningBroker | RealCluster]:
        """Opens the broker with the options `given`, for one test, module or session.

        Fails the test if an option is invalid, without a traceback, which would show only the
        plugin. Skips the test if a real cluster cannot have an option.
        """
        try:
            options = read_options(given)
            settings = options.broker_settings()
        except ConfigurationError as error:
            pytest.fail(f"the mark kafka, or session_kafka_options: {error}", pytrace=False)
        if not self._external:
            with running(settings, brokers=options.brokers) as broker:
                for name, partitions in options.topics.items():
                    broker.create_topic(name, partitions)
                yield broker
            return
        _skip_impossible(options)
        with real_cluster(self._bootstrap(options), options) as cluster:
            yield cluster

    def _bootstrap(self, options: BrokerOptions) -> str:
        if self._external != DOCKER:
            return self._external
        if options.brokers > 1:
            pytest.skip(f"Docker runs one broker, and the test needs {options.brokers}")
        release = options.release or NEWEST
        container = self._containers.get(release)
        if container is None:
            try:
                container = self._closing.enter_context(DockerBroker(release))
            except DockerBrokerError as error:
                pytest.skip(str(error))
            self._containers[release] = container
        return container.bootstrap


def _skip_impossible(options: BrokerOptions) -> None:
    """Skips a test with an option that only the embedded broker has."""
    for name in ("sasl", "settings"):
        if getattr(options, name) is not None:
            pytest.skip(
                f"the option {name} of the mark kafka needs the embedded broker, and {VARIABLE} "
                "names a real one"
            )
