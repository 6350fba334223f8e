"""A pytest plugin for kafka-python's tests: replaces the broker that their fixtures would start.

kafka-python's fixtures connect to the broker that the variable KAFKA_URI names, if it is set; the
broker comes from the fixture `session_kafka_bootstrap` of kproto's plugin. This module imports no
other module of `tools`, because it runs in the environment of the tests.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

#: kafka-python's fixtures require that this folder exists. They start nothing from it.
os.environ["KAFKA_ROOT"] = os.path.dirname(__file__)  # noqa: PTH120


class _ExternalService:
    """Replaces the class that kafka-python's source distribution lacks."""

    def __init__(self, host: str, port: int) -> None:
        self.host, self.port = host, port

    def open(self) -> None:
        """Does nothing: the broker runs."""

    def stop(self) -> None:
        """Does nothing: the plugin stops the broker."""


_service: Any = ModuleType("test.service")
_service.ExternalService = _service.SpawnedService = _ExternalService
sys.modules["test.service"] = _service


@pytest.fixture(scope="session")
def session_kafka_options() -> dict[str, Any]:
    """Returns the settings that kafka-python's tests give their brokers."""
    if os.environ.get("KPROTO_BOOTSTRAP"):
        return {}
    from kproto.broker import BrokerSettings

    settings = BrokerSettings(
        node_id=0,
        num_partitions=4,
        auto_create_topics=True,
        advertised_host="127.0.0.1",
        authorizer=True,
        allow_everyone_if_no_acl_found=True,
        group_min_session_timeout_ms=100,
    )
    return {"settings": settings}


@pytest.fixture(autouse=True, scope="session")
def _address(session_kafka_bootstrap: str) -> Iterator[None]:
    os.environ["KAFKA_URI"] = f"kafka://{session_kafka_bootstrap}"
    yield
    del os.environ["KAFKA_URI"]
