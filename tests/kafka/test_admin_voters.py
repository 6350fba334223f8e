"""Tests that `Client.admin` adds and removes voters of the metadata quorum (KIP-853)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

import kproto
from kproto.client.admin import RaftVoterEndpoint
from tests.support.admin_calls import eventually
from tests.support.admin_commands import rows_of
from tests.support.availability import not_available
from tests.support.brokers import CANNOT_START
from tests.support.cli_runs import runner
from tests.support.patience import wait_until
from tools.kafka import VERSIONS, KafkaNode
from tools.kafka.properties import HOST, Ports
from tools.kafka.storage import new_id
from tools.setup.ports import free_ports

pytestmark = pytest.mark.exhaustive


@pytest.fixture(params=VERSIONS)
def two_nodes(request: pytest.FixtureRequest) -> Iterator[tuple[KafkaNode, KafkaNode]]:
    """Yields two nodes of one cluster; the first is the only voter, the second an observer."""
    first, second, one, two = free_ports(4, host=HOST)
    cluster_id = new_id()
    common = {
        "controller.quorum.voters": "",
        "controller.quorum.bootstrap.servers": f"{HOST}:{one}",
    }
    nodes = (
        KafkaNode(
            request.param,
            ports=Ports(broker=first, controller=one),
            cluster_id=cluster_id,
            config=common,
            format_arguments=["--standalone"],
        ),
        KafkaNode(
            request.param,
            ports=Ports(broker=second, controller=two),
            cluster_id=cluster_id,
            config={**common, "node.id": "2"},
            format_arguments=["--no-initial-controllers"],
        ),
    )
    try:
        for node in nodes:
            node.start()
        yield nodes
    except CANNOT_START as error:
        not_available(f"two nodes of Kafka {request.param}", error)
    finally:
        for node in reversed(nodes):
            node.close()


def test_commands_add_and_remove_a_controller(
    two_nodes: tuple[KafkaNode, KafkaNode],
    capsysbinary: pytest.CaptureFixture[bytes],
    tmp_path: Path,
) -> None:
    one, two = two_nodes
    kproto = runner(one.bootstrap, capsysbinary, tmp_path)

    def voters() -> set[object]:
        rows = rows_of(kproto, "cluster", "quorum")
        return {row["node"] for row in rows if row["role"] != "observer"}

    endpoint = ["--endpoint", f"CONTROLLER://{HOST}:{two.ports.controller}"]
    add = ["cluster", "add-controller", "-i", "2", *endpoint]
    wait_until(lambda: kproto(*add, "--dry-run").code == 0)  # the node 2 observes the quorum
    assert voters() == {1}
    assert kproto(*add, "--yes").code == 0
    wait_until(lambda: voters() == {1, 2})
    assert kproto("cluster", "remove-controller", "-i", "2", "--yes").code == 0
    wait_until(lambda: voters() == {1})


async def test_a_controller_becomes_a_voter_until_it_is_removed(
    two_nodes: tuple[KafkaNode, KafkaNode],
) -> None:
    one, two = two_nodes
    async with kproto.Client(one.bootstrap) as client:
        admin = client.admin

        async def observed() -> None:
            quorum = await admin.describe_metadata_quorum()
            assert 2 in {each.replica_id for each in quorum.observers}

        await eventually(observed)
        quorum = await admin.describe_metadata_quorum()
        assert [each.replica_id for each in quorum.voters] == [1]
        (observer,) = (each for each in quorum.observers if each.replica_id == 2)
        endpoint = RaftVoterEndpoint("CONTROLLER", HOST, two.ports.controller)
        with pytest.raises(kproto.BrokerResponseError, match="INCONSISTENT_CLUSTER_ID"):
            await admin.add_raft_voter(2, observer.directory_id, [endpoint], cluster_id=new_id())
        await admin.add_raft_voter(2, observer.directory_id, [endpoint])
        grown = await admin.describe_metadata_quorum()
        assert sorted(each.replica_id for each in grown.voters) == [1, 2]
        assert grown.nodes[2] == (endpoint,)
        with pytest.raises(kproto.BrokerResponseError, match="DUPLICATE_VOTER"):
            await admin.add_raft_voter(2, observer.directory_id, [endpoint])
        await admin.remove_raft_voter(2, observer.directory_id)

        async def removed() -> None:
            found = await admin.describe_metadata_quorum()
            assert [each.replica_id for each in found.voters] == [1]

        await eventually(removed)
        with pytest.raises(kproto.BrokerResponseError, match="VOTER_NOT_FOUND"):
            await admin.remove_raft_voter(2, observer.directory_id)
