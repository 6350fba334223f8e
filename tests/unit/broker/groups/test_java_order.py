"""Tests that an iteration order is that of Kafka's class TimelineHashMap."""

from __future__ import annotations

import pytest

from kproto.broker.coordinators import java_hash
from kproto.broker.groups.java_order import in_timeline_order

#: (keys in insertion order, keys in the order of `keySet`) of Kafka 4.4.0's `TimelineHashMap`.
TIMELINE = (
    ("ee9yv0bkmyjy 14wcyjx768mg3", "14wcyjx768mg3 ee9yv0bkmyjy"),
    (
        "17v9xv350mxs4 ioqg6uqhp4cc ehonwf4c7bvk 1pu44yu7gcada",
        "1pu44yu7gcada ehonwf4c7bvk 17v9xv350mxs4 ioqg6uqhp4cc",
    ),
    (
        "zydknhz7j885 1boagy48dg3gi 1nv61q22fzzyu 1lic5llo7r533 rb15jf4ecjqm 15u5swqrp6903",
        "15u5swqrp6903 zydknhz7j885 1lic5llo7r533 rb15jf4ecjqm 1nv61q22fzzyu 1boagy48dg3gi",
    ),
)


@pytest.mark.parametrize(("put", "given"), TIMELINE)
def test_keys_of_a_timeline_map(put: str, given: str) -> None:
    assert in_timeline_order(put.split(), java_hash) == given.split()
