"""Tests that an offset which the broker acquires again ends its earlier lock."""

from __future__ import annotations

import pytest

from kproto.client.fetch.share.acquisition import (
    AcknowledgeType,
    Acquisition,
    LockLostError,
    OffsetState,
)
from kproto.client.fetch.share.live_acquisitions import LiveAcquisitions
from kproto.wire.errors import ConfigurationError
from kproto.wire.uuid import ZERO_UUID

_, ACCEPT, RELEASE, _, RENEW = AcknowledgeType
RENEWING, LOST, SENT, OPEN = OffsetState

NOW, LOCKED_UNTIL = 100.0, 130.0


def acquired(first: int, last: int, partition: int = 0) -> Acquisition:
    return Acquisition(object(), 1, ("t", partition), ZERO_UUID, first, last, 1, LOCKED_UNTIL)


def test_offset_that_is_acquired_again_takes_no_acknowledgement_of_its_earlier_record() -> None:
    live = LiveAcquisitions()
    earlier, later = acquired(10, 13), acquired(11, 12)
    live.add([earlier], NOW)
    assert live.add([later], NOW) == []
    assert list(earlier.states) == [OPEN, LOST, LOST, OPEN]
    with pytest.raises(LockLostError):
        earlier.acknowledge(11, ACCEPT, NOW)
    earlier.acknowledge(10, ACCEPT, NOW)
    later.acknowledge(11, ACCEPT, NOW)


def test_unsent_acknowledgements_of_a_lost_offset_are_returned_and_not_sent() -> None:
    live = LiveAcquisitions()
    earlier = acquired(10, 13)
    live.add([earlier], NOW)
    earlier.acknowledge(10, ACCEPT, NOW)
    earlier.acknowledge(11, RELEASE, NOW)
    (lost,) = live.add([acquired(11, 11), acquired(13, 20)], NOW)
    assert lost.acquisition is earlier
    assert list(lost.states) == [LOST, RELEASE, LOST, LOST]
    assert list(earlier.take()) == [ACCEPT, LOST, OPEN, LOST]


def test_sent_release_stays_an_acknowledgement() -> None:
    live = LiveAcquisitions()
    earlier = acquired(10, 10)
    live.add([earlier], NOW)
    earlier.acknowledge(10, RELEASE, NOW)
    earlier.take()
    assert live.add([acquired(10, 10)], NOW) == []
    with pytest.raises(ConfigurationError, match="acknowledged already"):
        earlier.acknowledge(10, RELEASE, NOW)


@pytest.mark.parametrize("other", [acquired(14, 20), acquired(0, 9), acquired(10, 13, partition=1)])
def test_other_offsets_keep_their_lock(other: Acquisition) -> None:
    live = LiveAcquisitions()
    earlier = acquired(10, 13)
    live.add([earlier], NOW)
    assert live.add([other], NOW) == []
    assert set(earlier.states) == {OPEN}


def test_acquisitions_without_an_open_offset_are_forgotten() -> None:
    live = LiveAcquisitions()
    for at in range(100):
        earlier = acquired(at, at)
        live.add([earlier], NOW)
        earlier.acknowledge(at, ACCEPT, NOW)
        earlier.take()
    assert len(live._live["t", 0]) == 1
    live.add([acquired(200, 200)], LOCKED_UNTIL)
    assert len(live._live["t", 0]) == 1


def test_implicit_acceptance_after_the_lock_is_not_sent_once_the_partition_is_fetched() -> None:
    live = LiveAcquisitions()
    earlier = acquired(10, 13)
    live.add([earlier], NOW)
    live.add([acquired(10, 13)], LOCKED_UNTIL)
    assert not earlier.acknowledge_open(ACCEPT, earlier.first)


def test_unsent_acceptance_of_an_ended_lock_is_lost_when_the_offset_is_acquired_again() -> None:
    live = LiveAcquisitions()
    earlier = acquired(10, 13)
    live.add([earlier], NOW)
    assert earlier.acknowledge_open(ACCEPT, earlier.first)
    (lost,) = live.add([acquired(10, 13)], LOCKED_UNTIL)
    assert list(lost.states) == [ACCEPT] * 4
    assert not earlier.has_unsent


def test_lock_that_may_be_renewed_is_not_ended() -> None:
    live = LiveAcquisitions()
    earlier = acquired(10, 10)
    live.add([earlier], NOW)
    earlier.acknowledge(10, RENEW, NOW)
    sent = earlier.take()
    live.add([acquired(20, 20)], LOCKED_UNTIL)
    earlier.on_answered(sent, LOCKED_UNTIL + 30)
    earlier.acknowledge(10, ACCEPT, LOCKED_UNTIL)
