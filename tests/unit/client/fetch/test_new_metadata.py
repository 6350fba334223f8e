"""Tests how new metadata changes the states of assigned partitions."""

from __future__ import annotations

from typing import Any

from kproto.client.fetch.fetch_buffer import FetchBuffer
from kproto.client.fetch.partition_state import TopicPartitionState
from kproto.client.fetch.subscription_state import SubscriptionOptions, SubscriptionState
from kproto.client.metadata.cluster import PartitionInfo, TopicInfo, TopicPartition
from kproto.client.settings import ClientSettings
from kproto.wire.uuid import Uuid

SETTINGS = ClientSettings()
TOPICS = 20
PARTITIONS = 5


class CountedStates(dict[TopicPartition, TopicPartitionState]):
    """The states of all partitions; `visits` counts the states that loops have visited."""

    visits = 0

    def items(self) -> Any:
        self.visits += len(self)
        return super().items()


def metadata() -> dict[str, TopicInfo]:
    parts = {at: PartitionInfo(at, 1, 0, (1,), (1,)) for at in range(PARTITIONS)}
    return {
        f"topic-{number}": TopicInfo(f"topic-{number}", Uuid(b"%016d" % number), parts)
        for number in range(TOPICS)
    }


def test_new_metadata_of_many_topics_visits_each_partition_once() -> None:
    tps = [(topic, at) for topic in metadata() for at in range(PARTITIONS)]
    subscriptions = SubscriptionState(
        SETTINGS, SubscriptionOptions("earliest", subscribed=tps), FetchBuffer()
    )
    subscriptions.start({tp: TopicPartitionState(tp, SETTINGS, position=0) for tp in tps})
    counted = subscriptions.partitions = CountedStates(subscriptions.partitions)
    topics = metadata()
    subscriptions.on_metadata(topics, version=1)
    assert counted.visits == len(tps)
    assert all(state.topic_id == topics[tp[0]].topic_id for tp, state in counted.items())


def test_metadata_of_the_same_version_visits_no_partition() -> None:
    tps = [("topic-0", at) for at in range(PARTITIONS)]
    subscriptions = SubscriptionState(
        SETTINGS, SubscriptionOptions("earliest", subscribed=tps), FetchBuffer()
    )
    subscriptions.start({tp: TopicPartitionState(tp, SETTINGS, position=0) for tp in tps})
    subscriptions.on_metadata(metadata(), version=1)
    counted = subscriptions.partitions = CountedStates(subscriptions.partitions)
    subscriptions.on_metadata(metadata(), version=1)
    assert counted.visits == 0
