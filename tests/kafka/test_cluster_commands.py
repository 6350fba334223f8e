"""Runs the tests of commands for several brokers on a cluster of real brokers."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.support.admin_commands import rows_of
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.cli_runs import Run
from tests.support.cluster_commands import *  # noqa: F403
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


#: Maximum time in s in which the controller notices a killed broker.
NOTICED_WITHIN_S = 60.0


@pytest.fixture
def killed(cluster: KafkaCluster) -> Iterator[None]:
    """Starts the node 3 again after the test has killed it."""
    yield
    cluster.node(3).start()
    cluster.wait_for_all()


def test_killed_broker_leaves_eligible_leaders(
    kproto: Run, cluster: KafkaCluster, spread: str, killed: None
) -> None:
    assert kproto("configs", "set", f"topic/{spread}", "min.insync.replicas=2").code == 0
    cluster.node(3).kill()
    end = time.monotonic() + NOTICED_WITHIN_S
    row: dict[str, object] = {}
    while row.get("in_sync") != [2]:
        assert time.monotonic() < end
        row = rows_of(kproto, "topics", "describe", spread)[1]
    # The feature eligible.leader.replicas.version is since Kafka 4.1 on in new clusters.
    assert row["elr"] == ([3] if cluster.version.startswith("4.") else [])
    for options in (["--under-replicated"], ["--under-min-isr", "--unavailable"]):
        rows = rows_of(kproto, "topics", "describe", spread, *options)
        assert [row["partition"] for row in rows] == [1]
    rows = rows_of(kproto, "topics", "describe", spread, "--at-min-isr")
    assert [row["partition"] for row in rows] == [0]
