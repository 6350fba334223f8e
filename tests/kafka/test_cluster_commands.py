"""Runs the tests of commands for several brokers on a cluster of real brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.cli_runs import Run, runner
from tests.support.cluster_commands import *  # noqa: F403
from tests.support.cluster_commands import create_spread
from tools.kafka import VERSIONS, KafkaCluster

pytestmark = [pytest.mark.kafka, pytest.mark.exhaustive]


@pytest.fixture(scope="module", params=VERSIONS)
def cluster(request: pytest.FixtureRequest) -> Iterator[KafkaCluster]:
    """Yields a cluster of three brokers of each release."""
    try:
        with KafkaCluster(request.param, nodes=3) as running:
            yield running
    except CANNOT_START as error:
        not_available(f"a cluster of Kafka {request.param}", error)


@pytest.fixture
def kproto(
    cluster: KafkaCluster, capsysbinary: pytest.CaptureFixture[bytes], tmp_path: Path
) -> Run:
    """Returns the function that runs a command."""
    return runner(cluster.bootstrap, capsysbinary, tmp_path)


@pytest.fixture
def spread(cluster: KafkaCluster) -> str:
    """Returns a new topic with the replicas 1,2 and 2,3."""
    return create_spread(cluster.bootstrap)
