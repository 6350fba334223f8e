"""Tests that the cluster view keeps no data of deleted topics."""

from __future__ import annotations

import pytest

from kproto import Client
from kproto.client.metadata.cluster import LeaderHint
from tests.unit.client.scripted_cluster import scripted_cluster


@pytest.mark.parametrize("refreshes_all", [True, False])
async def test_deleted_topic_leaves_no_state(refreshes_all: bool) -> None:
    async with scripted_cluster(2) as cluster, Client(cluster.bootstrap) as client:
        view = client._view
        for number in range(20):
            name = f"t{number}"
            cluster.topic(name, [0])
            await client.refresh([name])
            assert view.update_leaders([LeaderHint(name, 0, 1, 1)], [])
            assert view.leader_since(name, 0, 0.0) == 1
            del cluster.leaders[name]
            await client.refresh(None if refreshes_all else [name])
            assert view.leader_since(name, 0, 0.0) is None
        assert not view._received_at
        assert not view._leader_hinted_at
        assert not client.cluster.topics
