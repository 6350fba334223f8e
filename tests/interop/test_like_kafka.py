"""Tests that the embedded broker gives the same responses as a real broker.

Differences are listed by name with the reason: the embedded broker lacks a feature, or the releases
differ. A listed difference that no longer occurs also fails the test.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import pytest

from kproto.broker import BrokerSettings
from tests.support.brokers import RunningKafka
from tests.support.embedded import threaded_broker

from .admin_conversations import deleting_records, describing_settings
from .batch_conversations import NO_EPOCH, producing_odd_batches
from .cluster_conversations import CLUSTER_CONVERSATIONS
from .conversations import CONVERSATIONS, NAMED_TWICE, Said
from .offset_conversations import OFFSET_CONVERSATIONS
from .session_conversations import keeping_sessions, losing_topics
from .talk import Talk, ranges

pytestmark = pytest.mark.kafka


class Difference(NamedTuple):
    """A known difference from a real broker's response: its reason, and the releases with it."""

    reason: str
    releases: tuple[str, ...] = ("4.4.0", "3.9.2")


BY_DESIGN: dict[tuple[str, object], Difference] = {
    ("producing", "codec 7"): Difference("an unknown codec breaks Kafka's own code"),
    ("producing", "two hours ahead"): Difference(
        "3.9 has no bound for timestamps unless it is set", ("3.9.2",)
    ),
    **{
        ("producing_odd_batches", (topic, str({"base_timestamp": -10_000}))): Difference(
            "the embedded broker does not read records if the timestamps of the header are ordered"
        )
        for topic in ("plain", "gzip")
    },
    ("producing_odd_batches", ("recompressed", str(NO_EPOCH))): Difference(
        "a producer id without an epoch breaks Kafka's own code"
    ),
    **{
        ("listing", (version, what)): Difference(
            "3.9 repeats the response of a repeated partition, or of a repeated topic", ("3.9.2",)
        )
        for version in range(1, 10)
        for what in NAMED_TWICE
    },
    **{
        ("fetching", (version, "topic of", "zstd", what)): Difference(
            "a broker without a release answers as 4.4 does, which has no check of the codec",
            ("3.9.2",),
        )
        for version in range(4, 10)
        for what in ("zstd", "nothing", "beyond")
    },
    ("finding_coordinators", (6, 2)): Difference("3.9 has no share groups", ("3.9.2",)),
    **{
        ("storing_offsets", version): Difference(
            "3.9 stores commits in version 3, without the topic's id", ("3.9.2",)
        )
        for version in range(1, 10)
    },
}


@pytest.mark.parametrize(
    "conversation",
    [
        *CONVERSATIONS,
        *CLUSTER_CONVERSATIONS,
        *OFFSET_CONVERSATIONS,
        *(
            pytest.param(it, marks=pytest.mark.exhaustive, id=it.__name__)
            for it in (keeping_sessions, losing_topics)
        ),
        deleting_records,
        describing_settings,
        producing_odd_batches,
    ],
    ids=lambda it: it.__name__,
)
def test_embedded_broker_answers_as_kafka_does(
    conversation: Callable[[Talk], Said], kafka: RunningKafka
) -> None:
    both = ranges(kafka.bootstrap)
    theirs = dict(conversation(Talk(kafka.bootstrap, both)))
    with threaded_broker() as broker:
        ours = dict(conversation(Talk(broker.bootstrap, both)))
    assert len(theirs) >= 9
    assert list(ours) == list(theirs)
    differing = {request for request in ours if ours[request] != theirs[request]}
    expected = {
        request
        for (name, request), difference in BY_DESIGN.items()
        if name == conversation.__name__ and kafka.version in difference.releases
    }
    if kafka.version == "external":
        expected &= differing
    assert differing == expected, {
        request: (ours[request], theirs[request]) for request in differing ^ expected
    }


def test_embedded_broker_lists_the_api_versions_of_its_release(kafka: RunningKafka) -> None:
    if kafka.version == "external":
        pytest.skip("the release of this broker is unknown")
    theirs = ranges(kafka.bootstrap)
    with threaded_broker(BrokerSettings(release=kafka.version)) as broker:
        ours = ranges(broker.bootstrap)
    assert ours == {key: theirs[key] for key in ours}
    assert len(ours) > 20
