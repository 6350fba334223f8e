"""Tests the lag of groups on the embedded broker: consumer groups, share groups, unknown groups."""

from __future__ import annotations

import pytest

from kproto import Client, ConfigurationError, NewTopic, ProducerRecord
from kproto.broker import Broker


async def test_lag_of_a_share_group_is_refused_with_the_name_of_the_right_call() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        admin = client.admin
        await admin.create_topics([NewTopic("jobs", partitions=1)])
        async with client.producer() as producer:
            await producer.send_many("jobs", [ProducerRecord(b"x", partition=0)] * 5)
        await admin.alter_share_group_offsets("workers", {("jobs", 0): 2})
        for partitions in (None, [("jobs", 0)]):
            with pytest.raises(ConfigurationError, match="call list_share_group_offsets"):
                await admin.consumer_group_lag("workers", partitions)
        offsets = (await admin.list_share_group_offsets(["workers"]))["workers"]
        assert [(tp, its and its.lag) for tp, its in offsets.items()] == [(("jobs", 0), 3)]


async def test_group_without_offsets_has_no_lag() -> None:
    async with Broker() as broker, Client(broker.bootstrap) as client:
        admin = client.admin
        await admin.create_topics([NewTopic("jobs", partitions=1)])
        assert await admin.consumer_group_lag("nobody") == {}
        lag = await admin.consumer_group_lag("nobody", [("jobs", 0)])
        assert lag["jobs", 0].lag is None
